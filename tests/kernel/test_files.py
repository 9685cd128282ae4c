"""What the worker sees and may write, and what it cannot plant for others (boundary.md F6, F11, F14)."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from kernel_steps import IS_ROOT, ORDINARY, PYTHON, Contained, words

LIST = "import os, sys; print(sorted(os.listdir(sys.argv[1])))"
WRITE = """
import sys
for path in sys.argv[1:]:
    try:
        open(path, "a").close()
        print("wrote", path)
    except OSError as error:
        print("refused", path, error.errno)
"""


# --- the view is built from nothing --------------------------------------------------------


def test_the_root_holds_only_what_is_listed(contained: Contained) -> None:
    shown = contained.python(LIST, "/").out
    for name in ("root", "boot", "srv", "sys", "mnt", "opt"):
        assert f"'{name}'" not in shown
    assert "'usr'" in shown


@pytest.mark.parametrize("layers_off", [(), ("--without-layer", "landlock")], ids=["sealed", "view-alone"])
def test_nothing_outside_the_private_folders_can_be_written(
    contained: Contained, layers_off: tuple[str, ...]
) -> None:
    closed = ["/new", "/etc/new", "/usr/new", "/etc/hosts", "/.stockade/new", str(contained.work / "new")]
    open_ = ["/tmp/new", "/run/new", "/var/tmp/new", "/home/worker/new", "/dev/shm/new", "/home/new"]
    result = contained.python(WRITE, *closed, *open_, options=layers_off)
    assert result.out.count("refused") == len(closed)
    assert result.out.count("wrote") == len(open_)
    # What was written there was written nowhere: the host has no such files.
    assert not [path for path in open_ if os.path.exists(path)]


def test_the_workspace_is_read_only_unless_it_is_opened(contained: Contained) -> None:
    assert contained("touch", "made").code != 0
    assert contained("touch", "made", options=("--write", str(contained.work))).code == 0
    assert (contained.work / "made").exists()


def test_names_and_accounts_inside_are_ours(contained: Contained) -> None:
    resolver = contained("cat", "/etc/resolv.conf").out
    assert resolver == "nameserver 198.18.0.1\noptions ndots:1\n"
    assert contained("whoami").out == "worker\n"
    assert contained("getent", "hosts", "stockade").out.split()[0] in ("127.0.0.1", "::1")
    assert contained("hostname").out == "stockade\n"


def test_hidden_paths_show_nothing_and_cannot_be_moved_aside(contained: Contained) -> None:
    tests = contained.work / "tests"
    (tests / "answers").mkdir(parents=True)
    (tests / "answers" / "a.txt").write_text("42")
    (contained.work / "key.pem").write_text("secret")
    script = "cat tests/answers/a.txt key.pem; mv tests moved; mv tests/answers x; rm -f key.pem"
    options = ("--write", str(contained.work), "--hide", str(tests / "answers"))
    options += ("--hide", str(contained.work / "key.pem"))
    result = contained("sh", "-c", script + "; cat moved/answers/a.txt key.pem", options=options)
    assert "42" not in result.out
    assert "secret" not in result.out
    assert (contained.work / "key.pem").read_text() == "secret"
    # The control: unhidden, the same reads give both.
    (contained.work / "moved").rename(tests) if (contained.work / "moved").exists() else None
    assert contained("cat", "tests/answers/a.txt", "key.pem").out == "42secret"


def test_own_files_are_invisible_in_the_workspace(contained: Contained) -> None:
    ledger = contained.work / "ledger"
    ledger.mkdir()
    (ledger / "record").write_text("r")
    (contained.work / "policy.yaml").write_text("version: 1")
    options = ("--write", str(contained.work))
    options += ("--invisible", str(ledger), "--invisible", str(contained.work / "policy.yaml"))
    script = "cat ledger/record policy.yaml; echo changed > policy.yaml; touch ledger/planted; mv ledger old"
    result = contained("sh", "-c", script, options=options)
    assert result.out == ""
    assert (contained.work / "policy.yaml").read_text() == "version: 1"
    assert sorted(os.listdir(ledger)) == ["record"]


def test_r138_a_ledger_folder_that_does_not_exist_yet_cannot_be_made_by_the_worker(
    contained: Contained,
) -> None:
    ledger = contained.work / "state" / "ledger"
    options = ("--write", str(contained.work), "--invisible", str(ledger))
    script = "mkdir -p state/ledger/run1; touch state/ledger/x; mv state/ledger state/old; mv state other"
    assert contained("sh", "-c", script + "; ls -A state/ledger", options=options).out == ""
    assert os.listdir(ledger) == []


# --- sockets and FIFOs answer through read-only binds ----------------------------------------

UNIX = ("--unix-sockets",)  # else the filter refuses each Unix socket before it is connected


def test_f6_a_unix_socket_in_the_workspace_is_refused_by_name(contained: Contained) -> None:
    server = socket.socket(socket.AF_UNIX)
    server.bind(str(contained.work / "agent.sock"))
    server.listen()
    refused = contained("true")
    assert refused.code == 103
    assert f"{contained.work}/agent.sock" in refused.err
    # Hidden, it is covered, and the worker's connect finds a plain empty file.
    connect = "import socket; s = socket.socket(socket.AF_UNIX); s.connect('agent.sock')"
    hidden = ("--hide", str(contained.work / "agent.sock"))
    assert "agent.sock" in contained.python(connect, options=hidden).err
    assert contained.plainly(connect).code == 0
    server.close()


def test_f6_a_fifo_in_the_workspace_is_refused_by_name(contained: Contained) -> None:
    (contained.work / "deep").mkdir()
    os.mkfifo(contained.work / "deep" / "pipe")
    refused = contained("true")
    assert refused.code == 103
    assert f"{contained.work}/deep/pipe" in refused.err


MOUNT_AND_BIND = """
mount -t tmpfs t /usr/local/games || exit 9
python3 -c 'import socket, time
s = socket.socket(socket.AF_UNIX); s.bind("/usr/local/games/own.sock"); s.listen()
print("listening", flush=True); time.sleep(30)' & server=$!
until [ -S /usr/local/games/own.sock ]; do sleep 0.02; done; sleep 0.1
cd "$PWD"; "$@"; code=$?; kill $server; exit $code
"""
CONNECT = """
import socket, sys
s = socket.socket(socket.AF_UNIX)
try:
    s.connect("/usr/local/games/own.sock"); print("reached")
