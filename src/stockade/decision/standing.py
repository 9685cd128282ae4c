"""What a policy says about a name, port and protocol, before any operation is looked at."""

from __future__ import annotations

from msgspec import Struct

from stockade.decision.catalogue import Catalogue
from stockade.decision.lookalike import LookalikeIndex
from stockade.decision.name_index import NameIndex
from stockade.net.address import IPAddress
from stockade.net.host import Host, parse_host
from stockade.policy.fixed import is_metadata_name
from stockade.policy.match import closes_path
from stockade.policy.model import CatalogueEntry, InternalEntry, PathPattern, Policy, RubricEntry, Rule
from stockade.vocabulary import Identity, Phase, PlaceClass, Protocol, Reason, Verdict

_OVER_TCP = frozenset({Protocol.TLS, Protocol.HTTP, Protocol.SSH})


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
        self._lookalikes = LookalikeIndex(
            rule.host for rule in policy.rules if rule.level is not Verdict.DENY
        )
        for rule in policy.rules:
            self._rules.add(rule.host, rule)
        for entry in policy.rubric:
            self._rubric.add(entry.host, entry)
        self._internal: dict[str, list[InternalEntry]] = {}
        for opened in policy.internal:
            self._internal.setdefault(opened.host, []).append(opened)
        denials = [rule for rule in policy.rules if rule.level is Verdict.DENY]
        self._denied_addresses = {rule.host.name: rule for rule in denials if _is_address(rule.host.name)}

    def stand(self, name: str, port: int, protocol: Protocol, phase: Phase, identity: Identity) -> Standing:
        """Say how a name stands; for a DNS question the port and protocol do not count."""
        if is_metadata_name(name):
            return Standing(reason=Reason.METADATA_NAME, place=PlaceClass.METADATA, origin="builtin:metadata")
        rules = self._rules.find(name)
        entry = self._catalogue.find(name)
        rubric = self._rubric.find(name)
        place = _place_of(rules, entry, bool(rubric))
        if identity is not Identity.AGENT or phase is not Phase.SCORING:
            rubric = []
        whole = next((closed for closed in rubric if not closed.paths), None)
        if whole is not None:
            return Standing(reason=Reason.RUBRIC_IN_SCORING, place=place, entry=entry, origin=whole.origin)
        in_force = [rule for rule in rules if phase in rule.phases and identity in rule.identities]
        denials = [rule for rule in in_force if rule.level is Verdict.DENY and _covers(rule, port, protocol)]
        denial = next((rule for rule in denials if not _has_operations(rule)), None)
        reason, deciding = _choose_level(rules, in_force, port, protocol, identity)
        if denial is not None:
            reason, deciding = Reason.LISTED_DENY, (denial,)
        closings = (*map(_close_rubric, rubric), *map(_close_denial, filter(_has_operations, denials)))
        if reason is Reason.NOT_LISTED and entry is None and protocol is not Protocol.DNS:
            return self._stand_unlisted(name, closings, place)
        origin = deciding[0].origin if deciding else (entry.origin if entry else "builtin:default-deny")
        return Standing(
            reason=reason, rules=deciding, closings=closings, place=place, entry=entry, origin=origin
        )

    def _stand_unlisted(self, name: str, closings: tuple[Closing, ...], place: PlaceClass) -> Standing:
        imitated = self._lookalikes.find(name)
        reason = Reason.LOOKALIKE if imitated else Reason.NOT_LISTED
        origin = "builtin:lookalike" if imitated else "builtin:default-deny"
        return Standing(reason=reason, closings=closings, place=place, imitated=imitated, origin=origin)

    def is_internal(self, name: str) -> bool:
        """True if the name has an `internal:` entry, so that it is a place of the gateway's own network."""
        return name in self._internal

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
        rules = [rule for rule in self._rules.find(name) if rule.protocol is not None and port in rule.ports]
        if not rules:
            return None
        in_force = [rule for rule in rules if phase in rule.phases and identity in rule.identities]
        return min(in_force or rules, key=lambda rule: rule.level).protocol


def _is_address(name: str) -> bool:
    if ":" not in name and not name[-1:].isdigit():
        return False
    host = parse_host(name, is_bracketed=False)
    return isinstance(host, Host) and host.address is not None


def _place_of(rules: list[Rule], entry: CatalogueEntry | None, is_rubric: bool) -> PlaceClass:
    for rule in rules:
        if rule.place is not None:
            return rule.place
    if entry is not None:
        return entry.place
    return PlaceClass.RUBRIC if is_rubric else PlaceClass.UNKNOWN


def _has_operations(denial: Rule) -> bool:
    return bool(denial.paths or denial.methods)


def _covers(rule: Rule, port: int, protocol: Protocol) -> bool:
    """Tell whether a rule speaks of a port and protocol, or of the name in a question.

    A denial of some ports or one protocol leaves the name itself answerable. A rule for
    `tcp` carries whatever is spoken over it.
    """
    if protocol is Protocol.DNS:
        return rule.level is not Verdict.DENY or (not rule.ports and rule.protocol is None)
    if rule.protocol is Protocol.TCP and protocol in _OVER_TCP:
        return rule.covers(port)
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
    listed = [rule for rule in rules if rule.level is not Verdict.DENY]
    return _explain_closed(listed, port, protocol, identity)


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
