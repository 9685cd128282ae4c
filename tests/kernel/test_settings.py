"""Settings and hooks that a worker would leave for other programs, there at the start or not (F14, R138)."""

from __future__ import annotations

import os
import signal
import stat
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from kernel_steps import IS_ROOT, Contained, Result

GIT = ("git", "-c", "user.name=a", "-c", "user.email=a@b.test", "-c", "safe.directory=*")


@pytest.fixture
def home(contained: Contained) -> Path:
    """An operator's home, who uses two of the programs."""
    for name in (".vscode", ".claude"):
        (contained.home / name).mkdir(parents=True)
    return contained.home


@pytest.fixture
def run(contained: Contained, home: Path) -> Callable[..., Result]:
    """Run a shell script in the writable workspace, as that operator."""

    def start(script: str, *options: str) -> Result:
        return contained("sh", "-c", script, options=("--write", str(contained.work), *options))

    return start


def git(*words: str, cwd: Path, home: Path | None = None) -> str:
    environment = {**os.environ, "HOME": str(home or "/nonexistent")}
    done = subprocess.run([*GIT, *words], cwd=cwd, capture_output=True, text=True, env=environment)
    return done.stdout + done.stderr


def left(contained: Contained) -> list[str]:
    return contained.planted()


# --- names that are held ------------------------------------------------------------------------------

PLANT = """
mkdir other; echo '{}' > other/settings.json
mkdir .claude && echo made
echo x > .claude/settings.json && echo written
rmdir .claude && echo removed; mv .claude aside && echo moved
mv other .claude 2>/dev/null && [ -e .claude/settings.json ] && echo replaced
ln -s other .vscode 2>/dev/null && [ -L .vscode ] && echo linked
ln -sfn other .claude 2>/dev/null && [ -e .claude/settings.json ] && echo linked
ls -A .claude .vscode
"""


def test_r138_settings_that_do_not_exist_cannot_be_made(
    contained: Contained, home: Path, run: Callable[..., Result]
) -> None:
    result = run(PLANT)
    assert result.out == ".claude:\n\n.vscode:\n"
    assert left(contained) == []
    assert sorted(os.listdir(contained.work)) == ["other"]  # no trace of what held the names
    # The control: of programs that this operator does not use nothing is held; what appears is moved aside.
    for name in (".claude", ".vscode"):
        (home / name).rmdir()
    result = run("mkdir .claude && echo x > .claude/settings.json; ln -s /tmp .vscode; echo done")
    assert result.out == "done\n"
    assert left(contained) == [".claude.left-by-test", ".vscode.left-by-test"]
    here = {f".claude.left-by-{contained.run}", f".vscode.left-by-{contained.run}", "other"}
    assert set(os.listdir(contained.work)) == here
    assert (contained.work / f".claude.left-by-{contained.run}" / "settings.json").read_text() == "x\n"


@pytest.mark.needs("git")
def test_git_sees_no_placeholder_neither_outside_nor_inside(contained: Contained, home: Path) -> None:
    git("init", "-q", cwd=contained.work)
    script = (
        f"{' '.join(GIT[:5])} status --porcelain; echo x > f; git add . && git status --porcelain; read x"
    )
    options = ("--write", str(contained.work))
    worker = contained.start("sh", "-c", script, options=options)
    assert worker.stdout is not None
    assert worker.stdout.readline() == b"A  f\n"
    assert (contained.work / ".claude").is_dir()
    assert git("status", "--porcelain", cwd=contained.work) == "A  f\n"
    worker.communicate(b"\n", timeout=15)
    assert not (contained.work / ".claude").exists()


def test_r138_two_runs_share_what_holds_a_name_and_the_last_one_removes_it(
    contained: Contained, home: Path, run: Callable[..., Result]
) -> None:
    held = contained.work / ".claude"
    script = "echo ready; read x; mkdir .claude 2>/dev/null || ls -A .claude; echo x > .claude/x"
    worker = contained.start("sh", "-c", script, options=("--write", str(contained.work)))
    assert worker.stdout is not None
    assert worker.stdout.readline() == b"ready\n"
    assert run("true").code == 0  # came second, ends first
    assert held.is_dir()
    assert worker.communicate(b"\n", timeout=15)[0] == b""
    assert not held.exists()


def test_what_a_killed_run_left_is_empty_and_goes_with_the_next(
    contained: Contained, home: Path, run: Callable[..., Result]
) -> None:
    options = ("--write", str(contained.work))
    worker = contained.start("sh", "-c", "echo ready; read x", options=options)
    assert worker.stdout is not None
    worker.stdout.readline()
    worker.send_signal(signal.SIGKILL)
    worker.communicate(timeout=15)
    assert os.listdir(contained.work / ".claude") == []
    assert run("echo x > .claude/x || echo held").out == "held\n"
    assert os.listdir(contained.work) == []


