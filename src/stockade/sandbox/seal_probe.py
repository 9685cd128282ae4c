"""What the seal needs to know of this host: programs as files, library folders, what the kernel can do."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence

from stockade.policy.model import ExecPolicy
from stockade.sandbox.landlock import probe_landlock
from stockade.sandbox.library_scan import open_library_folders
from stockade.sandbox.paths import PathFact, probe_path
from stockade.sandbox.programs import probe_programs
from stockade.sandbox.seal import SealFacts

# The system's library folders; libexec holds programs only and stays closed.
_SYSTEM_FOLDERS = ("/usr/lib", "/usr/lib32", "/usr/lib64", "/usr/libx32", "/usr/local/lib", "/usr/local/lib64")
_ROOT_NAMES = ("/lib", "/lib32", "/lib64", "/libx32")


def probe_seal(
    policy: ExecPolicy,
    *,
    launched: str,
    workspace: str,
    writable: Sequence[str],
    libraries: Iterable[PathFact],
    search_path: Sequence[str],
    root_folders: Iterable[str],
) -> SealFacts:
    """Find out what a seal on this host would be made of.

    Args:
        policy: The policy's `exec:`.
        launched: The launched command's file, empty if it was not found.
        workspace: What relative paths of the policy are below.
        writable: Folders that the worker may write.
        libraries: What is shown of the host for the command (program.py).
        search_path: The worker's PATH.
        root_folders: ``/lib`` and the like where they are folders of their own.

    Raises:
        UserError: A path of the policy cannot be used.
    """
    abi = probe_landlock()
    if policy.mode == "any":
        return SealFacts(landlock_abi=abi)
    programs = probe_programs(
        policy, launched=launched, workspace=workspace, writable=writable, search_path=search_path
    )
    wanted = [program.path for program in programs.programs]
    system, closed = [], []
    for folder in (*_SYSTEM_FOLDERS, *(path for path in root_folders if path in _ROOT_NAMES)):
        if os.path.isdir(folder) and not os.path.islink(folder):
            system.append(folder)
            closed += open_library_folders(folder, wanted)[1]
    own = [fact.path for fact in libraries if fact.is_folder and os.path.basename(fact.path) != "bin"]
    return SealFacts(
        programs=programs,
        system_folders=tuple(system),
        library_folders=(*own, *_listed_folders(policy, workspace)),
        closed=tuple(closed),
        landlock_abi=abi,
    )


def _listed_folders(policy: ExecPolicy, workspace: str) -> list[str]:
    """The folders of `exec: libraries` that exist; a link in such a path is refused."""
    paths = [os.path.normpath(os.path.join(workspace, os.path.expanduser(text))) for text in policy.libraries]
    return [
        probe_path(path, "exec.libraries").path for path in dict.fromkeys(paths) if os.path.lexists(path)
    ]
