"""What a policy says without its author knowing: ways out, rules without effect, surprises.

Everything here is advice about a policy that loads; nothing changes what it means. Each
finding has a code of `policy.codes`, the line, one sentence and, where there is one, a
better spelling. Cost is near linear in the number of rules, since rule sets are generated.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from typing import Literal

from stockade.net.address import RANGES, AddressClass
from stockade.policy.fixed import METADATA_NAMES
from stockade.policy.model import (
    DEFAULT_HOLD_S,
    EVERY_PHASE,
    Finding,
    HostPattern,
    InternalEntry,
    PathPattern,
    Policy,
    Rule,
)
from stockade.policy.places import (
    COMPANIONS,
    RESOLVERS,
    SHARED_PLACES,
    is_interpreter,
    is_resolver_name,
    looks_shared,
)
from stockade.policy.suffixes import classify_suffix, shared_suffix_below
from stockade.vocabulary import Identity, Phase, PlaceClass, Protocol, Verdict

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
    index = _Index(policy)
    findings = [
        *policy.notes,
        *_lint_whole(policy),
        *_lint_ways_out(policy),
        *_lint_shadows(policy, index),
        *_lint_closed_hosts(policy, index),
        *_lint_internal(policy, index),
        *_lint_catalogue(policy),
        *_lint_exec_and_files(policy),
    ]
    return sorted(dict.fromkeys(findings), key=_sort_key)


def _sort_key(finding: Finding) -> tuple[int, str, int]:
    source, _, line = finding.origin.rpartition(":")
    return _SEVERITIES.index(finding.severity), source, int(line) if line.isdigit() else 0


def _find(
    severity: Literal["warning", "note"], code: str, origin: str, message: str, better: str | None = None
) -> Finding:
    return Finding(code=code, severity=severity, origin=origin, message=message, better=better)


# which rules speak of the same hosts


def covers_host(wide: HostPattern, narrow: HostPattern) -> bool:
    """True if every name of `narrow` is one of `wide`."""
    if not wide.is_wildcard:
        return wide == narrow
    if not wide.name:
        return True
    if narrow.is_wildcard and narrow.name == wide.name:
        return True
    return narrow.name.endswith("." + wide.name)


class _Index:
    """Rules by name, so that related rules are found without looking at all pairs."""

    def __init__(self, policy: Policy) -> None:
        self._by_pattern: dict[HostPattern, list[Rule]] = defaultdict(list)
        self._below: dict[str, list[Rule]] = defaultdict(list)
        for rule in policy.rules:
            self._by_pattern[rule.host].append(rule)
            for parent in _parents(rule.host):
                self._below[parent].append(rule)

    def covering(self, host: HostPattern) -> Iterator[Rule]:
        """Rules whose hosts are these or more."""
        if not host.is_wildcard:
            yield from self._by_pattern.get(host, ())
        elif host.name:
            yield from self._by_pattern.get(HostPattern(host.name, True), ())
        for parent in _parents(host):
            yield from self._by_pattern.get(HostPattern(parent, True), ())

    def touching(self, host: HostPattern) -> Iterator[Rule]:
        """Rules that speak of any of these hosts."""
        yield from self.covering(host)
        if host.is_wildcard:
            yield from (rule for rule in self._below.get(host.name, ()) if rule.host != host)


def _parents(host: HostPattern) -> Iterator[str]:
    """Names above a host, the root (empty) last; ``*`` has none above it but itself."""
    name = host.name
    while name:
        name = name.partition(".")[2]
        yield name
    if host.is_wildcard and not host.name:
        yield ""


def _covers(wide: Rule, narrow: Rule) -> bool:
    """True if the first rule speaks of everything that the second one speaks of, conditions aside."""
    return (
        covers_host(wide.host, narrow.host)
        and (not wide.ports or (bool(narrow.ports) and set(narrow.ports) <= set(wide.ports)))
        and wide.protocol in (None, narrow.protocol)
        and set(narrow.phases) <= set(wide.phases)
        and set(narrow.identities) <= set(wide.identities)
    )


def _opening(policy: Policy) -> Iterator[Rule]:
    return (rule for rule in policy.rules if rule.level is not Verdict.DENY)


# the policy as a whole


def _lint_whole(policy: Policy) -> Iterator[Finding]:
    if not any(True for _ in _opening(policy)):
        yield _find(
            "note", "nothing-permitted", policy.source, "no rule permits anything", "add - allow: HOST"
        )
    inspected = list(dict.fromkeys(rule.origin for rule in policy.rules if rule.needs_inspection))
    if inspected:
        count = f"{len(inspected)} rules look" if len(inspected) > 1 else "the rule looks"
        yield _find(
            "warning",
            "inspection-needed",
            inspected[0],
            f"{count} inside TLS ({_shorten(inspected)}), which holds only where the gateway opens it",
            "leave the conditions out to log only; `run` refuses what it cannot hold",
        )
    if policy.unknown == "ask":
        wait = f"each waits up to {policy.hold_s:.0f}s and is then denied"
        yield _find(
            "warning",
            "unknown-asks",
            policy.unknown_origin or policy.source,
            f"unknown destinations wait for a person; {wait}",
        )
    elif policy.hold_s != DEFAULT_HOLD_S:
        yield _find("note", "hold-without-ask", policy.source, "`hold` has no effect", "write unknown: ask")


def _shorten(origins: list[str]) -> str:
    return ", ".join(origins[:3]) + (", …" if len(origins) > 3 else "")


# ways out


def _lint_ways_out(policy: Policy) -> Iterator[Finding]:
    resolvers = {
        host.name for entry in policy.catalogue if entry.place is PlaceClass.RESOLVER for host in entry.hosts
    }
    internal = {entry.host for entry in policy.internal}
    for rule in _opening(policy):
        if rule.host.is_wildcard:
            yield from _lint_wildcard(rule)
        else:
            yield from _lint_exact(rule)
        yield from _lint_resolver(rule, resolvers)
        if rule.protocol is Protocol.HTTP and rule.host.name not in internal:
            yield _find(
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
        yield _find("warning", "wildcard-whole-zone", rule.origin, message, f"write *.example.{name}")
    elif kind == "shared" or below or looks_shared(name):
        where = f" (customers' names are below {below})" if below else ""
        message = f"anyone can get a name under {name}{where}, so {rule.host.text} is a way out for data"
        yield _find("warning", "wildcard-shared", rule.origin, message, "name the exact hosts")
    hidden = [metadata for metadata in METADATA_NAMES if rule.host.matches(metadata)]
    if hidden:
        yield _find("note", "metadata-below", rule.origin, f"{hidden[0]} stays denied under {rule.host.text}")


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
        yield _find(
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
        yield _find("warning", "resolver-allowed", rule.origin, message, "leave it out; the gateway resolves")


# rules without effect


def _lint_shadows(policy: Policy, index: _Index) -> Iterator[Finding]:
    deny_all = [rule for rule in policy.rules if _denies_everything(rule)]
    if deny_all:
        message = "deny * hides every allow and every proxy, whatever the order"
        better = "remove it: what no rule names is denied without it"
        yield _find("warning", "deny-hides-all", deny_all[0].origin, message, better)
    seen: dict[Rule, str] = {}
    for rule in policy.rules:
        twin = _without_origin(rule)
        if twin in seen:
            yield _redundant(rule, seen[twin])
            continue
        seen[twin] = rule.origin
        if not deny_all or rule.level is Verdict.DENY:
            yield from _lint_shadow(rule, index)
        yield from _lint_unreachable(rule, policy)


def _denies_everything(rule: Rule) -> bool:
    is_whole = not (rule.methods or rule.paths or rule.ports or rule.protocol)
    return rule.level is Verdict.DENY and not rule.host.name and is_whole and rule.phases == EVERY_PHASE


def _without_origin(rule: Rule) -> Rule:
    from msgspec.structs import replace

    return replace(rule, origin="", why=None)


def _redundant(rule: Rule, other: str) -> Finding:
    message = f"{rule.level.word} {rule.host.text} says what {other} says already"
    return _find("warning", "rule-redundant", rule.origin, message, "remove one of them")


def _lint_shadow(rule: Rule, index: _Index) -> Iterator[Finding]:
    for other in index.covering(rule.host):
        if other is rule or not _covers(other, rule):
            continue
        found = _name_shadow(rule, other)
        if found is not None:
            yield found
            return


def _name_shadow(rule: Rule, other: Rule) -> Finding | None:
    both = f"{rule.level.word} {rule.host.text}"
    if other.level is Verdict.DENY and rule.level is not Verdict.DENY:
        if other.methods or other.paths:
            return None
        message = f"{both} is hidden by deny {other.host.text} ({other.origin}); deny wins whatever the order"
        return _find("warning", "deny-hides-rule", rule.origin, message, "remove one, or narrow the denial")
    if other.level is Verdict.PROXY and rule.level is Verdict.ALLOW:
        message = (
            f"{both} is hidden by proxy {other.host.text} ({other.origin}); proxy wins whatever the order"
        )
        return _find("warning", "proxy-hides-allow", rule.origin, message, "remove one of them")
    # Of two that cover each other, the later one (here: the one that `seen` has not) was reported.
    if other.level is rule.level and not other.has_conditions and not _covers(rule, other):
        return _redundant(rule, other.origin)
    return None


def _lint_unreachable(rule: Rule, policy: Policy) -> Iterator[Finding]:
    if rule.level is Verdict.DENY or rule.phases != (Phase.SCORING,) or rule.identities != (Identity.AGENT,):
        return
    for entry in policy.rubric:
        if not entry.paths and covers_host(entry.host, rule.host):
            who = f"{rule.level.word} {rule.host.text}"
            message = f"{who} never holds: {entry.origin} closes it to the agent while scoring"
            yield _find(
                "warning",
                "rubric-hides-rule",
                rule.origin,
                message,
                "give it to the grader: identities: [grader]",
            )
            return


# denials with paths


def _lint_closed_hosts(policy: Policy, index: _Index) -> Iterator[Finding]:
    for entry in policy.rubric:
        if entry.paths:
            rules = (rule for rule in index.touching(entry.host) if _acts_while_scoring(rule))
            yield from _closed_host(entry.host, entry.paths, entry.origin, "rubric", rules)
    for denial in policy.rules:
        if denial.level is Verdict.DENY and (denial.paths or denial.methods):
            rules = (rule for rule in index.touching(denial.host) if _overlaps(denial, rule))
            yield from _closed_host(denial.host, denial.paths, denial.origin, "deny", rules)


def _acts_while_scoring(rule: Rule) -> bool:
    return Phase.SCORING in rule.phases and Identity.AGENT in rule.identities


def _overlaps(denial: Rule, rule: Rule) -> bool:
    return (
        bool(set(denial.phases) & set(rule.phases))
        and bool(set(denial.identities) & set(rule.identities))
        and denial.protocol in (None, rule.protocol)
        and (not denial.ports or bool(set(denial.ports) & set(rule.ports)))
    )


def _closed_host(
    host: HostPattern, paths: tuple[PathPattern, ...], origin: str, word: str, rules: Iterable[Rule]
) -> Iterator[Finding]:
    for rule in rules:
        is_tunnel = rule.protocol is not Protocol.HTTP and (
            rule.level is Verdict.ALLOW or not rule.needs_inspection
        )
        if rule.level is not Verdict.DENY and is_tunnel:
            what = f"{word} {host.text} {paths[0].text if paths else 'with methods'}"
            message = (
                f"{what} closes the whole host, since {rule.origin} tunnels it and the path cannot be seen"
            )
            yield _find(
                "warning",
                "path-closes-host",
                origin,
                message,
                f"write `proxy: {rule.host.text}` to see paths",
            )
            return


# internal


def _lint_internal(policy: Policy, index: _Index) -> Iterator[Finding]:
    for entry in policy.internal:
        yield from _lint_internal_entry(entry, index)
        yield from _lint_networks(entry)
    opened = {entry.host for entry in policy.internal}
    for rule in _opening(policy):
        if rule.place is PlaceClass.INTERNAL and not rule.host.is_wildcard and rule.host.name not in opened:
            message = (
                f"{rule.host.name} is of class internal and no internal entry opens a private address for it"
            )
            better = (
                f"under `internal:` {{host: {rule.host.name}, networks: [NETWORK], ports: [{rule.ports[0]}]}}"
            )
            yield _find("warning", "rule-without-internal", rule.origin, message, better)


def _lint_internal_entry(entry: InternalEntry, index: _Index) -> Iterator[Finding]:
    rules = [rule for rule in index.covering(HostPattern(entry.host)) if rule.level is not Verdict.DENY]
    if not rules:
        message = f"the internal entry for {entry.host} opens nothing: no rule names the host"
        yield _find("warning", "internal-without-rule", entry.origin, message, f"add - allow: {entry.host}")
        return
    used = {port for rule in rules for port in rule.ports}
    idle = sorted(set(entry.ports) - used)
    if idle:
        message = f"no rule for {entry.host} uses port {idle[0]}, so the entry opens nothing there"
        yield _find(
            "warning", "internal-port-unused", entry.origin, message, "write the same ports in rule and entry"
        )


_METADATA_ROWS = [row for row in RANGES if row.address_class is AddressClass.METADATA]


def _lint_networks(entry: InternalEntry) -> Iterator[Finding]:
    for network in entry.networks:
        for row in _METADATA_ROWS:
            if row.network.network_address in network:
                address = row.network.network_address
                yield _find(
                    "note", "metadata-in-network", entry.origin, f"{address} in {network} stays denied"
                )
        if network.prefixlen < _BROAD[network.version] and not network.is_loopback:
            message = (
                f"{network} is wider than one service needs; any answer of {entry.host} in it is reached"
            )
            yield _find("warning", "network-broad", entry.origin, message, "write the service's own network")


# catalogue


def _lint_catalogue(policy: Policy) -> Iterator[Finding]:
    seen: dict[HostPattern, tuple[PlaceClass, str]] = {}
    for entry in policy.catalogue:
        for host in entry.hosts:
            place, origin = seen.setdefault(host, (entry.place, entry.origin))
            if place is not entry.place:
                message = f"{host.text} is {entry.place} here and {place} at {origin}, which counts"
                yield _find("warning", "catalogue-conflict", entry.origin, message, "keep one of them")


# commands and files


def _lint_exec_and_files(policy: Policy) -> Iterator[Finding]:
    origin = policy.exec.origin if policy.exec else policy.source
    if policy.exec is not None and policy.exec.mode == "any":
        yield _find(
            "warning", "exec-any", origin, "any program may run", "list the programs under exec: allow"
        )
    loose = [program for program in policy.exec.allow if is_interpreter(program)] if policy.exec else []
    if loose:
        message = f"{', '.join(loose)} in exec: allow can run other programs or any code given to them"
        better = "keep only what the task needs; no verdict of the network rests on the program"
        yield _find("warning", "exec-interpreter", origin, message, better)
    outside = [folder for folder in policy.files.write if folder.startswith(("/", "~"))]
    if outside:
        message = f"{', '.join(outside)} outside the workspace may be written, and stays after the run"
        yield _find(
            "warning",
            "write-outside",
            policy.files.origin or policy.source,
            message,
            "write `.` or a folder below it",
        )