def test_what_the_operator_puts_in_the_place_stays(contained: Contained, home: Path) -> None:
    options = ("--write", str(contained.work))
    worker = contained.start("sh", "-c", "echo ready; read x", options=options)
    assert worker.stdout is not None
    worker.stdout.readline()
    (contained.work / ".claude" / "settings.json").write_text("mine")
    (contained.work / ".vscode").rmdir()
    (contained.work / ".vscode").mkdir()
    worker.communicate(b"\n", timeout=15)
    assert (contained.work / ".claude" / "settings.json").read_text() == "mine"
    # Another folder of that name may be the worker's: it is out of the way, and not lost.
    assert left(contained) == [".vscode.left-by-test"]


def test_a_name_that_the_operator_gives_by_name_is_the_worker_s(
    contained: Contained, run: Callable[..., Result]
) -> None:
    settings = contained.work / ".vscode"
    settings.mkdir()
    assert "Read-only" in run("echo x > .vscode/tasks.json").err
    assert run("echo x > .vscode/tasks.json", "--write", str(settings)).code == 0
    assert (settings / "tasks.json").read_text() == "x\n"
    assert left(contained) == []


def test_r138_what_is_in_the_way_of_moving_aside_does_not_help(contained: Contained, home: Path) -> None:
    # The worker knows the run's id, and the folder around is its own.
    (home / ".claude").rmdir()
    script = "mkdir -p .claude.left-by-$STOCKADE_RUN/x .claude; echo x > .claude/settings.json; chmod 555 ."
    options = ("--write", str(contained.work))
    contained("sh", "-c", script, options=options)
    assert not (contained.work / ".claude").exists()
    (moved,) = contained.facts["planted"]
    assert Path(moved, "settings.json").read_text() == "x\n"
    assert len(list(contained.work.glob(".claude.left-by-*"))) == 2
    assert stat.S_IMODE(contained.work.stat().st_mode) == 0o555
    contained.work.chmod(0o755)


@pytest.mark.needs("git")
def test_what_lies_in_a_protected_folder_is_read_only_too_and_left_as_it_is(
    contained: Contained, home: Path, run: Callable[..., Result]
) -> None:
    # A repository below protected settings: its own protection must not open the folder above it.
    nested = contained.work / ".claude" / "tree"
    nested.mkdir(parents=True)
    git("init", "-q", cwd=nested)
    git("config", "core.hooksPath", "own", cwd=nested)
    script = "for d in . tree tree/.git tree/.git/hooks; do echo x > .claude/$d/x; done"
    assert run(script + "; echo tried").out == "tried\n"
    assert not list(contained.work.rglob("x"))
    assert left(contained) == []


# --- links in a protected place -------------------------------------------------------------------------


def test_r138_a_link_in_a_protected_place_leads_to_protected_files_and_comes_back(
    contained: Contained, run: Callable[..., Result]
) -> None:
    (contained.work / "conf").mkdir()
    (contained.work / "conf" / "settings.json").write_text("mine")
    (contained.work / ".claude").symlink_to("conf")
    (contained.work / ".vscode").symlink_to("/somewhere/else")
    script = """
echo x > .claude/settings.json && echo written; echo x > conf/settings.json && echo written
mv conf aside && echo moved
mkdir own; rm .claude && ln -s own .claude && echo x > .claude/settings.json; rm .vscode
"""
    result = run(script)
    assert result.out == ""
    assert (contained.work / "conf" / "settings.json").read_text() == "mine"
    assert os.readlink(contained.work / ".claude") == "conf"
    assert os.readlink(contained.work / ".vscode") == "/somewhere/else"
    assert left(contained) == [".claude.left-by-test"]
    # Untouched, a link is nobody's business.
    assert run("true").code == 0
    assert left(contained) == []


# --- git: what the settings name ------------------------------------------------------------------------


@pytest.fixture
def repository(contained: Contained) -> Path:
    git("init", "-q", cwd=contained.work)
    return contained.work


def obeyed(repository: Path, home: Path | None = None) -> bool:
    """Whether something of the worker's ran when the operator used git."""
    marker = repository.parent / "obeyed"
    git("status", cwd=repository, home=home)
    git("commit", "-qm", "x", "--allow-empty", cwd=repository, home=home)
    was = marker.exists()
    marker.unlink(missing_ok=True)
    return was


