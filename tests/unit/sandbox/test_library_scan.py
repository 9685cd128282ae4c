"""Which library folders are opened, which applications stay closed, and that no loader is ever covered."""

from __future__ import annotations

import os
import shutil
import struct
from pathlib import Path

import pytest

from doubles.elf_files import LIBRARY, PROGRAM, elf_file
from stockade.sandbox import library_reading, library_scan
from stockade.sandbox.library_scan import SYSTEM_FOLDERS, LibraryScan, scan_libraries


class Host:
    """A /usr of its own: ``lib`` with a multiarch folder, and whatever a test adds."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.lib = root / "lib"
        self.arch = self.lib / "x86_64-linux-gnu"
        self.linker_cache = root / "ld.so.cache"
        self.library(self.arch / "libc.so.6")
        self.program(self.lib / "git-core" / "git")

    def program(self, path: Path) -> Path:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(PROGRAM)
        return path

    def library(self, path: Path) -> Path:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(LIBRARY)
        return path

    def application(self, name: str) -> Path:
        """A tree with its own programs and libraries, as of a JDK."""
        folder = self.lib / name
        self.program(folder / "bin" / "run")
        self.library(folder / "lib" / "libown.so")
        self.program(folder / "lib" / "helper")
        return folder

    def scan(
        self, own: tuple[Path, ...] = (), wanted: tuple[Path, ...] = (), cache: str = ""
    ) -> tuple[list[str], list[str], list[str]]:
        """Opened, closed, programs, each below the root."""
        found = scan_libraries(
            map(str, own),
            system=[str(self.lib)],
            wanted=map(str, wanted),
            worker_uid=6001,
            cache_folder=cache,
        )
        return self._below(found.opened), self._below(found.closed), self._below(found.programs)

    def _below(self, paths: tuple[str, ...]) -> list[str]:
        assert list(paths) == sorted(paths)
        return [os.path.relpath(path, self.root) for path in paths]


@pytest.fixture
def host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Host:
    found = Host(tmp_path.resolve())
    monkeypatch.setattr(library_scan, "LINKER_CACHE", str(found.linker_cache))
    monkeypatch.setattr(library_scan, "ALTERNATIVES", str(found.root / "alternatives"))
    return found


GIT = "lib/git-core/git"


def test_all_is_opened_and_its_programs_are_named(host: Host) -> None:
    assert host.scan() == (["lib"], [], [GIT])


@pytest.mark.parametrize("name", ["google-cloud-sdk", "jvm/java-17", "llvm-14", "postgresql/15"])
def test_an_application_one_or_two_levels_down_stays_closed(host: Host, name: str) -> None:
    host.application(name)
    assert host.scan() == (["lib"], [f"lib/{name}"], [GIT])


def test_sbin_and_lib64_make_an_application_as_well(host: Host) -> None:
    host.program(host.lib / "app" / "sbin" / "run")
    host.library(host.lib / "app" / "lib64" / "libown.so")
    assert host.scan() == (["lib"], ["lib/app"], [GIT])


@pytest.mark.parametrize(
    "name",
    [
        "x86_64-linux-gnu",  # where the linker looks
        "x86_64-linux-gnu/qt5",
        "arm-linux-gnueabihf/app",
        "python3.11",  # a package that is called bin, and one that is called lib
        "python3.11/site-packages",
        "python3/dist-packages",
        "node_modules/addon",
        "ruby/gems",
        "one/two/three",
    ],
)
def test_what_others_load_from_is_opened_whatever_lies_in_it(host: Host, name: str) -> None:
    folder = host.application(name)
    programs = [f"lib/{name}/bin/run", f"lib/{name}/lib/helper"]
    assert folder.is_dir()
    assert host.scan() == (["lib"], [], sorted([GIT, *programs]))


def test_tools_beside_plug_ins_are_no_application(host: Host) -> None:
    """Qt of Fedora and Arch: ``/usr/lib64/qt5`` has ``bin`` and the plug-ins of every Qt program."""
    host.program(host.lib / "qt5" / "bin" / "moc")
    host.library(host.lib / "qt5" / "plugins" / "platforms" / "libqxcb.so")
    assert host.scan() == (["lib"], [], [GIT, "lib/qt5/bin/moc"])


def test_links_named_bin_and_lib_make_no_application(host: Host) -> None:
    (host.lib / "app").mkdir()
    (host.lib / "app" / "bin").symlink_to("../git-core")
    (host.lib / "app" / "lib").symlink_to("../x86_64-linux-gnu")
    assert host.scan() == (["lib"], [], [GIT])


# --- what opens an application -----------------------------------------------------------------


def test_a_permitted_program_opens_its_application_alone(host: Host) -> None:
    java = host.application("jvm/java-17")
    host.application("jvm/java-21")
    expected = [GIT, "lib/jvm/java-17/bin/run", "lib/jvm/java-17/lib/helper"]
    assert host.scan(wanted=(java / "bin" / "run",)) == (["lib"], ["lib/jvm/java-21"], expected)


def test_what_is_wanted_elsewhere_opens_nothing(host: Host) -> None:
    java = host.application("jvm/java-17")
    elsewhere = (Path("/usr/bin/env"), host.lib / "git-core" / "git", java.with_name("java-1"), Path("/"))
    assert host.scan(wanted=elsewhere) == (["lib"], ["lib/jvm/java-17"], [GIT])


def test_a_link_to_a_library_opens_the_library_s_folder(host: Host) -> None:
    """As Debian's ``x86_64-linux-gnu/libclang-cpp.so.14 -> ../llvm-14/lib/libclang-cpp.so.14``."""
    llvm = host.application("llvm-14")
    (host.arch / "libown.so").symlink_to("../llvm-14/lib/libown.so")
    assert host.scan() == (["lib", "lib/llvm-14/lib"], ["lib/llvm-14"], [GIT, "lib/llvm-14/lib/helper"])
    assert host.scan(wanted=(llvm / "bin" / "run",))[:2] == (["lib"], [])


