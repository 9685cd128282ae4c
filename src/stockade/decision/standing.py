"""What a policy says about a name, port and protocol, before any operation is looked at."""

from __future__ import annotations

from msgspec import Struct

from stockade.decision.catalogue import Catalogue
from stockade.decision.lookalike import LookalikeIndex
from stockade.decision.name_index import NameIndex
from stockade.net.address import IPAddress
from stockade.net.host import parse_host
from stockade.policy.fixed import is_metadata_name
from stockade.policy.match import closes_path
from stockade.policy.model import CatalogueEntry, PathPattern, Policy, RubricEntry, Rule
from stockade.vocabulary import Identity, Phase, PlaceClass, Protocol, Reason, Verdict


class Closing(Struct, frozen=True, kw_only=True):
    """A denial of some operations at a place, whatever the level of the place is."""

    reason: Reason
    paths: tuple[PathPattern, ...]
    methods: tuple[str, ...] = ()
    rule: Rule | None = None
    origin: str

    def covers(self, path: str | None, method: str | None) -> bool:
        """True if it closes this operation; what cannot be seen is closed."""
        if self.methods and method is not None and method not in self.methods:
            return False
        return closes_path(self.paths, path)


class Standing(Struct, frozen=True, kw_only=True):
    """How a place stands in one phase for one identity.

    Attributes:
        reason: RULE_ALLOWS and RULE_PROXIES are the two that let through; all others refuse.
        rules: The rules that the reason speaks of, in the order of the policy.
        closings: Denials that depend on the operation.
        place: Class of the destination, by its rules, else by the catalogue.
        entry: What the catalogue knows of it.
        imitated: The listed pattern that it imitates, for LOOKALIKE.
        origin: The rule or built-in that decides.
    """

    reason: Reason
    rules: tuple[Rule, ...] = ()
    closings: tuple[Closing, ...] = ()
    place: PlaceClass = PlaceClass.UNKNOWN
    entry: CatalogueEntry | None = None
    imitated: str | None = None
    origin: str

    @property
    def is_open(self) -> bool:
        return self.reason in (Reason.RULE_ALLOWS, Reason.RULE_PROXIES)

    @property
    def is_listed(self) -> bool:
        """True if a rule that opens names the place, in whatever phase and for whomever."""
        return self.reason not in (Reason.NOT_LISTED, Reason.LOOKALIKE, Reason.METADATA_NAME)


class RuleBook:
    """One policy, indexed by name. It knows no phase and no identity, so engines can share it."""

    def __init__(self, policy: Policy, catalogue: Catalogue) -> None:
        self.policy = policy
        self._catalogue = catalogue
        self._rules: NameIndex[Rule] = NameIndex()
        self._rubric: NameIndex[RubricEntry] = NameIndex()
        self._lookalikes: LookalikeIndex | None = None
        for rule in policy.rules:
            self._rules.add(rule.host, rule)
        for entry in policy.rubric:
            self._rubric.add(entry.host, entry)
        self._internal = {name: [e for e in policy.internal if e.host == name] for name in {e.host for e in policy.internal}}
        self._denied_addresses = {
            str(rule.host.name): rule for rule in policy.rules if rule.level is Verdict.DENY and _is_address(rule)
        }

    def stand(self, name: str, port: int, protocol: Protocol, phase: Phase, identity: Identity) -> Standing:
        """Say how a name stands; for a DNS question the port and protocol do not count."""
        rules = self._rules.find(name)
        in_force = [rule for rule in rules if phase in rule.phases and identity in rule.identities]
        entry = self._catalogue.find(name)
        rubric = self._rubric.find(name)
        place = _place_of(rules, entry, bool(rubric))
        if is_metadata_name(name):
            return Standing(
                reason=Reason.METADATA_NAME, place=PlaceClass.METADATA, entry=entry, origin="builtin:metadata"
            )
        if identity is not Identity.AGENT or phase is not Phase.SCORING:
            rubric = []
        for closed in rubric:
            if not closed.paths:
                return Standing(
                    reason=Reason.RUBRIC_IN_SCORING, rules=tuple(rules), place=place, entry=entry, origin=closed.origin
                )
        denials = [rule for rule in in_force if rule.level is Verdict.DENY and _covers(rule, port, protocol)]
        for denial in denials:
            if not denial.paths and not denial.methods:
                return Standing(
                    reason=Reason.LISTED_DENY, rules=(denial,), place=place, entry=entry, origin=denial.origin
                )
        closings = tuple(_close_rubric(entry_) for entry_ in rubric) + tuple(_close_denial(rule) for rule in denials)
        reason, deciding = _choose_level(rules, in_force, port, protocol, identity)
        if reason is Reason.NOT_LISTED and entry is None and protocol is not Protocol.DNS:
            return self._stand_unlisted(name, closings)
        origin = deciding[0].origin if deciding else (entry.origin if entry else "builtin:default-deny")
        return Standing(
            reason=reason, rules=deciding, closings=closings, place=place, entry=entry, origin=origin
        )

    def _stand_unlisted(self, name: str, closings: tuple[Closing, ...]) -> Standing:
        imitated = self._find_imitated(name)
        if imitated is None:
            return Standing(reason=Reason.NOT_LISTED, closings=closings, origin="builtin:default-deny")
        return Standing(
            reason=Reason.LOOKALIKE, closings=closings, imitated=imitated, origin="builtin:lookalike"
        )

    def _find_imitated(self, name: str) -> str | None:
        if self._lookalikes is None:  # made at the first unlisted name; many runs have none
            self._lookalikes = LookalikeIndex(
                rule.host for rule in self.policy.rules if rule.level is not Verdict.DENY
            )
        return self._lookalikes.find(name)

    def opens_internally(self, name: str, address: IPAddress, port: int) -> bool:
        """True if an `internal:` entry names this host, network and port."""
        return any(
            port in entry.ports and any(address in network for network in entry.networks)
            for entry in self._internal.get(name, ())
        )

    def find_denied_address(self, address: IPAddress) -> Rule | None:
        """The deny rule that names this very address."""
        return self._denied_addresses.get(str(address)) if self._denied_addresses else None

    def find_protocol(self, name: str, port: int, phase: Phase, identity: Identity) -> Protocol | None:
        """The protocol that the rules for a name and port speak of; those in force come first."""
        rules = [
            rule for rule in self._rules.find(name) if rule.protocol is not None and port in rule.ports
        ]
        if not rules:
            return None
        in_force = [rule for rule in rules if phase in rule.phases and identity in rule.identities]
        return min(in_force or rules, key=lambda rule: rule.level).protocol


