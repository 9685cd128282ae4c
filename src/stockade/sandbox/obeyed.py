"""Names in a writable folder that other programs of the host run or obey later. Pure.

A worker that may write a folder may plant such a file there and wait. How that is met
depends on how readily the name is obeyed:

* What exists is read-only for the worker, whatever it is (protection.py).
* What does not exist and is obeyed *without a question* by an editor or agent that the
  operator uses is held by an empty folder while the run is on (hold.py), and moved aside
  at the end if it appeared all the same (left_behind.py).
* What is asked about first is named at the end.
"""

from __future__ import annotations

from msgspec import Struct

from stockade.sandbox.paths import PathFact


class Obeyed(Struct, frozen=True):
    """One name.

    Attributes:
        name: Relative to the writable folder.
        why: Who obeys it.
        signs: Below the operator's home: who has one of these has used that program.
    """

    name: str
    why: str
    signs: tuple[str, ...] = ()


# Folders, all of them: an empty one of that name means nothing to its program and nothing to git.
UNASKED = (
    Obeyed(
        ".vscode",
        "tasks and settings that the editor obeys",
        (".vscode", ".vscode-server", ".config/Code", ".config/VSCodium"),
    ),
    Obeyed(".idea", "run configurations of the editor", (".config/JetBrains", ".cache/JetBrains")),
    Obeyed(".claude", "hooks and permissions of an agent", (".claude", ".claude.json")),
    Obeyed(".cursor", "hooks and permissions of an agent", (".cursor", ".config/Cursor")),
    Obeyed(".codex", "hooks and permissions of an agent", (".codex",)),
    Obeyed(".gemini", "hooks and permissions of an agent", (".gemini",)),
)
ASKED = (
    Obeyed(".envrc", "direnv runs it when the folder is entered, once it was allowed"),
    Obeyed(".devcontainer", "commands that the editor runs on the host, after a question"),
    Obeyed(".mcp.json", "servers that an agent starts, after a question"),
    Obeyed(".husky", "hooks, where git's settings name it"),
)
# Where the writable folder is somebody's home the next shell or login runs these, unasked.
OF_A_HOME = tuple(
    Obeyed(name, "run or obeyed where the folder is a home")
    for name in (
        *(".bashrc", ".bash_profile", ".bash_login", ".bash_logout", ".profile"),
        *(".zshrc", ".zshenv", ".zprofile", ".zlogin", ".xprofile", ".ssh", ".gitconfig"),
        *(".config/git", ".config/fish", ".config/autostart", ".config/systemd", ".config/environment.d"),
    )
)
EVERY_NAME = (*UNASKED, *ASKED, *OF_A_HOME)

# Inside a git folder: what git runs on the host when somebody types `git status` there, and
# what sends it to another folder for that (detour.py).
IN_GIT = ("hooks", "config", "config.worktree", "commondir")


class KeptLink(Struct, frozen=True):
    """A link in a protected place, with the text that it has."""

    path: str
    text: str


class Watched(Struct, frozen=True):
    """A file that git on the host runs or reads, by a setting; `state` is None where it does not exist."""

    path: str
    why: str
    state: tuple[int, int, int] | None


class Protection(Struct, frozen=True, kw_only=True):
    """What is done for one writable folder.

    Attributes:
        covered: Read-only for the worker; those without an inode are made first.
        held: Folders that stand there, empty and read-only, for the length of the run.
        links: Compared at the end.
        watched: Compared at the end.
    """

    covered: tuple[PathFact, ...] = ()
    held: tuple[PathFact, ...] = ()
    links: tuple[KeptLink, ...] = ()
    watched: tuple[Watched, ...] = ()
