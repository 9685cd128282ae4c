"""`stockade decide`: what would be decided about one attempt, and why.

The same engine answers as in the gateway. Nothing is looked up and nothing is sent:
without `--address` a name is judged by the name alone.
"""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Iterator
from ipaddress import ip_address
from pathlib import Path
from typing import TYPE_CHECKING, Any

from stockade.errors import UserError
from stockade.vocabulary import Identity, Phase

if TYPE_CHECKING:
    from stockade.decision.engine import Engine
    from stockade.decision.request import Attempt, Decision
    from stockade.net.address import IPAddress
    from stockade.policy.model import Policy

DENIED = 10

_FORMS = """\
an attempt is one of:
  METHOD URL                    GET https://docs.python.org/3/
  tcp HOST PORT                 tcp code.host.test 22
  udp HOST PORT                 udp pool.ntp.example 123
  dns NAME [TYPE]               dns docs.python.org AAAA
  exec PROGRAM [ARG...]         exec git push origin main
  socket PATH|icmp:ADDR|vsock:CID:PORT

Without -p the policy is the one in force without a file: everything is denied.
Exit codes: 0 decided (with --exit-code: 10 if denied), 2 the policy or the attempt is not readable.
"""


def add_parser(subparsers: Any) -> argparse.ArgumentParser:
    """Add the command to the program's parser."""
    parser: argparse.ArgumentParser = subparsers.add_parser(
        "decide",
        help="say what would be decided about one attempt, and why",
        description="Say what would be decided about one attempt, and why. Nothing is looked up or sent.",
        epilog=_FORMS,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    _add_options(parser)
    parser.add_argument("attempt", nargs=argparse.REMAINDER, metavar="ATTEMPT")
    return parser


def _add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("-p", "--policy", type=Path, metavar="FILE", help="policy file")
    parser.add_argument("--phase", choices=[*map(str, Phase)], default="work", help="phase (default: work)")
    parser.add_argument(
        "--identity", choices=[*map(str, Identity)], default="agent", help="who asks (default: agent)"
    )
    parser.add_argument(
        "--address",
        action="append",
        metavar="ADDR",
        help="an answer for the name; may be given several times",
    )
    parser.add_argument("--sni", metavar="NAME", help="name in the TLS hello, if it is another one")
    parser.add_argument("--host", metavar="NAME", help="name in the Host header, if it is another one")
    parser.add_argument(
        "--from", dest="came_from", metavar="URL", help="the attempt is the next hop of an answer from there"
    )
    parser.add_argument("--exit-code", action="store_true", help=f"exit with {DENIED} if it is denied")
    parser.add_argument("--json", action="store_true", help="print one object")


def run(args: argparse.Namespace) -> int:
    """Decide, print the decision and give the exit code."""
    from stockade.decision.attempt_line import parse_attempt_line
    from stockade.vocabulary import Verdict

    words = _take_options(args)
    attempt = parse_attempt_line(words, sni=args.sni, host=args.host, came_from=args.came_from)
    policy = _load(args.policy)
    attempt, programs = _find_program(attempt, policy)
    engine = _open_engine(policy, Phase(args.phase), Identity(args.identity), programs)
    attempt = _speak_as_listed(attempt, engine)
    decision = engine.decide(attempt, _parse_addresses(args.address))
    shown = (
        _show_json(attempt, decision, policy) if args.json else "\n".join(_show(attempt, decision, policy))
    )
    print(shown)
    return DENIED if args.exit_code and decision.verdict is Verdict.DENY else 0


def _take_options(args: argparse.Namespace) -> list[str]:
    """The words of the attempt; options behind it are taken too, save behind a command of `exec`."""
    words: list[str] = args.attempt[1:] if args.attempt[:1] == ["--"] else args.attempt
    if words[:1] == ["exec"] or not any(word.startswith("--") for word in words):
        return words
    behind = argparse.ArgumentParser(
        prog="stockade decide", add_help=False, argument_default=argparse.SUPPRESS
    )
    _add_options(behind)
    _, words = behind.parse_known_args(words, args)
    return words


def _load(path: Path | None) -> Policy:
    from stockade.policy.model import DENY_ALL

    if path is None:
        return DENY_ALL
    from stockade.policy.load import load_policy

    return load_policy(path)


def _find_program(attempt: Attempt, policy: Policy) -> tuple[Attempt, dict[str, str] | None]:
    """Look which file of this machine a command means, and which files may run; as a run does."""
    if not attempt.argv:
        return attempt, None
    from msgspec.structs import replace

    from stockade.run.program_files import probe_file, probe_listed, probe_script

    file = probe_file(attempt.argv[0])
    if file is None:
        return attempt, None
    script = probe_script(file)
    found = replace(attempt, file=file, is_script_of=None if script is None else script.text)
    return found, probe_listed(policy.exec, [os.path.abspath(path) for path in policy.files.write])


def _open_engine(policy: Policy, phase: Phase, identity: Identity, programs: dict[str, str] | None) -> Engine:
    from stockade.decision.engine import Engine
    from stockade.run.registries import probe_registries

    return Engine(policy, phase, identity, places=probe_registries(os.environ), programs=programs)


def _speak_as_listed(attempt: Attempt, engine: Engine) -> Attempt:
    """A bare TCP connection to a place listed for SSH is SSH, as the gateway takes it."""
    from msgspec.structs import replace

    from stockade.net.host import Host
    from stockade.vocabulary import Protocol

    if attempt.protocol is not Protocol.TCP or not isinstance(attempt.host, Host):
        return attempt
    spoken = engine.protocol_for(attempt.host, attempt.port)
    return replace(attempt, protocol=Protocol.SSH) if spoken is Protocol.SSH else attempt


def _parse_addresses(texts: list[str] | None) -> tuple[IPAddress, ...] | None:
    if texts is None:
        return None
    try:
        return tuple(ip_address(text.strip("[]")) for text in texts)
    except ValueError as problem:
        raise UserError(
            "address-unclear", f"--address: {problem}", "write one IPv4 or IPv6 address"
        ) from problem


def _show_json(attempt: Attempt, decision: Decision, policy: Policy) -> str:
    from stockade.gateway.journal import attempt_fields

    fields = {**attempt_fields(attempt, decision), "policy": policy.digest}
    if attempt.argv:
        fields["code"] = _code_of(policy)
    return json.dumps(fields, indent=2)


def _code_of(policy: Policy) -> str:
    """How far the promise goes about native code inside permitted programs."""
    return "closed" if policy.exec is None else policy.exec.code


def _show(attempt: Attempt, decision: Decision, policy: Policy) -> Iterator[str]:
    from stockade.gateway.journal import target_text
    from stockade.vocabulary import REASONS, Entry, Verdict

    address = "" if decision.address is None else f" at {decision.address}"
    yield f"{decision.verdict.shown}  {target_text(attempt)}{address}"
    yield f"reason   {decision.reason}: {REASONS[decision.reason]}"
    yield f"risk     {decision.risk}   control  {decision.control}   class  {decision.place}"
    yield f"rule     {decision.rule}   phase  {decision.phase}   identity  {decision.identity}"
    yield f"why      {decision.why}"
    if attempt.entry is Entry.EXEC:
        yield from _show_program(attempt, decision, policy)
    elif decision.verdict is not Verdict.DENY and decision.address is None and attempt.entry is not Entry.DNS:
        yield "note     the name alone was judged; a run judges its addresses as well (try --address ADDR)"


def _show_program(attempt: Attempt, decision: Decision, policy: Policy) -> Iterator[str]:
    from stockade.net.host import escape_text
    from stockade.vocabulary import Verdict

    if attempt.is_script_of is not None:
        yield f"script   for {escape_text(attempt.is_script_of, 200)}"
    yield f"code     {_code_of(policy)}"
    if attempt.file is None:
        where = (
            "no executable file is there"
            if "/" in attempt.argv[0]
            else "no such program in /usr/bin and its like, where names are looked for (list others by path)"
        )
        yield f"note     {where}; the name alone was judged, a run judges the file"
    if decision.verdict is Verdict.DENY:
        yield "note     the command that `stockade run` launches is permitted; this is about what it starts"