def _is_address(rule: Rule) -> bool:
    name = rule.host.name
    if ":" not in name and not name[-1:].isdigit():
        return False
    return getattr(parse_host(name, is_bracketed=False), "address", None) is not None


def _place_of(rules: list[Rule], entry: CatalogueEntry | None, is_rubric: bool) -> PlaceClass:
    for rule in rules:
        if rule.place is not None:
            return rule.place
    if entry is not None:
        return entry.place
    return PlaceClass.RUBRIC if is_rubric else PlaceClass.UNKNOWN


def _covers(rule: Rule, port: int, protocol: Protocol) -> bool:
    """Tell whether a rule speaks of a port and protocol, or of the name in a question.

    A denial of some ports or one protocol leaves the name itself answerable.
    """
    if protocol is Protocol.DNS:
        return rule.level is not Verdict.DENY or (not rule.ports and rule.protocol is None)
    return rule.covers(port, protocol)


def _choose_level(
    rules: list[Rule], in_force: list[Rule], port: int, protocol: Protocol, identity: Identity
) -> tuple[Reason, tuple[Rule, ...]]:
    """The level of a place and the rules in it; without one, why the rules do not open it."""
    opening = [rule for rule in in_force if rule.level is not Verdict.DENY and _covers(rule, port, protocol)]
    proxies = tuple(rule for rule in opening if rule.level is Verdict.PROXY)
    if proxies:
        return Reason.RULE_PROXIES, proxies
    if opening:
        return Reason.RULE_ALLOWS, tuple(opening)
    return _explain_closed([rule for rule in rules if rule.level is not Verdict.DENY], port, protocol, identity)


def _explain_closed(
    listed: list[Rule], port: int, protocol: Protocol, identity: Identity
) -> tuple[Reason, tuple[Rule, ...]]:
    if not listed:
        return Reason.NOT_LISTED, ()
    own = [rule for rule in listed if identity in rule.identities]
    if not own:
        return Reason.OTHER_IDENTITY, tuple(listed)
    fitting = [rule for rule in own if _covers(rule, port, protocol)]
    if fitting:
        return Reason.WRONG_PHASE, tuple(fitting)
    same_port = [rule for rule in own if port in rule.ports]
    if same_port:
        return Reason.WRONG_PROTOCOL, tuple(same_port)
    return Reason.WRONG_PORT, tuple(own)


def _close_rubric(entry: RubricEntry) -> Closing:
    return Closing(reason=Reason.RUBRIC_IN_SCORING, paths=entry.paths, origin=entry.origin)


def _close_denial(rule: Rule) -> Closing:
    return Closing(
        reason=Reason.LISTED_DENY, paths=rule.paths, methods=rule.methods, rule=rule, origin=rule.origin
    )