def trap(repository: Path) -> str:
    """A program that tells on git."""
    return f"#!/bin/sh\ntouch {repository.parent}/obeyed\n"


SETTINGS = {
    "own hooks": ("config", "core.hooksPath", "tools/hooks"),
    "everybody's hooks": ("config", "--global", "core.hooksPath", ".githooks"),
    "monitor": ("config", "core.fsmonitor", "tools/monitor"),
    "include": ("config", "include.path", "../shared.cfg"),
}
PLANTED = {
    "own hooks": "tools/hooks/pre-commit",
    "everybody's hooks": ".githooks/pre-commit",
    "monitor": "tools/monitor",
    "include": "shared.cfg",
}


@pytest.mark.needs("git")
@pytest.mark.parametrize("is_there", [True, False], ids=["there", "not there"])
@pytest.mark.parametrize("kind", SETTINGS)
def test_r138_what_existing_git_settings_name_is_protected(
    contained: Contained, repository: Path, home: Path, run: Callable[..., Result], kind: str, is_there: bool
) -> None:
    git(*SETTINGS[kind], cwd=repository, home=home)
    planted = repository / PLANTED[kind]
    if is_there:
        planted.parent.mkdir(parents=True, exist_ok=True)
        planted.write_text("" if kind == "include" else "#!/bin/sh\n")
        planted.chmod(0o755)
    text = trap(repository)
    if kind == "include":
        text = f'[core]\n\tfsmonitor = "touch {repository.parent}/obeyed; false"\n'
    plant = f"mkdir -p {planted.parent}; printf %s '{text}' > {planted} && chmod 755 {planted}; echo tried"
    assert run(plant).out == "tried\n"
    assert not obeyed(repository, home)
    # The control: planted from outside, git obeys.
    planted.unlink(missing_ok=True)
    subprocess.run(["sh", "-c", plant], check=True, stdout=subprocess.DEVNULL)
    assert obeyed(repository, home)


@pytest.mark.needs("git")
def test_a_program_that_git_calls_may_be_changed_and_is_named(
    contained: Contained, repository: Path, run: Callable[..., Result]
) -> None:
    # It may well be what the command is to work on: said at the start, and at the end if it changed.
    (repository / "tools").mkdir()
    (repository / "tools" / "strip.py").write_text("old")
    git("config", "filter.strip.clean", "python3 tools/strip.py", cwd=repository)
    assert run("true").code == 0
    assert left(contained) == []
    (note,) = contained.facts["facts"]["notes"]
    assert "tools/strip.py (filter.strip.clean in " in note
    assert run("echo new > tools/strip.py").code == 0
    assert left(contained) == ["tools/strip.py"]


@pytest.mark.needs("git")
@pytest.mark.parametrize("place", ["whole", "work tree"])
def test_r138_settings_of_a_work_tree_cannot_be_made_where_git_obeys_them(
    contained: Contained, repository: Path, run: Callable[..., Result], place: str
) -> None:
    git("commit", "-qm", "one", "--allow-empty", cwd=repository)
    tree, folder = repository, repository / ".git"
    if place == "work tree":
        git("worktree", "add", "-q", "tree", cwd=repository)
        tree, folder = repository / "tree", folder / "worktrees" / "tree"
    git("config", "extensions.worktreeConfig", "true", cwd=repository)
    text = f'[core]\n\tfsmonitor = "touch {repository.parent}/obeyed; false"\n'
    script = f"printf %s '{text}' > {folder}/config.worktree; git -C {tree} status -s; echo tried"
    assert run(script).out.endswith("tried\n")
    git("status", cwd=tree)
    assert not (repository.parent / "obeyed").exists()
    assert not (folder / "config.worktree").exists()
    (folder / "config.worktree").write_text(text)  # the control
    git("status", cwd=tree)
    assert (repository.parent / "obeyed").exists()


@pytest.mark.needs("git")
def test_a_link_as_hooks_folder_leads_to_protected_hooks_and_comes_back(
    contained: Contained, repository: Path, run: Callable[..., Result]
) -> None:
    (repository / "githooks").mkdir()
    for path in (repository / ".git" / "hooks").iterdir():
        path.unlink()
    (repository / ".git" / "hooks").rmdir()
    (repository / ".git" / "hooks").symlink_to("../githooks")
    own = f"mkdir own; printf %s '{trap(repository)}' > own/pre-commit; chmod 755 own/pre-commit; "
    assert run(own + "cp own/pre-commit githooks/ && echo written; ln -sfn ../own .git/hooks").out == ""
    assert not obeyed(repository)
    (repository / ".git" / "hooks").unlink()
    (repository / ".git" / "hooks").symlink_to("../own")
    assert obeyed(repository)  # the control