def test_a_link_through_others_is_followed_to_its_end(host: Host) -> None:
    host.application("app")
    alternatives = host.root / "alternatives"
    alternatives.mkdir()
    (alternatives / "libown").symlink_to(host.lib / "app" / "lib" / "libown.so")
    (host.arch / "libown.so").symlink_to(alternatives / "libown")
    assert host.scan()[0] == ["lib", "lib/app/lib"]


def test_a_linked_folder_of_an_application_is_opened(host: Host) -> None:
    host.application("app")
    host.library(host.lib / "app" / "plugins" / "one.so")
    (host.lib / "plugins").symlink_to("app/plugins")
    assert host.scan()[:2] == (["lib", "lib/app/plugins"], ["lib/app"])


def test_links_that_load_no_library_open_nothing(host: Host) -> None:
    """Another name of the whole application, a program, a text, a dead link, and a link within a folder."""
    app = host.application("jvm/java-17")
    (app / "licence").write_text("words")
    (host.lib / "jvm" / "default").symlink_to("java-17")
    (host.lib / "java").symlink_to("jvm/java-17")
    (host.lib / "run").symlink_to("jvm/java-17/bin/run")
    (host.lib / "words").symlink_to("jvm/java-17/licence")
    (host.lib / "dead").symlink_to("jvm/java-17/lib/missing.so")
    (host.arch / "libc.so").symlink_to("libc.so.6")
    (host.arch / "round").symlink_to("./round")
    assert host.scan() == (["lib"], ["lib/jvm/java-17"], [GIT])


def test_a_library_at_the_top_of_an_application_opens_all_of_it(host: Host) -> None:
    host.application("app")
    host.library(host.lib / "app" / "libtop.so")
    (host.arch / "libtop.so").symlink_to("../app/libtop.so")
    assert host.scan()[:2] == (["lib"], [])


def test_links_of_what_was_opened_are_followed_in_turn(host: Host) -> None:
    host.application("one")
    host.application("two")
    (host.arch / "libown.so").symlink_to("../one/lib/libown.so")
    (host.lib / "one" / "lib" / "libtwo.so").symlink_to("../../two/lib/libown.so")
    assert host.scan()[:2] == (["lib", "lib/one/lib", "lib/two/lib"], ["lib/one", "lib/two"])


MAGIC = b"glibc-ld.so.cache1.1"


def write_linker_cache(path: Path, libraries: list[str], in_front: bytes = b"") -> None:
    """dl-cache.h: magic and version, number of entries, bytes of text, 20 bytes; entries of 24; the texts."""
    texts = b"".join(os.fsencode(library) + b"\0" for library in libraries)
    entry = struct.pack("iIIIQ", 0x303, 0, 0, 0, 0)
    head = MAGIC + struct.pack("II", len(libraries), len(texts)) + bytes(20)
    path.write_bytes(in_front + head + entry * len(libraries) + texts + b"/extension/not/a/text.so\0")


def test_the_linker_s_folders_are_opened_wherever_they_are(host: Host) -> None:
    app = host.application("app")
    host.application("other")
    host.library(host.root / "cuda" / "lib" / "libcudart.so")
    host.program(host.root / "cuda" / "lib" / "tool")
    libraries = [
        app / "lib" / "libown.so",
        host.root / "cuda" / "lib" / "libcudart.so",
        host.arch / "libc.so.6",
    ]
    write_linker_cache(host.linker_cache, [*map(str, libraries), "/nowhere/lib/libgone.so", "libname.so"])
    assert host.scan() == (
        ["cuda/lib", "lib", "lib/app/lib"],
        ["lib/app", "lib/other"],
        ["cuda/lib/tool", "lib/app/lib/helper", GIT],
    )


