"""The first record of a run: what is enforced, by what software, under which policy, where."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import stockade

if TYPE_CHECKING:
    from stockade.run.session import Session


def opening_fields(session: Session) -> dict[str, object]:
    """Say what this run promises, before anything of the worker has run."""
    options, policy = session.options, session.policy
    return {
        "argv": list(options.argv),
        "policy": policy.digest,
        "policy_source": policy.source,
        "phase": str(session.phase),
        "identity": str(options.identity),
        "resolve": {name: [str(a) for a in addresses] for name, addresses in options.resolve.items()},
        "upstream_proxy": None if session.upstream is None else session.upstream.text,
        "commands": session.sandbox.facts.commands,
        "commands_named": "all" if options.names_commands else "refused",
        "enforced": session.sandbox.facts.to_fields(),
        "layers_off": sorted(options.layers_off),
        "debugging_pipe": options.debugging_pipe,
        "limits": {
            "connections": policy.limits.connections,
            "upload_bytes": policy.limits.upload_bytes,
        },
        "software": {"stockade": stockade.__version__, "digest": software_digest()},
        "host": host_fields(),
    }


def host_fields() -> dict[str, object]:
    """Facts of this machine that a reader of the record needs to judge it."""
    kernel = os.uname()
    return {
        "kernel": kernel.release,
        "machine": kernel.machine,
        "uid": os.getuid(),
        "boot": Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip(),
    }


@cache
def software_digest() -> str:
    """SHA-256 over the package's own files, names and contents in order: what was running."""
    digest = hashlib.sha256()
    root = os.path.dirname(stockade.__file__)
    for path in sorted(_source_files(root)):
        with open(path, "rb", buffering=0) as file:
            digest.update(os.fsencode(path[len(root) + 1 :]) + b"\0" + file.read() + b"\0")
    return digest.hexdigest()


def _source_files(folder: str) -> Iterator[str]:
    """Plain strings: `Path` objects would take three times as long, in every start."""
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.is_dir():
                if entry.name != "__pycache__":
                    yield from _source_files(entry.path)
            elif entry.name.endswith((".py", ".json", ".yaml", ".jinja")):
                yield entry.path