except OSError as error:
    print("refused", error.errno)
"""


@pytest.mark.parametrize("is_contained", [True, False])
def test_r123_a_socket_that_a_daemon_of_the_host_keeps_below_usr_is_covered(
    contained: Contained, is_contained: bool
) -> None:
    # Servers that were built by hand keep theirs in /usr/local. It is too large to be walked through.
    contained.work.parent.chmod(0o755)
    look = [PYTHON, "-I", "-c", CONNECT]
    command = contained.command(*look, options=UNIX) if is_contained else look
    done = subprocess.run(
        [*ORDINARY, "unshare", "-Urm", "sh", "-c", MOUNT_AND_BIND, "sh", *command],
        cwd=contained.work,
        capture_output=True,
        env={**os.environ, "PWD": str(contained.work)},
        timeout=18,
    )
    said = words(done).out.splitlines()
    assert said == ["listening", "refused 111" if is_contained else "reached"], done.stderr


def test_r123_usual_socket_places_are_not_in_the_view(contained: Contained) -> None:
    script = "ls /run/docker.sock /run/user /run/dbus /var/run/docker.sock /tmp/.X11-unix /tmp/tmux-0 2>&1"
    result = contained("sh", "-c", script, environment={"SSH_AUTH_SOCK": "/tmp/agent"})
    assert result.out.count("No such file") == 6
    assert "SSH_AUTH_SOCK" not in contained("env", environment={"SSH_AUTH_SOCK": "/tmp/agent"}).out


def test_r124_abstract_sockets_of_the_host_are_unreachable_and_own_ones_work(contained: Contained) -> None:
    connect = (
        "import socket; s = socket.socket(socket.AF_UNIX); s.connect('\\0kernel-test'); print('reached')"
    )
    server = socket.socket(socket.AF_UNIX)
    server.bind("\0kernel-test")
    server.listen()
    assert contained.plainly(connect).out == "reached\n"
    assert "ConnectionRefused" in contained.python(connect, options=UNIX).err
    own = "import socket; a = socket.socket(socket.AF_UNIX); a.bind('\\0kernel-test'); a.listen(); " + connect
    assert contained.python(own, options=UNIX).out == "reached\n"
    assert (
        "Errno 97" in contained.python(connect).err
    )  # without the policy's word there is no Unix socket at all
    server.close()


MOUNT_LATER = """
mount --make-rshared / && cd "$PWD" || exit 9
"$@" & while [ ! -e ready ] && kill -0 $!; do sleep 0.02; done
mount -t tmpfs t sub && touch sub/late go && wait
"""


@pytest.mark.parametrize("is_contained", [True, False])
def test_f6_what_the_host_mounts_later_does_not_appear_inside(
    contained: Contained, is_contained: bool
) -> None:
    # As on any machine with systemd the host's mounts are shared; a disk is mounted while the run is on.
    (contained.work / "sub").mkdir()
    contained.work.parent.chmod(0o755)
    contained.work.chmod(0o777)
    look = ("sh", "-c", "touch ready; while [ ! -e go ]; do sleep 0.02; done; ls sub; echo end")
    command = contained.command(*look, options=("--write", str(contained.work))) if is_contained else look
    result = words(
        subprocess.run(
            [*ORDINARY, "unshare", "-Urm", "sh", "-c", MOUNT_LATER, "sh", *command],
            cwd=contained.work,
            capture_output=True,
            env={**os.environ, "PWD": str(contained.work)},
            timeout=18,
        )
    )
    assert result.out == ("end\n" if is_contained else "late\nend\n"), result.err


# --- descriptors ---------------------------------------------------------------------------

DESCRIPTORS = """
import os
def is_open(fd):
    try:
        return bool(os.fstat(fd))
    except OSError:
        return False
