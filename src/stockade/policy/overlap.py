"""Which rules speak of the same places, found without looking at all pairs of them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from stockade.policy.model import HostPattern, Policy, Rule
from stockade.vocabulary import Verdict


def covers_host(wide: HostPattern, narrow: HostPattern) -> bool:
    """True if every name of `narrow` is one of `wide`."""
    if not wide.is_wildcard:
        return wide == narrow
    if not wide.name:
        return True
    if narrow.is_wildcard and narrow.name == wide.name:
        return True
    return narrow.name.endswith("." + wide.name)


class RuleIndex:
    """Rules by name, so that related rules are found without looking at all pairs."""

    def __init__(self, policy: Policy) -> None:
        self._by_pattern: dict[HostPattern, list[Rule]] = defaultdict(list)
        self._below: dict[str, list[Rule]] = defaultdict(list)
        for rule in policy.rules:
            self._by_pattern[rule.host].append(rule)
            for parent in parents_of_pattern(rule.host):
                self._below[parent].append(rule)

    def covering(self, host: HostPattern) -> Iterator[Rule]:
        """Rules whose hosts are these or more."""
        if not host.is_wildcard:
            yield from self._by_pattern.get(host, ())
        elif host.name:
            yield from self._by_pattern.get(HostPattern(host.name, True), ())
        for parent in parents_of_pattern(host):
            yield from self._by_pattern.get(HostPattern(parent, True), ())

    def touching(self, host: HostPattern) -> Iterator[Rule]:
        """Rules that speak of any of these hosts."""
        yield from self.covering(host)
        if host.is_wildcard:
            yield from (rule for rule in self._below.get(host.name, ()) if rule.host != host)


def parents_of_pattern(host: HostPattern) -> Iterator[str]:
    """Names above a host, the root (empty) last; ``*`` has none above it but itself."""
    name = host.name
    while name:
        name = name.partition(".")[2]
        yield name
    if host.is_wildcard and not host.name:
        yield ""


def covers_rule(wide: Rule, narrow: Rule) -> bool:
    """True if the first rule speaks of everything that the second one speaks of, conditions aside."""
    return (
        covers_host(wide.host, narrow.host)
        and (not wide.ports or (bool(narrow.ports) and set(narrow.ports) <= set(wide.ports)))
        and wide.protocol in (None, narrow.protocol)
        and set(narrow.phases) <= set(wide.phases)
        and set(narrow.identities) <= set(wide.identities)
    )


def rules_overlap(denial: Rule, rule: Rule) -> bool:
    return (
        bool(set(denial.phases) & set(rule.phases))
        and bool(set(denial.identities) & set(rule.identities))
        and denial.protocol in (None, rule.protocol)
        and (not denial.ports or bool(set(denial.ports) & set(rule.ports)))
    )


def opening_rules(policy: Policy) -> Iterator[Rule]:
    return (rule for rule in policy.rules if rule.level is not Verdict.DENY)
