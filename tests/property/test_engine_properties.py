"""What holds for every policy and every attempt, not only for those somebody thought of."""

from __future__ import annotations

from ipaddress import IPv4Address, ip_address, ip_network
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from stockade.decision.engine import Engine
from stockade.decision.name_index import NameIndex
from stockade.decision.request import Attempt
from stockade.net.host import Host, HostRefusal, parse_host
from stockade.policy.match import parse_path_pattern
from stockade.policy.model import DENY_ALL, EVERY_PHASE, HostPattern, InternalEntry, Policy, RubricEntry, Rule
from stockade.vocabulary import Entry, Identity, Phase, Protocol, Verdict

# Few names, ports and paths, so that rules and attempts meet.
NAMES = st.sampled_from(["a.test", "b.a.test", "c.b.a.test", "b.test"])
PATTERNS = st.builds(HostPattern, NAMES, st.booleans()) | st.just(HostPattern("a.test", True))
PORTS = st.sampled_from([80, 80, 443, 443, 8080])
PATHS = st.lists(
    st.sampled_from(["/a/**", "/a/*", "/b"]).map(parse_path_pattern),
    max_size=2,
    unique_by=lambda path: path.text,
).map(tuple)
METHODS = st.sampled_from([(), ("GET",), ("GET", "POST")])
SPOKEN = {80: Protocol.HTTP, 443: Protocol.TLS, 8080: Protocol.TCP}


OWNERS = st.sampled_from([(Identity.AGENT,), tuple(Identity), (Identity.GRADER,)])


@st.composite
def rules(draw: Any, levels: tuple[Verdict, ...] = tuple(Verdict)) -> Rule:
    level = draw(st.sampled_from(levels))
    port = draw(PORTS)
    is_deny = level is Verdict.DENY
    with_operations = level is not Verdict.ALLOW
    return Rule(
        level=level,
        host=draw(PATTERNS),
        ports=() if is_deny and draw(st.booleans()) else (port,),
        protocol=None if is_deny else SPOKEN[port],
        methods=draw(METHODS) if with_operations else (),
        paths=draw(PATHS) if with_operations else (),
        phases=draw(st.sampled_from([EVERY_PHASE, EVERY_PHASE, *((phase,) for phase in EVERY_PHASE)])),
        identities=tuple(Identity) if is_deny else draw(OWNERS),
        origin="policy.yaml:1",
    )


RUBRIC = st.builds(RubricEntry, host=PATTERNS, paths=PATHS, origin=st.just("policy.yaml:2"))
INTERNAL = st.builds(
    InternalEntry,
    host=NAMES,
    networks=st.just((ip_network("10.0.0.0/8"),)),
    ports=st.tuples(PORTS),
    origin=st.just("policy.yaml:3"),
)
POLICIES = st.builds(
    Policy,
    source=st.just("policy.yaml"),
    rules=st.lists(rules(), min_size=1, max_size=6).map(tuple),
    rubric=st.lists(RUBRIC, max_size=2).map(tuple),
    internal=st.lists(INTERNAL, max_size=2).map(tuple),
    digest=st.just(""),
)
_ANSWERS = ["93.184.216.34", "93.184.216.35", "2606:4700::1", "10.0.0.5", "169.254.169.254", "127.0.0.1"]
ANSWERS = st.lists(
    st.sampled_from(_ANSWERS).map(ip_address),
    min_size=1,
    max_size=2,
).map(tuple)


@st.composite
def attempts(draw: Any) -> Attempt:
    port = draw(PORTS)
    protocol = draw(st.sampled_from([SPOKEN[port]] * 4 + [Protocol.DNS, Protocol.UDP]))
    host = Host(draw(NAMES))
    seen = draw(st.booleans())
    return Attempt(
        entry=Entry.DNS if protocol is Protocol.DNS else Entry.TRANSPARENT,
        protocol=protocol,
        host=host,
        port=port,
        method=draw(st.sampled_from(["GET", "POST", "DELETE"])) if seen else None,
        path=draw(st.sampled_from(["/", "/a/x", "/a/../b", "/b", "/c"])) if seen else None,
        query_bytes=draw(st.integers(0, 2000)),
        sni=draw(st.sampled_from([None, host, host, host, Host("other.test")])),
        redirected=draw(st.booleans()),
    )


PHASES, IDENTITIES = st.sampled_from(list(Phase)), st.sampled_from(list(Identity))


@given(POLICIES, attempts(), ANSWERS, PHASES, IDENTITIES, st.data())
def test_removing_an_allow_never_allows_more(
    policy: Policy, attempt: Attempt, answers: Any, phase: Phase, identity: Identity, data: Any
) -> None:
    """A `proxy` rule limits as well as it opens, so only allow rules are taken out here."""
    allows = [rule for rule in policy.rules if rule.level is Verdict.ALLOW]
    if not allows:
        return
    gone = data.draw(st.sampled_from(allows))
    fewer = replace(policy, rules=tuple(rule for rule in policy.rules if rule is not gone))
    before = Engine(policy, phase, identity).decide(attempt, answers).verdict
    after = Engine(fewer, phase, identity).decide(attempt, answers).verdict
    assert after <= before


@given(POLICIES, rules(levels=(Verdict.DENY,)), attempts(), ANSWERS, PHASES, IDENTITIES)
def test_adding_a_deny_never_allows_more(
    policy: Policy, denial: Rule, attempt: Attempt, answers: Any, phase: Phase, identity: Identity
) -> None:
    more = replace(policy, rules=(denial, *policy.rules))
    before = Engine(policy, phase, identity).decide(attempt, answers).verdict
    after = Engine(more, phase, identity).decide(attempt, answers).verdict
    assert after <= before