print([fd for fd in range(256) if is_open(fd)])
"""


def test_f11_inherited_descriptors_do_not_arrive(contained: Contained) -> None:
    folder = os.open("/etc", os.O_RDONLY)
    program = [PYTHON, "-I", "-c", DESCRIPTORS]
    plain = subprocess.run(program, capture_output=True, pass_fds=[folder], text=True)
    assert str(folder) in plain.stdout
    result = contained.python(DESCRIPTORS, pass_fds=[folder])
    assert result.out == "[0, 1, 2]\n"
    os.close(folder)


WALK_STDIN = ("sh", "-c", "ls /proc/self/fd/0/")


def test_f11_a_folder_as_standard_input_is_not_handed_in(contained: Contained) -> None:
    folder = os.open("/etc", os.O_RDONLY)
    plain = subprocess.run(WALK_STDIN, stdin=folder, capture_output=True, text=True)
    assert "shadow" in plain.stdout
    result = contained.start(*WALK_STDIN, stdin=folder)
    out, err = result.communicate(timeout=15)
    assert b"shadow" not in out
    # Python itself, which we are written in, already refuses to start with a folder there.
    assert result.returncode != 0
    assert err
    os.close(folder)


REOPEN = "import os; fd = os.open('/proc/self/fd/1', os.O_RDWR); os.pwrite(fd, b'X', 0)"


def test_f11_standard_output_cannot_be_reopened_to_overwrite_a_log(contained: Contained) -> None:
    log = contained.work.parent / "log"
    for is_contained in (False, True):
        log.write_text("first line\n")
        with log.open("a") as file:
            if is_contained:
                contained.start(PYTHON, "-I", "-c", REOPEN, stdout=file).communicate(timeout=15)
            else:
                subprocess.run([PYTHON, "-I", "-c", REOPEN], stdout=file, stderr=subprocess.DEVNULL)
        assert log.read_text().startswith("f" if is_contained else "X"), is_contained


# --- links (R134) ----------------------------------------------------------------------------


def test_r134_a_planted_link_does_not_widen_the_next_run(contained: Contained) -> None:
    outside = contained.work.parent / "secret"
    outside.mkdir()
    (outside / "key").write_text("secret")
    models = contained.work / "models"
    planted = contained("ln", "-s", str(outside), "models", options=("--write", str(contained.work)))
    assert planted.code == 0
    for option in ("--read", "--write", "--hide"):
        refused = contained("cat", "models/key", options=(option, str(models)))
        assert refused.code == 102, option
        assert "path-through-link" in refused.err
    # The link itself dangles inside; a real folder at the same place is shown.
    assert contained("cat", "models/key").code == 1
    assert contained("cat", str(outside / "key"), options=("--read", str(outside))).out == "secret"


def test_r134_a_planted_python_link_shows_no_more_than_the_file(contained: Contained) -> None:
    # `.venv/bin/python` leads to a program in a private folder: the folder must not be shown for it.
    private = contained.work.parent / "private"
    (private / "bin").mkdir(parents=True)
    (private / "lib").mkdir()
    (private / "lib" / "secret").write_text("secret")
    tool = private / "bin" / "python3"
    tool.write_text(f"#!/bin/sh\ncat {private}/lib/secret\necho ran\n")
    tool.chmod(0o755)
    (contained.work / ".venv" / "bin").mkdir(parents=True)
    (contained.work / ".venv" / "bin" / "python").symlink_to(tool)
    result = contained(".venv/bin/python")
    assert "secret" not in result.out
    # Typed by the operator at its own place, the program gets its library folder.
    assert "secret" in contained(str(tool)).out


def test_r145_a_workspace_reached_by_a_link_works(contained: Contained) -> None:
    link = contained.work.parent / "link"
    link.symlink_to(contained.work)
    (contained.work / "file").write_text("seen")
    result = contained("sh", "-c", f"pwd; cat file {link}/file; command -v ls", cwd=link)
    assert result.out == f"{contained.work}\nseenseen/usr/bin/ls\n"


# --- what other programs run later (F14) -----------------------------------------------------


@pytest.fixture
def repository(contained: Contained) -> Path:
    subprocess.run(["git", "init", "-q", str(contained.work)], check=True)
    (contained.work / ".vscode").mkdir()
    (contained.work / ".vscode" / "tasks.json").write_text("{}")
    (contained.work / ".envrc").write_text("true")
    return contained.work


PLANT = """
for f in .git/hooks/pre-commit .git/config .vscode/tasks.json .envrc; do
  echo 'touch /tmp/owned' >> $f && echo planted $f
