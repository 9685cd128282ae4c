"""What a policy says without its author knowing: ways out, rules without effect, surprises.

Everything here is advice about a policy that loads; nothing changes what it means. Each
finding has a code of `policy.codes`, the line, one sentence and, where there is one, a
better spelling. Cost is near linear in the number of rules, since rule sets are generated.
"""

from __future__ import annotations

from collections.abc import Iterator

from stockade.net.address import RANGES, AddressClass
from stockade.policy.fixed import METADATA_NAMES
from stockade.policy.lint_programs import lint_programs
from stockade.policy.lint_shadows import lint_closed_hosts, lint_shadows
from stockade.policy.model import (
    DEFAULT_HOLD_S,
    Finding,
    HostPattern,
    InternalEntry,
    Policy,
    Rule,
    make_finding,
)
from stockade.policy.overlap import RuleIndex, opening_rules
from stockade.policy.places import (
    COMPANIONS,
    RESOLVERS,
    SHARED_PLACES,
    is_resolver_name,
    looks_shared,
)
from stockade.policy.suffixes import classify_suffix, shared_suffix_below
from stockade.vocabulary import PlaceClass, Protocol, Verdict

_SHARED_CLASSES = frozenset(
    {
        PlaceClass.CODE_HOST,
        PlaceClass.OBJECT_STORE,
        PlaceClass.PASTE,
        PlaceClass.DATASET_HUB,
        PlaceClass.MESSAGING,
    }
)
_BROAD = {4: 16, 6: 48}  # shorter prefixes hold more than one site's services
_SEVERITIES = ("error", "warning", "note")


def lint_policy(policy: Policy) -> list[Finding]:
    """Everything worth knowing about a policy, the most serious first, then by line."""
    index = RuleIndex(policy)
    findings = [
        *policy.notes,
        *_lint_whole(policy),
        *_lint_ways_out(policy),
        *lint_shadows(policy, index),
        *lint_closed_hosts(policy, index),
        *_lint_internal(policy, index),
        *_lint_catalogue(policy),
        *lint_programs(policy),
        *_lint_files(policy),
    ]
    return sorted(dict.fromkeys(findings), key=_sort_key)


def _sort_key(finding: Finding) -> tuple[int, str, int]:
    source, _, line = finding.origin.rpartition(":")
    return _SEVERITIES.index(finding.severity), source, int(line) if line.isdigit() else 0


# the policy as a whole


def _lint_whole(policy: Policy) -> Iterator[Finding]:
    if not any(True for _ in opening_rules(policy)):
        yield make_finding(
            "note", "nothing-permitted", policy.source, "no rule permits a connection", "add - allow: HOST"
        )
    inspected = list(dict.fromkeys(rule.origin for rule in policy.rules if rule.needs_inspection))
    if inspected:
        count = f"{len(inspected)} rules look" if len(inspected) > 1 else "the rule looks"
        yield make_finding(
            "warning",
            "inspection-needed",
            inspected[0],
            f"{count} inside TLS ({_shorten(inspected)}), which holds only where the gateway opens it",
            "leave the conditions out to log only; `run` refuses what it cannot hold",
        )
    if policy.unknown == "ask":
        wait = f"each waits up to {policy.hold_s:.0f}s and is then denied"
        yield make_finding(
            "warning",
            "unknown-asks",
            policy.unknown_origin or policy.source,
            f"unknown destinations wait for a person; {wait}",
        )
    elif policy.hold_s != DEFAULT_HOLD_S:
        yield make_finding(
            "note", "hold-without-ask", policy.source, "`hold` has no effect", "write unknown: ask"
        )


def _shorten(origins: list[str]) -> str:
    return ", ".join(origins[:3]) + (", …" if len(origins) > 3 else "")


# ways out


def _lint_ways_out(policy: Policy) -> Iterator[Finding]:
    resolvers = {
        host.name for entry in policy.catalogue if entry.place is PlaceClass.RESOLVER for host in entry.hosts
    }
    internal = {entry.host for entry in policy.internal}
    for rule in opening_rules(policy):
        if rule.host.is_wildcard:
            yield from _lint_wildcard(rule)
        else:
            yield from _lint_exact(rule)
        yield from _lint_resolver(rule, resolvers)
        if rule.protocol is Protocol.HTTP and rule.host.name not in internal:
            yield make_finding(
                "note",
                "plain-http",
                rule.origin,
                f"{rule.host.text} is reached without TLS, readable on the way",
            )