# --- git: folders that the worker made ----------------------------------------------------------------

NEW_REPOSITORIES = {
    "hook": "printf '#!/bin/sh\\ntouch %s\\n' $M > sub/.git/hooks/pre-commit; chmod 755 sub/.git/hooks/*",
    "monitor": 'git -C sub config core.fsmonitor "touch $M; false"',
    "hooks elsewhere": "mkdir sub/h; printf '#!/bin/sh\\ntouch %s\\n' $M > sub/h/pre-commit;"
    " chmod 755 sub/h/*; git -C sub config core.hooksPath h",
    "include": "printf '[core]\\n\\tfsmonitor = \"touch %s; false\"\\n' $M > sub/i;"
    " git -C sub config include.path ../i",
    "work tree's": "git -C sub config extensions.worktreeConfig true;"
    ' git -C sub config --worktree core.fsmonitor "touch $M; false"',
    "linked hooks": "mkdir sub/h; printf '#!/bin/sh\\ntouch %s\\n' $M > sub/h/pre-commit; chmod 755 sub/h/*;"
    " rm -r sub/.git/hooks; ln -s ../h sub/.git/hooks",
    "linked settings": 'cp sub/.git/config sub/c; git config -f sub/c core.fsmonitor "touch $M; false";'
    " ln -sf ../c sub/.git/config",
}


@pytest.mark.needs("git")
@pytest.mark.parametrize("kind", NEW_REPOSITORIES)
def test_r138_what_a_new_repository_would_make_git_run_is_moved_aside(
    contained: Contained, run: Callable[..., Result], kind: str
) -> None:
    marker = contained.work.parent / "obeyed"
    script = f"M={marker}; git init -q sub; {NEW_REPOSITORIES[kind]}; echo done"
    assert run(script).out == "done\n"
    assert not obeyed_in(contained.work / "sub", marker)
    names = [Path(path).relative_to(contained.work).as_posix() for path in contained.facts["planted"]]
    assert "sub/.git" in names
    moved = [name for name in names if ".left-by-test" in name]
    assert len(moved) == 1, names
    # The control: what was moved aside is put back, and obeyed.
    for name in moved:
        back = contained.work / name.partition(".left-by")[0]
        if back.is_dir() and not back.is_symlink():
            back.rmdir()
        (contained.work / name).rename(back)
    assert obeyed_in(contained.work / "sub", marker)


def obeyed_in(repository: Path, marker: Path) -> bool:
    git("status", cwd=repository)
    git("commit", "-qm", "x", "--allow-empty", cwd=repository)
    was = marker.exists()
    marker.unlink(missing_ok=True)
    return was


ORDINARY_GIT = """
git() { command git -c user.name=a -c user.email=a@b.test -c protocol.file.allow=always "$@"; }
git init -q lib && git -C lib commit -qm one --allow-empty
git clone -q lib copy && git -C copy remote add other ssh://git@host.test/x.git
git init -q top && cd top && git submodule --quiet add ../lib lib && git commit -qm two
git worktree add -q ../tree && cd .. && git -C tree log --format=%s
"""


@pytest.mark.needs("git")
def test_ordinary_new_repositories_are_named_and_left_alone(
    contained: Contained, run: Callable[..., Result]
) -> None:
    result = run(ORDINARY_GIT)
    assert (result.out, result.code) == ("two\n", 0), result.err
    assert left(contained) == [
        "copy/.git", "lib/.git", "top/.git", "top/.git/modules/lib", "top/lib/.git", "tree/.git",
    ]  # fmt: skip
    for name, subject in (("copy", "one"), ("top", "two"), ("top/lib", "one"), ("tree", "two")):
        assert git("log", "--format=%s", cwd=contained.work / name) == f"{subject}\n"
    assert "ssh://git@host.test/x.git" in git("remote", "-v", cwd=contained.work / "copy")


@pytest.mark.needs("git")
def test_a_rebase_that_waits_with_a_command_is_named(
    contained: Contained, repository: Path, run: Callable[..., Result]
) -> None:
    for name in ("one", "two", "three"):
        git("commit", "-qm", name, "--allow-empty", cwd=repository)
    rebase = "git -c user.name=a -c user.email=a@b.test -c sequence.editor='sed -i \"1i break\"' rebase -q -i"
    assert run(f"{rebase} --keep-empty HEAD~1").code == 0
    assert left(contained) == []
    git("rebase", "--abort", cwd=repository)
    assert run(f"{rebase} --keep-empty --exec 'touch /tmp/x' HEAD~1").code == 0
    assert left(contained) == [".git/rebase-merge/git-rebase-todo"]


