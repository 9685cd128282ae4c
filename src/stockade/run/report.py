"""What is said when a run ends: its last record, the report file, the summary for people."""

from __future__ import annotations

import os
import stat
import sys
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from stockade.errors import StockadeError, UserError
from stockade.gateway.journal import Denial, Journal
from stockade.ledger.record import Redactor, clean_text
from stockade.policy.model import DENY_ALL
from stockade.run.advice import Ending, advise, explain_start_failure
from stockade.run.completeness import Completeness
from stockade.run.own_files import resolve_own
from stockade.run.planned import find_places
from stockade.run.refused import describe_commands, describe_compilers, sort_denials
from stockade.sandbox import kernel
from stockade.sandbox.supervise import WorkerExit
from stockade.vocabulary import Reason, Verdict

if TYPE_CHECKING:
    from stockade.run.session import Session

DENIALS_SHOWN = 12
LINE_LIMIT = 1000  # what would permit it stands at the end of a line


def closing_fields(
    session: Session,
    ended: WorkerExit | None,
    failure: StockadeError | None,
    completeness: Completeness | None,
) -> dict[str, object]:
    """The last record: how it ended, whose the exit code is, and whether all is on record."""
    attempts = session.journal.attempts
    return {
        "exit_code": ended.shell_code if ended is not None else None,
        "exit_of": "command" if failure is None and ended is not None else "stockade",
        "signal": ended.signal if ended is not None else None,
        "failure": None if failure is None else {"code": failure.code, "message": failure.message},
        "limits_reached": msgspec.to_builtins(session.limits_reached()),
        "usage": msgspec.to_builtins(session.sandbox.limit_usage()),
        "attempts": {verdict.word: attempts[verdict] for verdict in Verdict},
        "complete": completeness is not None and completeness.is_exact,
        "inexact_by": None if completeness is None else completeness.missing,
        "completeness": None if completeness is None else completeness.detail,
        "command_names": session.command_names.counts(),
    }


def print_start_failure(program: str, step: str, number: int) -> None:
    """Say why the command did not start, as a shell would; the exit code alone says no name."""
    what = clean_text(program, 200) if step == "exec" else f"{clean_text(program, 200)} ({step})"
    print(f"stockade: cannot start {what}: {os.strerror(number)}", file=sys.stderr)
    hint = explain_start_failure(program, number) if step == "exec" and "/" in program else None
    if hint is not None:
        print(f"hint: {clean_text(hint, 300)}", file=sys.stderr)


def print_summary(
    session: Session, completeness: Completeness | None, left_behind: list[str], code: int
) -> None:
    """Tell the person, on standard error, what was refused and how it could be allowed."""
    advice = [_clean(line, session.ledger.redactor) for line in advise(describe_ending(session, code))]
    lines = [*summary_lines(session, completeness, advice), *left_behind_lines(left_behind)]
    if lines:
        print("\n".join(lines), file=sys.stderr)


def describe_ending(session: Session, code: int) -> Ending:
    """What `advise` looks at, from a run that has ended with an exit code."""
    plan, journal, policy = session.sandbox.plan, session.journal, session.policy.exec
    launched = next((program for program in plan.seal.programs if program.why == "launched"), None)
    common = journal.common_denials.items()
    sockets = Counter({program: n for (reason, program), n in common if reason is Reason.CONTROL_SOCKET})
    return Ending(
        code=code,
        mode=plan.seal.code,
        started=frozenset()
        if session.commands is None
        else frozenset(map(os.path.basename, session.commands.started)),
        permitted=tuple(program.path for program in plan.seal.programs),
        missing=plan.seal.missing,
        has_preset=policy is not None and any(map(policy.is_of_preset, policy.allow)),
        places=find_places(plan, policy),
        launched_script=launched.path if launched is not None and launched.is_script else "",
        refused=tuple(dict.fromkeys(d.program for d in journal.denials if d.entry and not d.is_script)),
        writable=tuple(map(str, plan.writable)) if plan.seal.lists_programs else (),
        denied_any=bool(journal.denials),
        denied_programs=any(denial.entry for denial in journal.denials),
        unix_sockets_refused=sockets.total(),
        unix_sockets_wanted_by=tuple(map(os.path.basename, sockets)),
    )