done 2>/dev/null
mv .git .git-aside && cp -r .git-aside .git && echo replaced .git
mv .git/hooks .git/other && echo moved hooks
rm -rf .git/hooks .vscode .envrc 2>/dev/null; ls -d .envrc .git/hooks .vscode
echo ordinary > file && echo wrote file
"""


@pytest.mark.needs("git")
def test_f14_hooks_and_settings_cannot_be_planted_nor_moved_aside(
    contained: Contained, repository: Path
) -> None:
    before = (repository / ".git" / "config").read_text()
    result = contained("sh", "-c", PLANT, options=("--write", str(repository)))
    assert result.out == ".envrc\n.git/hooks\n.vscode\nwrote file\n"
    assert (repository / ".git" / "config").read_text() == before
    assert contained.facts["facts"]["protected"] == 5  # the fifth is the stop, commondir


@pytest.mark.needs("git")
def test_git_itself_works_beside_its_protected_settings(contained: Contained, repository: Path) -> None:
    script = (
        'git() { command git -c user.name=a -c user.email=a@b.test "$@"; }; '
        "echo x > f && git add f && git commit -qm one && echo y > f && git stash -q && git stash pop -q"
        " && git gc -q && git worktree add -q two && git fsck --no-dangling && git -C two log --format=%s"
        " && git worktree remove two"
    )
    result = contained("sh", "-c", script, options=("--write", str(repository)))
    assert (result.out, result.code) == ("one\n", 0), result.err


@pytest.mark.needs("git")
def test_f14_a_work_tree_s_way_to_its_repository_cannot_be_changed(
    contained: Contained, repository: Path
) -> None:
    git = ["git", "-C", str(repository), "-c", "user.name=a", "-c", "user.email=a@b.test"]
    for order in (["commit", "-qm", "one", "--allow-empty"], ["worktree", "add", "-q", "tree"]):
        subprocess.run([*git, *order], check=True)
    script = (
        "cd .git/worktrees/tree; echo ../../c > commondir; rm -f commondir; cd ..; mv tree aside; cd ..;"
        "mv worktrees aside; cd ../tree; git log --oneline | wc -l; cd ..; git worktree add -q later; echo $?"
    )
    result = contained("sh", "-c", script, options=("--write", str(repository)))
    assert result.out == "1\n0\n", result.err
    for name in ("tree", "later"):
        assert (repository / ".git" / "worktrees" / name / "commondir").read_text() == "../..\n"
    # Work trees are ordinary; the new one's `.git` file is named, as any new one is.
    assert contained.facts["planted"] == [str(repository / "later" / ".git")]


@pytest.mark.needs("git")
def test_r138_two_runs_share_the_stop_and_the_last_one_removes_it(
    contained: Contained, repository: Path
) -> None:
    stop = repository / ".git" / "commondir"
    options = ("--write", str(repository))
    try_it = "rm -f .git/commondir 2>/dev/null; echo c > .git/commondir; cat .git/commondir"
    waits = contained.start("sh", "-c", f"echo ready; read x; {try_it}", options=options)
    assert waits.stdout is not None
    assert waits.stdout.readline() == b"ready\n"
    assert contained("true", options=options).code == 0  # came second, ends first
    assert stop.read_bytes() == b"."
    assert waits.communicate(b"\n", timeout=15)[0] == b"."
    assert not stop.exists()


@pytest.mark.needs("git")
def test_r138_what_the_operator_puts_in_the_stop_s_place_stays(
    contained: Contained, repository: Path
) -> None:
    stop = repository / ".git" / "commondir"
    run = contained.start("sh", "-c", "echo ready; read x", options=("--write", str(repository)))
    assert run.stdout is not None
    run.stdout.readline()
    stop.rename(stop.with_name("moved"))
    stop.write_bytes(b".")
    run.communicate(b"\n", timeout=15)
    assert stop.exists()


@pytest.mark.needs("git")
def test_r138_a_git_folder_that_cannot_be_protected_is_refused(
    contained: Contained, repository: Path
) -> None:
    # Its owner, who the worker is, could open it again. Root makes the stop all the same.
    (repository / ".git").chmod(0o555)
    result = contained("touch", "started", options=("--write", str(repository)))
    (repository / ".git").chmod(0o755)
    assert result.code == (0 if IS_ROOT else 103)
    assert ("git-not-protected" in result.err) == (not IS_ROOT)
    assert (repository / "started").exists() == IS_ROOT
    assert not (repository / ".git" / "commondir").exists()


@pytest.mark.needs("git")
def test_f14_a_repository_below_the_workspace_is_protected_too(contained: Contained) -> None:
    nested = contained.work / "vendor" / "lib"
    nested.mkdir(parents=True)
    subprocess.run(["git", "init", "-q", str(nested)], check=True)
    script = "echo x >> vendor/lib/.git/config; mv vendor aside; mv vendor/lib aside; echo done"
    result = contained("sh", "-c", script, options=("--write", str(contained.work)))
    assert result.out == "done\n"
    assert "x" not in (nested / ".git" / "config").read_text().split()


@pytest.mark.needs("git")
def test_r138_a_repository_without_hooks_gets_none_from_the_worker(
    contained: Contained, repository: Path
) -> None:
    # Absent at the start, it could not be covered: it is made first, as git makes it.
    shutil.rmtree(repository / ".git" / "hooks")
    script = "mkdir -p .git/hooks; echo 'touch /tmp/owned' > .git/hooks/pre-commit; echo tried"
    result = contained("sh", "-c", script, options=("--write", str(repository)))
    assert result.out == "tried\n"
    assert os.listdir(repository / ".git" / "hooks") == []


PLANT_NEW = """
git init -q sub && mkdir .vscode && echo x > .envrc && mkfifo door && echo x > plain && echo done
python3 -c "import socket; s = socket.socket(socket.AF_UNIX); s.bind('listener')"
"""


@pytest.mark.needs("git")
def test_r138_what_is_new_and_run_by_others_is_named_at_the_end(contained: Contained) -> None:
    # Ordinary work makes such things, so it is not refused; the operator is told, and what an editor
    # would obey at once is out of the way.
    result = contained("sh", "-c", PLANT_NEW, options=("--write", str(contained.work), *UNIX))
    assert result.out == "done\n"
    assert contained.planted() == [".envrc", ".vscode.left-by-test", "door", "sub/.git"]
    # And the next run refuses the doors among them.
    assert contained("true").code == 103


def test_r134_a_folder_that_is_swapped_while_the_sandbox_is_built_is_noticed(contained: Contained) -> None:
    outside = contained.work.parent / "outside"
    outside.mkdir()
    (outside / "secret").write_text("secret")
    program = """
