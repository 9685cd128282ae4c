"""Starting a contained run: the order of steps, and what is undone when one fails.

The order is the promise. The policy is loaded and what it asks for is refused if it cannot
be kept; the sandbox is planned, then built; only then the ledger is opened and the worker
let go (`run.session`). Whatever fails says which step it was, and the command never starts.

Importing the engine and the gateway takes as long as building the sandbox, so it is done
while the kernel and the stage's Python are at work, and so is what needs no sandbox.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from functools import partial
from importlib import import_module
from pathlib import Path

from stockade.ledger.record import clean_text, new_run_id
from stockade.ledger.store import default_shelf
from stockade.reactor import Reactor
from stockade.run.options import RunOptions
from stockade.run.own_files import resolve_own, worker_folders
from stockade.run.prepare import find_workspace, load_run_policy, plan_run
from stockade.sandbox.supervise import Sandbox


def run_contained(options: RunOptions) -> int:
    """Run the command of `options` contained, and return the exit code for the shell.

    Raises:
        StockadeError: A failure of ours; the command did not start, or was killed.
    """
    policy = load_run_policy(options)
    workspace = os.path.realpath(find_workspace())
    folders = worker_folders(options, policy)
    shelf = find_shelf(options, workspace, folders)
    run_id = options.run_id or new_run_id(time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()), os.urandom(4))
    report = None
    if options.report is not None and not options.is_dry_run:
        from stockade.run.report import ReportFile

        # Before the plan: what is there can be covered.
        report = ReportFile(options.report, (workspace, *folders))
    plan = plan_run(options, policy, shelf, run_id)
    if options.is_dry_run:
        from stockade.run.planned import print_plan

        print_plan(plan, policy.exec, as_json=options.as_json)
        return 0
    if not options.is_quiet:
        for note in plan.notes:
            print(f"stockade: {clean_text(note, 300)}", file=sys.stderr)
    reactor = Reactor()
    sandbox = Sandbox(plan, reactor)
    try:
        # The sandbox forks, which is sound only while there is one thread; the ledger starts a second.
        sockets = sandbox.build(_MEANWHILE)
        from stockade.run.session import Session

        covered = sandbox.identity_of(str(shelf))
        session = Session(options, policy, shelf, run_id, reactor, sandbox, sockets, covered)
        return session.run(report)
    finally:
        sandbox.kill()
        sandbox.close()


def find_shelf(options: RunOptions, workspace: str, folders: tuple[str, ...]) -> Path:
    """The shelf of ledgers as a real path.

    Raises:
        UserError: It, or the policy, is reached through a link that a command may have planted.
    """
    if options.policy_file is not None:
        resolve_own(options.policy_file, folders, "--policy")
    if options.ledger is None:
        return resolve_own(default_shelf(), folders, "the ledger")
    return resolve_own(options.ledger, (workspace, *folders), "--ledger")


def _remember_software() -> None:
    from stockade.run.opening import software_digest

    software_digest()


def _remember_registries() -> None:
    from stockade.run.registries import own_registries

    own_registries()


# The rest of what a run imports, to its end, and what its session will ask for and is then remembered.
_MEANWHILE: tuple[Callable[[], object], ...] = (
    partial(import_module, "stockade.decision.engine"),
    partial(import_module, "stockade.gateway.server"),
    partial(import_module, "stockade.run.session"),
    partial(import_module, "stockade.run.report"),
    partial(import_module, "stockade.sandbox.left_behind"),
    _remember_software,
    _remember_registries,
)
