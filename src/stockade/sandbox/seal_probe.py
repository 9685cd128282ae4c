"""What the seal needs to know of this host: programs as files, library folders, what the kernel can do."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence

from stockade.policy.model import ExecPolicy
from stockade.sandbox.landlock import probe_landlock
from stockade.sandbox.paths import PathFact, probe_path
from stockade.sandbox.programs import probe_programs
from stockade.sandbox.seal import SealFacts


def probe_seal(
    policy: ExecPolicy,
    *,
    launched: str,
    workspace: str,
    writable: Sequence[str],
    libraries: Iterable[PathFact],
    search_path: Sequence[str],
    is_shown: Callable[[str], bool],
    cache_folder: str,
) -> SealFacts:
    """Find out what a seal on this host would be made of.

    Args:
        policy: The policy's `exec:`.
        launched: The launched command's file, empty if it was not found.
        workspace: What relative paths of the policy are below.
        writable: Folders that the worker may write.
        libraries: What is shown of the host for the command (program.py).
        search_path: The worker's PATH.
        is_shown: Whether the view will show a real path.
        cache_folder: Where searches of library folders are remembered.

    Raises:
        UserError: A path of the policy cannot be used.
    """
    abi, refusal = probe_landlock()
    if policy.mode == "any":
        return SealFacts(landlock_abi=abi, landlock_errno=refusal)
    programs = probe_programs(
        policy,
        launched=launched,
        workspace=workspace,
        writable=writable,
        search_path=search_path,
        is_shown=is_shown,
    )
    own = [fact.path for fact in libraries if fact.is_folder and os.path.basename(fact.path) != "bin"]
    return SealFacts(
        programs=programs,
        libraries=(*own, *_listed_folders(policy, workspace)),
        cache_folder=cache_folder,
        landlock_abi=abi,
        landlock_errno=refusal,
    )


def _listed_folders(policy: ExecPolicy, workspace: str) -> list[str]:
    """The folders of `exec: libraries` that exist; a link in such a path is refused."""
    paths = [os.path.normpath(os.path.join(workspace, os.path.expanduser(text))) for text in policy.libraries]
    return [probe_path(path, "exec.libraries").path for path in dict.fromkeys(paths) if os.path.lexists(path)]
