"""Stockade's own files (policy, ledger, report) where a worker may write beside them.

Such a path is resolved once, and no link on the way may lie in a folder that the command
writes: an earlier command could have planted it, and the next policy, ledger or report would
be its choice (R134, R138). From then on the real path is opened without following links, so
one that appears later is an error and no way out.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

from stockade.errors import UserError
from stockade.policy.model import Policy
from stockade.run.options import RunOptions
from stockade.sandbox.program import link_hops
from stockade.sandbox.view import is_below


def worker_folders(options: RunOptions, policy: Policy) -> tuple[str, ...]:
    """The folders that the command may write, as real paths."""
    named = [*options.writable, *map(Path, policy.files.write)]
    return tuple(os.path.realpath(path.expanduser()) for path in named)


def resolve_own(path: Path, folders: Iterable[str], asked_by: str) -> Path:
    """The real path of a file or folder of ours, which need not exist.

    Raises:
        UserError: A link on the way, or the last part itself, lies in one of these folders.
    """
    whole = os.path.normpath(os.path.join(os.getcwd(), path.expanduser()))
    for hop in link_hops(whole):
        if any(is_below(hop, folder) for folder in folders):
            raise UserError(
                "own-file-through-link",
                f"{asked_by} {path}: {hop} is a link in a folder that a command may write",
                f"name the place itself: {os.path.realpath(whole)}, if that is what you mean",
            )
    return Path(os.path.realpath(whole))