def _lint_wildcard(rule: Rule) -> Iterator[Finding]:
    name = rule.host.name
    kind = classify_suffix(name)
    below = None if kind else shared_suffix_below(name)
    if kind == "zone":
        message = f"{rule.host.text} covers the whole zone {name}"
        yield make_finding("warning", "wildcard-whole-zone", rule.origin, message, f"write *.example.{name}")
    elif kind == "shared" or below or looks_shared(name):
        where = f" (customers' names are below {below})" if below else ""
        message = f"anyone can get a name under {name}{where}, so {rule.host.text} is a way out for data"
        yield make_finding("warning", "wildcard-shared", rule.origin, message, "name the exact hosts")
    hidden = [metadata for metadata in METADATA_NAMES if rule.host.matches(metadata)]
    if hidden:
        yield make_finding(
            "note", "metadata-below", rule.origin, f"{hidden[0]} stays denied under {rule.host.text}"
        )


def _lint_exact(rule: Rule) -> Iterator[Finding]:
    name = rule.host.name
    if rule.level is Verdict.PROXY and rule.paths:
        return
    what = SHARED_PLACES.get(name)
    if what is None and rule.place in _SHARED_CLASSES:
        what = f"class {rule.place}: what many people put there"
    if what is not None:
        companions = f"; {COMPANIONS[name]}" if name in COMPANIONS else ""
        message = f"{name} holds {what}, so it is a way out for data{companions}"
        yield make_finding(
            "warning", "shared-place", rule.origin, message, "write `proxy:` with paths, or use a mirror"
        )


def _lint_resolver(rule: Rule, catalogued: set[str]) -> Iterator[Finding]:
    known = [name for name in (*RESOLVERS, *sorted(catalogued)) if rule.host.matches(name)]
    if not rule.host.is_wildcard and is_resolver_name(rule.host.name):
        known.append(rule.host.name)
    if known:
        message = (
            f"{rule.host.text} permits the resolver {sorted(known)[0]}; names asked there are not judged"
        )
        yield make_finding(
            "warning", "resolver-allowed", rule.origin, message, "leave it out; the gateway resolves"
        )


# internal


def _lint_internal(policy: Policy, index: RuleIndex) -> Iterator[Finding]:
    for entry in policy.internal:
        yield from _lint_internal_entry(entry, index)
        yield from _lint_networks(entry)
    opened = {entry.host for entry in policy.internal}
    for rule in opening_rules(policy):
        if rule.place is PlaceClass.INTERNAL and not rule.host.is_wildcard and rule.host.name not in opened:
            message = (
                f"{rule.host.name} is of class internal and no internal entry opens a private address for it"
            )
            better = (
                f"under `internal:` {{host: {rule.host.name}, networks: [NETWORK], ports: [{rule.ports[0]}]}}"
            )
            yield make_finding("warning", "rule-without-internal", rule.origin, message, better)


def _lint_internal_entry(entry: InternalEntry, index: RuleIndex) -> Iterator[Finding]:
    rules = [rule for rule in index.covering(HostPattern(entry.host)) if rule.level is not Verdict.DENY]
    if not rules:
        message = f"the internal entry for {entry.host} opens nothing: no rule names the host"
        yield make_finding(
            "warning", "internal-without-rule", entry.origin, message, f"add - allow: {entry.host}"
        )
        return
    used = {port for rule in rules for port in rule.ports}
    idle = sorted(set(entry.ports) - used)
    if idle:
        message = f"no rule for {entry.host} uses port {idle[0]}, so the entry opens nothing there"
        yield make_finding(
            "warning", "internal-port-unused", entry.origin, message, "write the same ports in rule and entry"
        )


_METADATA_ROWS = [row for row in RANGES if row.address_class is AddressClass.METADATA]


def _lint_networks(entry: InternalEntry) -> Iterator[Finding]:
    for network in entry.networks:
        for row in _METADATA_ROWS:
            if row.network.network_address in network:
                address = row.network.network_address
                yield make_finding(
                    "note", "metadata-in-network", entry.origin, f"{address} in {network} stays denied"
                )
        if network.prefixlen < _BROAD[network.version] and not network.is_loopback:
            message = (
                f"{network} is wider than one service needs; any answer of {entry.host} in it is reached"
            )
            yield make_finding(
                "warning", "network-broad", entry.origin, message, "write the service's own network"
            )


# catalogue


def _lint_catalogue(policy: Policy) -> Iterator[Finding]:
    seen: dict[HostPattern, tuple[PlaceClass, str]] = {}
    for entry in policy.catalogue:
        for host in entry.hosts:
            place, origin = seen.setdefault(host, (entry.place, entry.origin))
            if place is not entry.place:
                message = f"{host.text} is {entry.place} here and {place} at {origin}, which counts"
                yield make_finding("warning", "catalogue-conflict", entry.origin, message, "keep one of them")


# files


def _lint_files(policy: Policy) -> Iterator[Finding]:
    outside = [folder for folder in policy.files.write if folder.startswith(("/", "~"))]
    if outside:
        message = f"{', '.join(outside)} outside the workspace may be written, and stays after the run"
        yield make_finding(
            "warning",
            "write-outside",
            policy.files.origin or policy.source,
            message,
            "write `.` or a folder below it",
        )
