"""Imitations of listed names are named, and ordinary strangers are not."""

from __future__ import annotations

import pytest
from decision_texts import decide, engine_of

from stockade.decision.lookalike import MAX_DRAWN_NAMES, LookalikeIndex
from stockade.policy.model import HostPattern
from stockade.vocabulary import Control, Reason, Verdict

POLICY = """
rules: [{allow: docs.python.org}, {allow: "*.docs.test"}, {proxy: api.provider.example}, {deny: deny.example}]
"""


@pytest.mark.parametrize(
    "name",
    [
        "docs.python.org.cdn.example",  # the listed name as a prefix
        "www.docs.python.org.evil.example",
        "evildocs.python.org",  # glued on the left
        "docs-python.org",  # the dot drawn as a hyphen
        "docs.python.example",  # another last label
        "xn--docs-pthon-3wi.example",  # Cyrillic u for y
        "xn--dcs-sed.python.org",  # Cyrillic o
        "d0cs.pyth0n.org",  # digits for letters
        "docs.pyton.org",  # a letter less
        "docs.pythonn.org",  # a letter more
        "docs.pyhton.org",  # two swapped
        "docs.pythom.org",  # another letter
        "docspython.org",  # the dot left out
        "docs.test",  # the apex of a wildcard
        "api.provlder.example",  # l for i
    ],
)
def test_an_imitation_is_denied_and_named(name: str) -> None:
    decision = decide(POLICY, f"GET https://{name}/")
    assert (decision.verdict, decision.reason) == (Verdict.DENY, Reason.LOOKALIKE), decision.why
    assert decision.control is Control.ALLOWLIST_EXACT


@pytest.mark.parametrize(
    "name",
    [
        "collector.unknown.example",
        "python.org",  # the parent: another place, not an imitation
        "www.docs.python.org",  # below it: the owner's own
        "wiki.python.org",
        "eu.api.provider.example",
        "llm-gw.example",
        "deny.example.evil.example",  # only names that are open are worth imitating
        "org.example",
        "a.b.c.d.e.f.g.h.i.j.k.l.m.n.o.p.example",
    ],
)
def test_a_stranger_is_not_called_an_imitation(name: str) -> None:
    assert decide(POLICY, f"GET https://{name}/").reason is not Reason.LOOKALIKE


def test_numbered_hosts_and_short_words_differ_on_purpose() -> None:
    text = "rules: [{allow: node1.cluster.test}, {allow: app.shop.test}]"
    assert decide(text, "GET https://node2.cluster.test/").reason is Reason.NOT_LISTED
    assert decide(text, "GET https://api.shop.test/").reason is Reason.NOT_LISTED
    assert decide(text, "GET https://node1.clusher.test/").reason is Reason.LOOKALIKE


def test_the_listed_name_itself_is_let_through_and_its_imitation_says_what_it_imitates() -> None:
    engine = engine_of(POLICY)
    assert decide(engine, "GET https://docs.python.org/").verdict is Verdict.ALLOW
    assert "docs.python.org" in decide(engine, "GET https://docs.pyton.org/").why
    assert "*.docs.test" in decide(engine, "GET https://docs.test/").why


def test_very_large_lists_keep_the_checks_that_need_no_index() -> None:
    patterns = [HostPattern(f"host{number}.corp.example") for number in range(MAX_DRAWN_NAMES)]
    small, large = LookalikeIndex(patterns), LookalikeIndex([*patterns, HostPattern("docs.python.org")])
    assert small.find("hosst7.corp.example") == "host7.corp.example"
    assert large.find("hosst7.corp.example") is None
    assert large.find("docs.python.org.evil.example") == "docs.python.org"


@pytest.mark.parametrize(
    "name", ["xn--" + "a" * 59 + ".test", ".".join(["a"] * 127), "a" * 63 + "." + "b" * 63 + ".c"]
)
def test_hostile_names_are_looked_at_in_bounded_time(name: str) -> None:
    index = LookalikeIndex([HostPattern("docs.python.org")])
    assert index.find(name) is None


def test_the_apex_of_a_wildcard_is_told_that_the_wildcard_is_below_it() -> None:
    why = decide(POLICY, "GET https://docs.test/").why
    assert why.startswith(
        "*.docs.test is listed, which is every name below docs.test and not docs.test itself;"
    )
    assert "`- allow: docs.test`" in why
