"""What `stockade run` was asked to do, parsed once."""

from __future__ import annotations

import argparse
from ipaddress import ip_address
from pathlib import Path

from msgspec import Struct

from stockade.errors import UserError
from stockade.net.address import IPAddress
from stockade.net.host import Host, parse_host
from stockade.vocabulary import Identity, Phase


class RunOptions(Struct, frozen=True, kw_only=True):
    """The options of one run.

    Attributes:
        resolve: Addresses that the operator gave by hand, by canonical name.
        environment: Variables to pass, as ``NAME`` or ``NAME=VALUE``.
        as_json: The plan of a dry run is printed as one JSON object.
        layers_off: Layers that the operator gave up.
        names_commands: Name the command of every attempt on the network, not only of refusals.
        debugging_pipe: The caller's standard input and output are the command's descriptors 3 and 4.
        run_id: What the run is called in the ledger; empty: a new name.
    """

    argv: tuple[str, ...]
    policy_file: Path | None = None
    phase: Phase = Phase.WORK
    identity: Identity = Identity.AGENT
    ledger: Path | None = None
    resolve: dict[str, tuple[IPAddress, ...]] = {}
    readable: tuple[Path, ...] = ()
    writable: tuple[Path, ...] = ()
    environment: tuple[str, ...] = ()
    report: Path | None = None
    is_dry_run: bool = False
    as_json: bool = False
    is_quiet: bool = False
    layers_off: frozenset[str] = frozenset()
    names_commands: bool = False
    debugging_pipe: bool = False
    run_id: str = ""


def parse_options(args: argparse.Namespace) -> RunOptions:
    """Turn the parsed command line into options.

    Raises:
        UserError: No command, a ``--resolve`` that is not NAME=ADDRESS, or ``--json`` by itself.
    """
    argv = args.argv[1:] if args.argv[:1] == ["--"] else args.argv
    if not argv:
        raise UserError(
            "no-command", "there is no command to run", "stockade run [options] -- COMMAND [ARG...]"
        )
    if args.json and not args.dry_run:
        raise UserError(
            "json-without-plan",
            "--json prints the plan, so it goes with --dry-run",
            "--report FILE writes a JSON report of a run, `stockade log --json` its records",
        )
    return RunOptions(
        argv=tuple(argv),
        policy_file=args.policy,
        phase=Phase(args.phase),
        identity=Identity(args.identity),
        ledger=args.ledger,
        resolve=parse_resolve(args.resolve),
        readable=tuple(args.read),
        writable=tuple(args.write),
        environment=tuple(args.env),
        report=args.report,
        is_dry_run=args.dry_run,
        as_json=args.json,
        is_quiet=args.quiet,
        layers_off=frozenset(args.without_layer),
        names_commands=args.name_commands,
        debugging_pipe=args.debugging_pipe,
        run_id=args.run_id,
    )


def parse_resolve(words: list[str]) -> dict[str, tuple[IPAddress, ...]]:
    """Parse ``NAME=ADDR`` words; a name given twice has all its addresses.

    Raises:
        UserError: A word of another form, a name that is not one, an address that is not one.
    """
    found: dict[str, tuple[IPAddress, ...]] = {}
    for word in words:
        name, equals, address = word.partition("=")
        host = parse_host(name)
        if not equals or not isinstance(host, Host) or host.address is not None:
            raise UserError(
                "bad-resolve",
                f"--resolve {word!r} is not NAME=ADDRESS",
                "for example --resolve app.test=10.20.0.5",
            )
        try:
            number = ip_address(address.strip("[]"))
        except ValueError as error:
            raise UserError("bad-resolve", f"--resolve {word!r}: {error}") from error
        found[host.name] = (*found.get(host.name, ()), number)
    return found