def test_nothing_is_opened_where_the_worker_writes_but_what_the_policy_names(host: Host) -> None:
    work = host.root / "work"
    host.library(work / "lib" / "libmine.so")
    host.library(work / "lib" / "named" / "libnamed.so")
    host.library(host.root / "local" / "lib" / "libsystem.so")
    write_linker_cache(host.linker_cache, [str(work / "lib" / "libmine.so")])

    def opened(*writable: Path) -> list[str]:
        found = scan_libraries(
            [str(work / "lib" / "named")],
            system=[str(host.lib), str(host.root / "local" / "lib")],
            writable=[str(folder) for folder in writable],
            worker_uid=6001,
        )
        return [os.path.relpath(path, host.root) for path in found.opened]

    assert opened() == ["lib", "local/lib", "work/lib"]
    assert opened(work, host.root / "local") == ["lib", "work/lib/named"]


def test_the_linker_s_cache_with_an_old_one_in_front_is_read(host: Host) -> None:
    app = host.application("app")
    write_linker_cache(host.linker_cache, [str(app / "lib" / "libown.so")], b"ld.so-1.7.0\0" + bytes(36))
    assert host.scan()[0] == ["lib", "lib/app/lib"]


@pytest.mark.parametrize("content", [b"", b"x", MAGIC, MAGIC + b"\xff" * 28])
def test_a_spoilt_linker_cache_opens_nothing(host: Host, content: bytes) -> None:
    host.application("app")
    host.linker_cache.write_bytes(content)
    assert host.scan()[0] == ["lib"]


@pytest.mark.skipif(not os.path.exists("/etc/ld.so.cache"), reason="this machine's linker has no cache")
def test_the_real_linker_cache_names_the_folder_of_the_c_library(monkeypatch: pytest.MonkeyPatch) -> None:
    with open("/proc/self/maps", encoding="utf-8") as file:
        folder = next(os.path.dirname(line.split()[-1]) for line in file if "/libc.so" in line)
    assert folder in library_scan._linker_folders()


# --- folders of the policy ---------------------------------------------------------------------


def test_own_folders_are_opened_whole(host: Host) -> None:
    """Whatever looks like an application in them: it was named."""
    own = host.root / "work" / ".venv"
    host.program(own / "bin" / "ruff")
    host.library(own / "lib" / "native.so")
    assert host.scan(own=(own,)) == (["lib", "work/.venv"], [], [GIT, "work/.venv/bin/ruff"])


def test_an_application_that_is_named_is_open(host: Host) -> None:
    java = host.application("jvm/java-17")
    host.application("jvm/java-21")
    opened, closed, programs = host.scan(own=(java,))
    assert (opened, closed) == (["lib"], ["lib/jvm/java-21"])
    assert "lib/jvm/java-17/bin/run" in programs
    assert host.scan(own=(host.lib / "jvm",))[:2] == (["lib"], [])
    assert host.scan(own=(host.root,))[:2] == (["."], [])


def test_a_folder_inside_a_closed_application_is_opened_alone(host: Host) -> None:
    java = host.application("jvm/java-17")
    opened, closed, programs = host.scan(own=(java / "lib", java / "lib" / "deeper"))
    assert (opened, closed) == (["lib", "lib/jvm/java-17/lib"], ["lib/jvm/java-17"])
    assert programs == [GIT, "lib/jvm/java-17/lib/helper"]


def test_links_in_a_folder_of_the_policy_open_nothing(host: Host) -> None:
    """A worker may have made them."""
    host.application("app")
    own = host.root / "own"
    own.mkdir()
    (own / "libown.so").symlink_to(host.lib / "app" / "lib" / "libown.so")
    assert host.scan(own=(own,))[:2] == (["lib", "own"], ["lib/app"])


def test_a_missing_folder_is_left_out(host: Host) -> None:
    assert host.scan(own=(host.root / "missing", host.arch / "libc.so.6"))[0] == ["lib"]
    assert scan_libraries(system=[str(host.root / "missing")], worker_uid=6001) == LibraryScan((), (), ())


def test_without_system_folders_the_linker_s_stay_closed(host: Host) -> None:
    write_linker_cache(host.linker_cache, [str(host.arch / "libc.so.6")])
    found = scan_libraries([str(host.lib / "git-core")], system=(), worker_uid=6001)
    assert found.opened == (str(host.lib / "git-core"),)