@given(POLICIES, RUBRIC, attempts(), ANSWERS, PHASES, IDENTITIES)
def test_adding_a_rubric_entry_never_allows_more(
    policy: Policy, entry: RubricEntry, attempt: Attempt, answers: Any, phase: Phase, identity: Identity
) -> None:
    more = replace(policy, rubric=(*policy.rubric, entry))
    before = Engine(policy, phase, identity).decide(attempt, answers).verdict
    after = Engine(more, phase, identity).decide(attempt, answers).verdict
    assert after <= before


@given(POLICIES, attempts(), ANSWERS, PHASES, IDENTITIES, st.randoms(use_true_random=False))
def test_the_order_of_rules_decides_nothing(
    policy: Policy, attempt: Attempt, answers: Any, phase: Phase, identity: Identity, random: Any
) -> None:
    shuffled = list(policy.rules)
    random.shuffle(shuffled)
    other = replace(policy, rules=tuple(shuffled))
    one = Engine(policy, phase, identity).decide(attempt, answers)
    two = Engine(other, phase, identity).decide(attempt, answers)
    assert (one.verdict, one.permit) == (two.verdict, two.permit)


@given(POLICIES, attempts(), ANSWERS, PHASES, IDENTITIES)
def test_two_spellings_of_a_host_get_one_verdict(
    policy: Policy, attempt: Attempt, answers: Any, phase: Phase, identity: Identity
) -> None:
    engine = Engine(policy, phase, identity)
    assert isinstance(attempt.host, Host)
    spelled = parse_host(attempt.host.name.upper() + ".")
    assert isinstance(spelled, Host)
    one, two = engine.decide(attempt, answers), engine.decide(replace(attempt, host=spelled), answers)
    assert (one.verdict, one.risk, one.reason, one.permit) == (two.verdict, two.risk, two.reason, two.permit)


@given(attempts(), ANSWERS, PHASES, IDENTITIES)
def test_an_empty_policy_denies_everything(
    attempt: Attempt, answers: Any, phase: Phase, identity: Identity
) -> None:
    assert Engine(DENY_ALL, phase, identity).decide(attempt, answers).verdict is Verdict.DENY


@given(POLICIES, attempts(), ANSWERS, PHASES, IDENTITIES)
def test_a_permit_exists_only_for_what_passed_and_holds_only_its_answers(
    policy: Policy, attempt: Attempt, answers: Any, phase: Phase, identity: Identity
) -> None:
    decision = Engine(policy, phase, identity).decide(attempt, answers)
    assert (decision.permit is not None) == (decision.verdict is not Verdict.DENY)
    if decision.permit is not None:
        assert decision.permit.addresses == answers
        assert ip_address("169.254.169.254") not in answers
        assert isinstance(attempt.host, Host)
        assert decision.permit.name == attempt.host.name


@given(POLICIES, attempts(), ANSWERS, PHASES, IDENTITIES)
def test_an_answer_never_opens_what_the_name_alone_does_not(
    policy: Policy, attempt: Attempt, answers: Any, phase: Phase, identity: Identity
) -> None:
    engine = Engine(policy, phase, identity)
    by_name = engine.decide(attempt)
    assert engine.decide(attempt, answers).verdict <= by_name.verdict
    assert by_name.permit is None


@given(POLICIES, attempts(), PHASES, IDENTITIES)
def test_asking_twice_gives_the_same_decision(
    policy: Policy, attempt: Attempt, phase: Phase, identity: Identity
) -> None:
    engine = Engine(policy, phase, identity)
    assert engine.decide(attempt) == engine.decide(attempt) == Engine(policy, phase, identity).decide(attempt)


@given(POLICIES, st.integers(0, 2**32 - 1).map(IPv4Address), PORTS, PHASES, IDENTITIES)
def test_no_policy_permits_a_literal_address(
    policy: Policy, address: IPv4Address, port: int, phase: Phase, identity: Identity
) -> None:
    attempt = Attempt(
        entry=Entry.TRANSPARENT, protocol=SPOKEN[port], host=parse_host(str(address)), port=port
    )
    assert Engine(policy, phase, identity).decide(attempt, (address,)).verdict is Verdict.DENY


@given(st.binary(max_size=80), st.binary(max_size=40), PHASES)
def test_any_bytes_as_host_and_sni_get_a_decision_with_a_printable_sentence(
    host: bytes, sni: bytes, phase: Phase
) -> None:
    attempt = Attempt(
        entry=Entry.TRANSPARENT, protocol=Protocol.TLS, host=parse_host(host), port=443, sni=parse_host(sni)
    )
    decision = Engine(DENY_ALL, phase).decide(attempt)
    assert decision.verdict is Verdict.DENY
    assert decision.why.isprintable()
    assert isinstance(attempt.host, Host | HostRefusal)


@given(st.lists(PATTERNS | st.just(HostPattern("", True)), max_size=8), NAMES)
def test_the_index_finds_what_looking_at_every_pattern_finds(patterns: list[HostPattern], name: str) -> None:
    index: NameIndex[int] = NameIndex()
    for number, pattern in enumerate(patterns):
        index.add(pattern, number)
    one_by_one = [number for number, pattern in enumerate(patterns) if pattern.matches(name)]
    assert sorted(index.find(name)) == one_by_one