@pytest.mark.needs("git")
def test_more_git_folders_than_can_be_covered_are_refused(
    contained: Contained, run: Callable[..., Result]
) -> None:
    def make(number: int) -> None:
        folder = contained.work / f"r{number}" / ".git"
        (folder / "objects").mkdir(parents=True)
        (folder / "refs").mkdir()
        (folder / "hooks").mkdir()
        (folder / "HEAD").write_text("ref: refs/heads/main\n")
        (folder / "config").write_text("")

    for number in range(500):
        make(number)
    covered = run("for n in 0 250 499; do echo x > r$n/.git/config; done; echo tried")
    assert covered.out == "tried\n"
    assert [(contained.work / f"r{n}" / ".git" / "config").read_text() for n in (0, 250, 499)] == [""] * 3
    make(500)
    refused = run("touch started")
    assert (refused.code, "too-many-git-folders" in refused.err) == (103, True)
    assert not (contained.work / "started").exists()
    # What the command does not need can be hidden.
    assert run("touch started", "--hide", str(contained.work / "r500")).code == 0


# --- what cannot be looked into --------------------------------------------------------------------------


@pytest.mark.skipif(IS_ROOT, reason="root looks into everything")
def test_a_folder_that_cannot_be_searched_is_refused_and_one_made_so_is_named(
    contained: Contained, run: Callable[..., Result]
) -> None:
    # Its owner could open it again, and one who knows a name needs no list.
    script = "mkdir -p dark/sub/.git; chmod 311 dark"
    assert run(script).code == 0
    assert left(contained) == ["dark"]
    refused = run("touch started")
    assert (refused.code, "view-not-searchable" in refused.err) == (103, True)
    assert f"{contained.work}/dark" in refused.err
    assert run("touch started", "--hide", str(contained.work / "dark")).code == 0
    (contained.work / "dark").chmod(0o755)


# --- a home as workspace ---------------------------------------------------------------------------------


def test_shell_start_files_that_appear_in_a_home_are_moved_aside(contained: Contained, home: Path) -> None:
    (home / ".profile").write_text("mine")
    script = "echo x >> .profile; for f in .zshenv .bash_profile; do echo x > $f; done; mkdir -p .config/fish"
    options = ("--write", str(home))
    assert contained("sh", "-c", script, options=options, cwd=home).code == 0
    assert (home / ".profile").read_text() == "mine"
    moved = contained.planted(home)
    assert moved == [".bash_profile.left-by-test", ".config/fish.left-by-test", ".zshenv.left-by-test"]
    # In a folder that is nobody's home they are named, and stay.
    assert contained("sh", "-c", "echo x > .zshenv", options=("--write", str(contained.work))).code == 0
    assert left(contained) == [".zshenv"]
    assert (contained.work / ".zshenv").exists()


# --- files that give rights ------------------------------------------------------------------------------


# struct vfs_cap_data, revision 2 and effective, with CAP_NET_RAW permitted (linux/capability.h)
CAP_NET_RAW = "01000002" + "00200000" + "0" * 24


@pytest.mark.needs("root")
def test_r131_files_that_give_rights_are_named(contained: Contained, run: Callable[..., Result]) -> None:
    for name in ("plain", "setuid", "capable"):
        (contained.work / name).write_text("x")
    (contained.work / "setuid").chmod(0o4755)
    os.setxattr(contained.work / "capable", "security.capability", bytes.fromhex(CAP_NET_RAW))
    give = f"os.setxattr('plain', 'security.capability', bytes.fromhex('{CAP_NET_RAW}'))"
    script = f'python3 -c "import os; {give}"'
    assert "Operation not permitted" in run(script).err
    assert left(contained) == ["capable", "setuid"]


def test_names_with_controls_are_shown_escaped(stockade, workspace: Path) -> None:  # type: ignore[no-untyped-def]
    script = "import os; os.mkfifo('a\\x1b]0;x\\x07\\nb'); os.mkfifo(b'\\xff\\xc2\\x9b')"
    done = stockade(["python3", "-c", script], "", extra=["--write", "."])
    assert done.code == 0, done.err
    assert "\x1b" not in done.err
    assert "\x9b" not in done.err
    shown = [line for line in done.err.splitlines() if str(workspace) in line]
    assert len(shown) == 2
    assert "\\u{1b}" in shown[0]
