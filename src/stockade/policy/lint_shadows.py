"""Rules without effect: hidden by others, said twice, or closed by a denial that cannot see a path."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from msgspec.structs import replace

from stockade.policy.model import EVERY_PHASE, Finding, HostPattern, PathPattern, Policy, Rule, make_finding
from stockade.policy.overlap import RuleIndex, covers_host, covers_rule, rules_overlap
from stockade.vocabulary import Identity, Phase, Protocol, Verdict


def lint_shadows(policy: Policy, index: RuleIndex) -> Iterator[Finding]:
    deny_all = [rule for rule in policy.rules if _denies_everything(rule)]
    if deny_all:
        message = "deny * hides every allow and every proxy, whatever the order"
        better = "remove it: what no rule names is denied without it"
        yield make_finding("warning", "deny-hides-all", deny_all[0].origin, message, better)
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
    return replace(rule, origin="", why=None)


def _redundant(rule: Rule, other: str) -> Finding:
    message = f"{rule.level.word} {rule.host.text} says what {other} says already"
    return make_finding("warning", "rule-redundant", rule.origin, message, "remove one of them")


def _lint_shadow(rule: Rule, index: RuleIndex) -> Iterator[Finding]:
    for other in index.covering(rule.host):
        if other is rule or not covers_rule(other, rule):
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
        return make_finding(
            "warning", "deny-hides-rule", rule.origin, message, "remove one, or narrow the denial"
        )
    if other.level is Verdict.PROXY and rule.level is Verdict.ALLOW:
        message = (
            f"{both} is hidden by proxy {other.host.text} ({other.origin}); proxy wins whatever the order"
        )
        return make_finding("warning", "proxy-hides-allow", rule.origin, message, "remove one of them")
    # Of two that cover each other, the later one (here: the one that `seen` has not) was reported.
    if other.level is rule.level and not other.has_conditions and not covers_rule(rule, other):
        return _redundant(rule, other.origin)
    return None


def _lint_unreachable(rule: Rule, policy: Policy) -> Iterator[Finding]:
    if rule.level is Verdict.DENY or rule.phases != (Phase.SCORING,) or rule.identities != (Identity.AGENT,):
        return
    for entry in policy.rubric:
        if not entry.paths and covers_host(entry.host, rule.host):
            who = f"{rule.level.word} {rule.host.text}"
            message = f"{who} never holds: {entry.origin} closes it to the agent while scoring"
            yield make_finding(
                "warning",
                "rubric-hides-rule",
                rule.origin,
                message,
                "give it to the grader: identities: [grader]",
            )
            return


# denials with paths


def lint_closed_hosts(policy: Policy, index: RuleIndex) -> Iterator[Finding]:
    for entry in policy.rubric:
        if entry.paths:
            rules = (rule for rule in index.touching(entry.host) if _acts_while_scoring(rule))
            yield from _closed_host(entry.host, entry.paths, entry.origin, "rubric", rules)
    for denial in policy.rules:
        if denial.level is Verdict.DENY and (denial.paths or denial.methods):
            rules = (rule for rule in index.touching(denial.host) if rules_overlap(denial, rule))
            yield from _closed_host(denial.host, denial.paths, denial.origin, "deny", rules)


def _acts_while_scoring(rule: Rule) -> bool:
    return Phase.SCORING in rule.phases and Identity.AGENT in rule.identities


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
            yield make_finding(
                "warning",
                "path-closes-host",
                origin,
                message,
                f"write `proxy: {rule.host.text}` to see paths",
            )
            return