import os, sys
from pathlib import Path
from stockade.errors import ContainmentError
from stockade.reactor import Reactor
from stockade.sandbox.plan import SandboxRequest, plan_sandbox
from stockade.sandbox.probe import probe_host
from stockade.sandbox.supervise import Sandbox
work = Path.cwd()
plan = plan_sandbox(SandboxRequest(argv=("cat", "secret"), workspace=work), probe_host(
    SandboxRequest(argv=("cat", "secret"), workspace=work)))
if sys.argv[1] == "swap":
    os.rename(work, str(work) + ".old"); os.rename(work.parent / "outside", work)
try:
    Sandbox(plan, Reactor()).build(); print("built")
except ContainmentError as error:
    print(error.code)
"""
    for how, outcome in (("leave", "built\n"), ("swap", "view-changed\n")):
        done = subprocess.run(
            [sys.executable, "-c", program, how],
            cwd=contained.work,
            capture_output=True,
            text=True,
            timeout=15,
        )
        assert done.stdout == outcome, done.stderr


def test_r134_a_pinned_folder_that_is_swapped_for_a_link_is_noticed(contained: Contained) -> None:
    # Another run in the same workspace puts a link to a private folder where a folder above `.git` was.
    private = contained.work.parent / "private"
    (private / "lib" / ".git").mkdir(parents=True)
    nested = contained.work / "vendor" / "lib"
    nested.mkdir(parents=True)
    subprocess.run(["git", "init", "-q", str(nested)], check=True)
    program = f"""