def summary_lines(
    session: Session, completeness: Completeness | None, advice: Sequence[str] = ()
) -> list[str]:
    """The summary's lines; none when nothing was refused or out of reach and all is on record."""
    journal = session.journal
    denied = journal.attempts[Verdict.DENY] - journal.common_denials.total()
    lines: list[str] = []
    if denied:
        passed = journal.attempts.total() - journal.attempts[Verdict.DENY] - journal.commands_started
        of_them = _questions_among(journal, denied)
        lines.append(f"stockade: {_count(denied, 'attempt')} denied{of_them}, {passed} let through")
        lines += _denial_lines(journal, session.ledger.redactor)
    lines += [f"stockade: {line}" for line in advice]
    if lines and session.policy.source == DENY_ALL.source:
        lines.append(
            "stockade: no policy was given: put `version: 1` and the lines you want into a file for -p FILE"
        )
    lines += _unreached_lines(journal, session.ledger.redactor)
    lines += [f"stockade: {limit.message}" for limit in session.limits_reached()]
    if completeness is not None and not completeness.is_exact:
        amount = "an unknown number" if completeness.missing is None else str(completeness.missing)
        lines.append(f"stockade: the record is inexact by {amount} ({completeness.detail})")
    if lines:
        lines.append(f"stockade: the whole record: {_log_command(session)}")
    return lines


def _denial_lines(journal: Journal, redactor: Redactor) -> list[str]:
    parts = sort_denials(shown_denials(journal))
    lines = [_denial_line(denial, times, redactor) for denial, times in parts.others[:DENIALS_SHOWN]]
    left_out = len(parts.others) - DENIALS_SHOWN + journal.denials_left_out
    if left_out > 0:
        lines.append(f"  … and {_count(left_out, 'other kind')} of refusal")
    if parts.commands:
        times, (names, offer) = describe_commands(parts.commands)
        lines += [_line(times, names, redactor), f"       {_clean(offer, redactor)}"]
    return lines + [_line(times, text, redactor) for times, text in describe_compilers(parts.compilers)]


def _line(times: int, text: str, redactor: Redactor) -> str:
    return f"  {_times(times)} {_clean(text, redactor)}"


def _clean(text: str, redactor: Redactor) -> str:
    return clean_text(redactor.text(text), LINE_LIMIT)


def _unreached_lines(journal: Journal, redactor: Redactor) -> list[str]:
    """What was permitted and not reached: else a wrong name or a dead host looks like a refusal."""
    if not journal.unreached:
        return []
    lines = [f"stockade: {_count(journal.unreached.total(), 'permitted attempt')} reached nothing"]
    for place, times in journal.unreached.most_common(DENIALS_SHOWN):
        target = clean_text(redactor.url(place.target), 100)
        lines.append(f"  {_times(times)} {target}  {place.outcome}: {clean_text(place.detail, 100)}")
    more = len(journal.unreached) - DENIALS_SHOWN
    return [*lines, f"  … and {_count(more, 'other place')}"] if more > 0 else lines


def left_behind_lines(paths: list[str]) -> list[str]:
    """What the worker put where other programs of this host run or obey it."""
    if not paths:
        return []
    shown = [f"       {clean_text(path, 300)}" for path in paths[:DENIALS_SHOWN]]
    more = len(paths) - len(shown)
    is_moved = any(".left-by-" in path for path in paths)
    return [
        "stockade: left behind, and run or obeyed by other programs; look before you use the folder",
        *shown,
        *([f"  … and {more} more"] if more > 0 else []),
        *(["       what ends in .left-by-… was put aside; rename it back to use it"] if is_moved else []),
    ]


