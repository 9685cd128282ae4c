"""What happens before anything starts: load the policy, refuse what cannot be kept, plan."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from stockade.errors import UserError
from stockade.policy.model import DENY_ALL, ExecPolicy, Policy
from stockade.run.options import RunOptions
from stockade.sandbox.plan import SandboxPlan

if TYPE_CHECKING:
    from stockade.sandbox.limits import LimitRequest


def load_run_policy(options: RunOptions) -> Policy:
    """Load the policy of the command line, or the one that denies everything."""
    return DENY_ALL if options.policy_file is None else load_runnable(options.policy_file)


def load_runnable(file: Path) -> Policy:
    """Load a policy that a run can keep to the letter.

    Raises:
        UserError: The file does not load, or asks for what `run` cannot enforce yet.
    """
    from stockade.policy.load import load_policy
    from stockade.policy.runnable import run_refusals

    policy = load_policy(file)
    refusals = run_refusals(policy)
    if refusals:
        raise refusals[0]
    read_secrets(policy, os.environ)
    return policy


def read_secrets(policy: Policy, environment: Mapping[str, str]) -> dict[str, str]:
    """The credentials that the policy's rules name, by variable; the worker never holds them.

    Raises:
        UserError: A variable that is not set, or holds what no header field may hold.
    """
    found: dict[str, str] = {}
    for rule in policy.rules:
        if rule.credential is None:
            continue
        name = rule.credential.env
        value = environment.get(name, "")
        if not value:
            raise UserError(
                "credential-missing",
                f"{rule.origin}: the rule puts in the value of {name}, and that variable is not set",
                f"set it for stockade, not for the command: {name}=… stockade run …",
            )
        if not (value.isascii() and value.isprintable()):
            raise UserError(
                "credential-malformed",
                f"{rule.origin}: the value of {name} holds what a header field may not hold",
                "it is one line of ASCII",
            )
        found[name] = value
    return found


def plan_run(options: RunOptions, policy: Policy, shelf: Path, run_id: str) -> SandboxPlan:
    """Plan the worker's sandbox from the options, the policy's `files:` and `limits:`, and this host.

    Raises:
        UserError: A path that cannot be used, or a layer that cannot be given up.
        HostError: Something that the sandbox needs is missing.
    """
    from stockade.sandbox.plan import SandboxRequest, plan_sandbox
    from stockade.sandbox.probe import probe_host

    workspace = find_workspace()
    files = policy.files
    cache = default_cache()
    own = [shelf, *map(Path, policy.paths), *([cache] if cache else [])]
    own += [path for path in (options.policy_file, options.report) if path is not None]
    request = SandboxRequest(
        argv=options.argv,
        workspace=workspace,
        read=(*_absolute(files.read, workspace), *(_below(workspace, path) for path in options.readable)),
        write=(*_absolute(files.write, workspace), *(_below(workspace, path) for path in options.writable)),
        hide=_absolute(files.hide, workspace),
        invisible=tuple(_below(workspace, path) for path in own),
        caller_environment=dict(os.environ),
        extra_environment=options.environment,
        limits=_limits_of(policy),
        exec=policy.exec or ExecPolicy(),
        layers_off=options.layers_off,
        debugging_pipe=options.debugging_pipe,
        run_id=run_id,
        cache_folder=str(cache or ""),
    )
    return plan_sandbox(request, probe_host(request))


def _limits_of(policy: Policy) -> LimitRequest:
    """Those of the policy's limits that the sandbox holds; the gateway holds the others."""
    from stockade.sandbox.limits import LimitRequest

    limits = policy.limits
    return LimitRequest(
        memory_bytes=limits.memory_bytes,
        processes=limits.processes,
        open_files=limits.open_files,
        file_size_bytes=limits.file_size_bytes,
        time_s=limits.time_s,
        origin=limits.origin,
    )


def default_cache() -> Path | None:
    """``$XDG_CACHE_HOME/stockade`` or ``~/.cache/stockade``, for what is remembered; None without a home."""
    root = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    return Path(root) / "stockade" if os.path.isabs(root) else None


def find_workspace() -> Path:
    """The working folder, by the name that the shell has for it."""
    try:
        here = Path.cwd()
    except OSError as error:
        hint = "change into a folder that exists"
        raise UserError("workspace-gone", f"the working folder: {error.strerror}", hint) from error
    named = Path(os.environ.get("PWD") or here)
    return named if _is_here(named) else here


def _is_here(folder: Path) -> bool:
    """True if a shell's PWD really names the working folder (it keeps the links by which one came)."""
    try:
        return folder.is_absolute() and folder.samefile(".")
    except OSError:
        return False


def _absolute(written: tuple[str, ...], workspace: Path) -> tuple[Path, ...]:
    return tuple(_below(workspace, Path(text)) for text in written)


def _below(workspace: Path, path: Path) -> Path:
    """An absolute path without ``..``; links stay, the sandbox decides what it thinks of them."""
    return Path(os.path.normpath(workspace / path.expanduser()))