def test_links_among_system_folders_are_one(host: Host) -> None:
    (host.root / "lib64").symlink_to("lib")
    found = scan_libraries(system=[str(host.root / "lib64"), str(host.lib)], worker_uid=6001)
    assert found.opened == (str(host.lib),)


def test_a_loader_is_never_covered(host: Host, monkeypatch: pytest.MonkeyPatch) -> None:
    """Even one that looks like a program: without it nothing starts any more."""
    loader = host.arch / "ld-linux.so.2"
    loader.write_bytes(elf_file())
    (host.root / "lib64").mkdir()
    (host.root / "lib64" / "ld.so").symlink_to(loader)
    assert host.scan()[2] == [GIT, "lib/x86_64-linux-gnu/ld-linux.so.2"]
    monkeypatch.setattr(library_scan, "LOADERS", (str(host.root / "lib64" / "ld.so"),))
    assert host.scan()[2] == [GIT]


# --- memory ------------------------------------------------------------------------------------


@pytest.fixture
def later(monkeypatch: pytest.MonkeyPatch) -> None:
    time_ns = library_reading.time.time_ns
    monkeypatch.setattr(library_reading.time, "time_ns", lambda: time_ns() + 10_000_000_000)


@pytest.mark.usefixtures("later")
def test_what_is_remembered_gives_the_same_answer(host: Host, monkeypatch: pytest.MonkeyPatch) -> None:
    java = host.application("jvm/java-17")
    host.application("llvm-14")
    (host.arch / "libown.so").symlink_to("../llvm-14/lib/libown.so")
    cache = str(host.root / "cache")
    for wanted in ((), (java / "bin" / "run",), ()):
        assert host.scan(wanted=wanted, cache=cache) == host.scan(wanted=wanted)
    monkeypatch.setattr(library_reading.kernel, "open_without_links", None)  # nothing may be opened any more
    for wanted in ((), (java / "bin" / "run",)):
        closed = host.scan(wanted=wanted, cache=cache)[1]
        assert closed == (["lib/llvm-14"] if wanted else ["lib/jvm/java-17", "lib/llvm-14"])


@pytest.mark.usefixtures("later")
def test_an_application_that_comes_and_goes_is_seen(host: Host) -> None:
    cache = str(host.root / "cache")
    assert host.scan(cache=cache) == (["lib"], [], [GIT])
    app = host.application("app")
    assert host.scan(cache=cache) == (["lib"], ["lib/app"], [GIT])
    shutil.rmtree(app / "bin")
    assert host.scan(cache=cache) == (["lib"], [], ["lib/app/lib/helper", GIT])


@pytest.mark.usefixtures("later")
def test_a_link_that_leads_elsewhere_by_a_changed_alternative_is_seen(host: Host) -> None:
    host.application("one")
    host.application("two")
    alternatives = host.root / "alternatives"
    alternatives.mkdir()
    (alternatives / "libown").symlink_to(host.lib / "one" / "lib" / "libown.so")
    (host.arch / "libown.so").symlink_to(alternatives / "libown")
    cache = str(host.root / "cache")
    assert host.scan(cache=cache)[0] == ["lib", "lib/one/lib"]
    (alternatives / "libown").unlink()
    (alternatives / "libown").symlink_to(host.lib / "two" / "lib" / "libown.so")
    assert host.scan(cache=cache)[0] == ["lib", "lib/two/lib"]


@pytest.mark.needs("root")
@pytest.mark.usefixtures("later")
def test_root_s_files_are_compared_where_a_worker_may_have_been_root(host: Host) -> None:
    """Root's workspace is bound with an id map: its worker owns root's files there, and not in /usr."""
    own = host.root / "work"
    host.library(own / "lib.so")
    cache = str(host.root / "cache")
    host.scan(own=(own,), cache=cache)
    for folder in (own, host.arch):
        (folder / ("lib.so" if folder == own else "libc.so.6")).write_bytes(PROGRAM)
    assert host.scan(own=(own,), cache=cache)[2] == [GIT, "work/lib.so"]


# --- this machine ------------------------------------------------------------------------------


@pytest.mark.slow
def test_this_machine_s_programs_are_found_and_its_loader_is_not() -> None:
    found = scan_libraries(worker_uid=6001)
    for path in (
        "/usr/lib/git-core/git",
        "/usr/lib/gcc/x86_64-linux-gnu/12/cc1",
        "/usr/lib/apt/methods/http",
    ):
        assert not os.path.exists(path) or path in found.programs
    assert os.path.realpath("/lib64/ld-linux-x86-64.so.2") not in found.programs
    assert [path for path in found.programs if ".so." in os.path.basename(path)] == []
    assert {os.path.realpath(folder) for folder in SYSTEM_FOLDERS if os.path.isdir(folder)} <= set(
        found.opened
    )