def shown_denials(journal: Journal) -> list[tuple[Denial, int]]:
    """Refusals for the summary, most frequent first; a question is left out if its connection is there."""
    dialled = {denial.name for denial in journal.denials if not denial.is_question}
    return [
        (denial, times)
        for denial, times in journal.denials.most_common()
        if not (denial.is_question and denial.name in dialled)
    ]


def _questions_among(journal: Journal, denied: int) -> str:
    """One connection asks for its name once or twice before it: said, so that the number is understood."""
    questions = sum(times for denial, times in journal.denials.items() if denial.is_question)
    if not 0 < questions < denied or journal.denials_left_out:
        return ""
    return f" ({_count(questions, 'name question')} among them)"


def _denial_line(denial: Denial, times: int, redactor: Redactor) -> str:
    target, why = clean_text(redactor.url(denial.target), 100), _clean(denial.why, redactor)
    return f"  {_times(times)} {target}  {denial.reason}: {why}"


def _times(times: int) -> str:
    return f"{times}×".rjust(4) if times > 1 else "    "


def _log_command(session: Session) -> str:
    place = "" if session.options.ledger is None else f" --ledger {session.shelf}"
    return f"stockade log{place} --run {session.run_id}"


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"


class ReportFile:
    """The file of ``--report``: opened before the worker starts, so that no link it plants is followed.

    Raises:
        UserError: The file cannot be created, or is a link.
    """

    def __init__(self, path: Path, folders: Iterable[str] = ()) -> None:
        """Open it.

        Args:
            path: As it was given.
            folders: Where commands write, or may have written: no link there is followed.
        """
        # O_NONBLOCK: opening a FIFO that an earlier worker left must not wait for a reader.
        flags = os.O_WRONLY | os.O_CREAT | os.O_NONBLOCK | os.O_NOCTTY
        hint = "name a file (not a link) that you may write"
        try:
            parent = resolve_own(path.parent, folders, "--report")
            self._fd = kernel.open_without_links(str(parent / path.name), flags, 0o600)
            if not stat.S_ISREG(os.fstat(self._fd).st_mode):
                os.close(self._fd)
                raise UserError("report-unwritable", f"--report {path}: it is no regular file", hint)
            os.truncate(self._fd, 0)
        except UserError as error:
            raise UserError("report-unwritable", error.message, error.hint) from error
        except OSError as error:
            text = os.strerror(error.errno or 0)
            raise UserError("report-unwritable", f"--report {path}: {text}", hint) from error

    def write(self, session: Session, closing: dict[str, object]) -> None:
        """Write one JSON object and close the file. Secrets stay out of it as they do of the ledger."""
        redactor = session.ledger.redactor
        report = {
            "run": session.run_id,
            "ledger": str(session.shelf / session.run_id),
            "argv": redactor.argv(session.options.argv),
            "policy": session.policy.digest,
            "commands": session.sandbox.facts.commands,
            "enforced": session.sandbox.facts.to_fields(),
            "layers_off": sorted(session.options.layers_off),
            **closing,
            "denials": [
                {
                    "target": clean_text(redactor.url(d.target)),
                    "reason": d.reason,
                    "why": clean_text(redactor.text(d.why)),
                    "times": times,
                }
                for d, times in session.journal.denials.most_common()
            ],
            "unreached": [
                {
                    "target": clean_text(redactor.url(place.target)),
                    "outcome": place.outcome,
                    "detail": clean_text(place.detail),
                    "times": times,
                }
                for place, times in session.journal.unreached.most_common()
            ],
        }
        with os.fdopen(self._fd, "wb") as file:
            file.write(msgspec.json.format(msgspec.json.encode(_as_text(report)), indent=2) + b"\n")


def _as_text(value: Any) -> Any:
    """The same with paths and arguments that are not UTF-8 made readable: JSON has no bytes."""
    if isinstance(value, str):
        return value if value.isprintable() else clean_text(value)
    if isinstance(value, dict):
        return {key: _as_text(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_as_text(item) for item in value]
    return value