import os
from pathlib import Path
from stockade.errors import StockadeError
from stockade.reactor import Reactor
from stockade.sandbox.plan import SandboxRequest, plan_sandbox
from stockade.sandbox.probe import probe_host
from stockade.sandbox.supervise import Sandbox
work = Path.cwd()
request = SandboxRequest(argv=("true",), workspace=work, write=(work,))
plan = plan_sandbox(request, probe_host(request))
os.rename("vendor", "aside"); os.symlink("{private}", "vendor")
try:
    Sandbox(plan, Reactor()).build(); print("built")
except StockadeError as error:
    print("refused")
"""
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=contained.work, capture_output=True, text=True, timeout=15
    )
    assert done.stdout == "refused\n", done.stderr


def test_f6_a_socket_beside_the_program_is_refused_too(contained: Contained) -> None:
    folder = contained.work.parent / "tools" / "app"
    folder.mkdir(parents=True)
    (folder / "run").write_text("#!/bin/sh\necho ran\n")
    (folder / "run").chmod(0o755)
    assert contained(str(folder / "run")).out == "ran\n"
    os.mkfifo(folder / "door")
    assert contained(str(folder / "run")).code == 103


def test_f14_a_planted_module_is_not_imported_by_the_stage_or_by_us(contained: Contained) -> None:
    # The stage runs with -I; a module of that name in the workspace, HOME or PYTHONPATH would run in PID 1.
    for name in ("select", "posix", "_socket", "sitecustomize", "usercustomize", "encodings"):
        (contained.work / f"{name}.py").write_text("import os; os.write(2, b'planted ran')")
    environment = {"PYTHONPATH": str(contained.work), "PYTHONSTARTUP": str(contained.work / "select.py")}
    result = subprocess.run(
        [sys.executable, "-P", *contained.command("true")[1:]],
        cwd=contained.work,
        capture_output=True,
        env={**os.environ, "PWD": str(contained.work), "PYTHONSTARTUP": environment["PYTHONSTARTUP"]},
        timeout=15,
    )
    assert result.returncode == 0
    assert b"planted ran" not in result.stderr
    assert b"PYTHON" not in contained("env", environment=environment).out.encode()


# --- the view of a run is the view that was judged -------------------------------------------


def make_environment(folder: Path) -> Path:
    """A virtual environment around the machine's Python, with one package in it."""
    library = folder / "lib" / f"python{sys.version_info[0]}.{sys.version_info[1]}" / "site-packages"
    library.mkdir(parents=True)
    (library / "kept.py").write_text("")
    (folder / "bin").mkdir()
    (folder / "bin" / "python").symlink_to(os.path.realpath("/usr/bin/python3"))
    (folder / "pyvenv.cfg").write_text("home = /usr/bin\n")
    return folder


def test_a_virtual_environment_outside_the_workspace_keeps_its_packages(contained: Contained) -> None:
    environment = make_environment(contained.work.parent / "environment")
    result = contained(str(environment / "bin" / "python"), "-c", "import kept, sys; print(sys.prefix)")
    assert result.out.strip() == str(environment), result.err


def test_a_planted_link_to_a_virtual_environment_does_not_show_it(contained: Contained) -> None:
    environment = make_environment(contained.work.parent / "environment")
    (contained.work / ".venv").symlink_to(environment)
    for program in (".venv/bin/python", str(contained.work / ".venv" / "bin" / "python"), "python3"):
        result = contained(program, "-c", f"import os; print(os.path.exists({str(environment / 'lib')!r}))")
        assert "True" not in result.out, program


def test_interpreters_outside_usr_are_shown_for_a_virtual_environment(contained: Contained) -> None:
    # A copy of the system's Python in a private prefix, and an environment made from it.
    prefix = contained.work.parent / "python"
    (prefix / "bin").mkdir(parents=True)
    version = subprocess.check_output(
        [PYTHON, "-c", "import sys; print('%d.%d' % sys.version_info[:2])"], text=True
    )
    library = prefix / "lib" / f"python{version.strip()}"
    library.parent.mkdir()
    library.symlink_to(f"/usr/lib/python{version.strip()}")
    real = prefix / "bin" / f"python{version.strip()}"
    real.write_bytes(Path(PYTHON).resolve().read_bytes())
    real.chmod(0o755)
    (contained.work / ".venv" / "bin").mkdir(parents=True)
    (contained.work / ".venv" / "bin" / "python").symlink_to(real)
    (contained.work / ".venv" / "pyvenv.cfg").write_text(f"home = {prefix}/bin\n")
    result = contained(".venv/bin/python", "-c", "import sys; print(sys.prefix, sys.base_prefix)")
    assert result.out.split() == [f"{contained.work}/.venv", str(prefix)], result.err


@pytest.mark.parametrize("place", ["/etc", "/usr", "/usr/bin", "/var", "/etc/ssl"])
def test_the_machine_s_own_places_are_never_writable(stockade: Any, place: str) -> None:
    run = stockade(["true"], extra=["--write", place])
    assert run.code == 102
    assert "path-not-written" in run.err
    assert place in run.err
