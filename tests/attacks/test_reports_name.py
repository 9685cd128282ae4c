"""Public reports of kind NAME: one host in many spellings, and spellings that are no host."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from attack_steps import ENTRIES, Step, Tried, allow, get, get_tls, ok

from stockade.prove.world_client import World

pytestmark = [pytest.mark.kernel, pytest.mark.needs("world", "userns", "bwrap", "room")]

Do = Callable[..., Tried]
APP, EVIL = "93.184.216.34", "93.184.216.66"
APP_ONLY = allow("app.test")
ALL_BUT_EVIL = allow("*.test") + "  - deny: evil.test\n"


def spelled(name: str, port: int = 80) -> list[Step]:
    """This spelling wherever a client can write a host: CONNECT, absolute form, SOCKS, Host.

    Text stands for bytes here, as in Latin-1, so that a spelling may be no text at all.
    """
    return [
        get("app.test", port, entry="http-proxy", tunnel=True, authority=f"{name}:{port}", target="/"),
        get("app.test", port, entry="http-proxy", target=f"http://{name}/", host_header=name),
        get(name, port, entry="socks5", as_name=True),
        get("app.test", port, host_header=name),
    ]


# --- R018: a final dot, a port glued on ----------------------------------------------------------


@pytest.mark.parametrize("name", ["evil.test.", "EVIL.test.", "evil.test..", "evil.test:80", "evil.test.:80"])
def test_r018_no_spelling_of_a_denied_host_passes_a_wide_rule(
    in_the_open: Do, contained: Do, world: World, name: str
) -> None:
    in_the_open(get("evil.test", host_header=name))
    assert len(world.arrivals(address=EVIL)) == 1
    world.reset()
    tried = contained(*spelled(name), get("docs.test"), policy=ALL_BUT_EVIL)
    assert [ok(answer) for answer in tried.answers] == [False] * 4 + [True]
    assert world.packets(address=EVIL) == []
    assert [request["host"] for request in world.requests()] == ["docs.test"]
    assert len(tried.run.denials()) == 4


@pytest.mark.parametrize("name", ["evil.test.", "EVIL.TEST"])
def test_r018_a_denied_host_is_denied_in_a_hello_and_in_a_question_too(
    contained: Do, world: World, name: str
) -> None:
    tried = contained(
        get_tls("evil.test", sni=name),
        {"do": "dns", "host": "9.9.9.9", "name": name},
        get_tls("docs.test", sni="DOCS.test"),
        policy=ALL_BUT_EVIL,
    )
    assert [ok(tried[0]), ok(tried[2])] == [False, True]
    assert {question["name"] for question in world.dns_questions()} == {"docs.test"}
    assert world.packets(address=EVIL) == []
    asked = tried.run.attempts(entry="dns", verdict="deny")
    assert {(question["name"], question["reason"]) for question in asked} == {("evil.test", "listed-deny")}


# --- R020: capital letters -----------------------------------------------------------------------


def test_r020_capital_letters_are_the_same_host_on_every_road(contained: Do, world: World) -> None:
    steps = [
        *spelled("API.Allowed.TEST"),
        get_tls("api.allowed.test", sni="API.allowed.test"),
        {"do": "dns", "host": "9.9.9.9", "name": "API.ALLOWED.TEST"},
    ]
    steps[0] = get("API.Allowed.TEST", entry="http-proxy", tunnel=True, target="/")
    steps[3]["host"] = "API.ALLOWED.test"  # the fourth is transparent: the name is looked up as written
    tried = contained(*steps, policy=allow("api.allowed.test"))
    assert [ok(answer) for answer in tried.answers[:-1]] == [True] * 5
    assert tried[5]["address"].startswith(("198.18.", "198.19."))
    assert {attempt["name"] for attempt in tried.run.attempts()} == {"api.allowed.test"}
    assert tried.run.denials() == []


# --- R021, R025, R064: bytes that are no host ----------------------------------------------------

NO_HOSTS = {
    "kelvin-sign": "\u212aapp.test".encode().decode("latin-1"),
    "dotted-i": "\u0130app.test".encode().decode("latin-1"),
    "fullwidth-dot": "evil\uff0etest".encode().decode("latin-1"),
    "nul": "evil.test\0.app.test",
    "nul-first": "app.test\0.evil.test",
    "percent-nul": "evil.test%00.app.test",
    "tab": "evil.test\t.app.test",
    "space": "evil.test .app.test",
    "del": "evil.test\x7f.app.test",
    "user": "app.test@evil.test",
    "backslash": "evil.test\\.app.test",
    "brackets": "[app.test]",
    "comma": "evil.test,app.test",
}
BREAKS = {"cr": "evil.test\r.app.test", "lf": "evil.test\n.app.test", "crlf": "evil.test\r\n.app.test"}


@pytest.mark.parametrize("name", NO_HOSTS.values(), ids=NO_HOSTS)
def test_r021_r025_r064_bytes_that_are_no_host_are_refused_before_any_look_up(
    contained: Do, world: World, name: str
) -> None:
    tried = contained(*spelled(name), get("app.test"), policy=allow("app.test", "*.app.test"))
    assert [ok(answer) for answer in tried.answers] == [False] * 4 + [True]
    assert {question["name"] for question in world.dns_questions()} == {"app.test"}
    assert [request["host"] for request in world.requests()] == ["app.test"]
    denials = tried.run.denials()
    assert len(denials) == 4
    assert {denial["reason"] for denial in denials} <= {"malformed-host", "malformed-request"}
    assert all(str(denial).isprintable() for denial in denials)


@pytest.mark.parametrize("name", BREAKS.values(), ids=BREAKS)
def test_r025_a_line_break_in_a_host_ends_no_line_of_ours(contained: Do, world: World, name: str) -> None:
    """In a SOCKS name it is a byte like others; in a head it makes another head, which is judged as one."""
    tried = contained(
        get(name, entry="socks5", as_name=True),
        *[get("app.test", entry=entry, host_header=name) for entry in ENTRIES],
        get("app.test"),
        policy=allow("app.test", "*.app.test"),
    )
    assert not any(map(ok, tried.answers[:4]))
    assert ok(tried[4])
    assert [request["host"] for request in world.requests()] == ["app.test"]
    [socks] = tried.run.denials(entry="socks5", reason="malformed-host")
    assert socks["raw"] == name.replace("\r", "\\r").replace("\n", "\\n")


def test_r025_the_bytes_appear_escaped_in_the_record(contained: Do, world: World) -> None:
    tried = contained(
        get("evil.test\0.app.test", entry="socks5", as_name=True),
        get("app.test", entry="http-proxy", tunnel=True, authority="evil.test\x7f.app.test:443"),
        policy=allow("*.app.test"),
    )
    socks, connect = tried.run.denials()
    assert socks["raw"] == r"evil.test\x00.app.test"
    assert connect["why"].endswith(r": evil.test\x7f.app.test:443")


# --- R022: names in other scripts ----------------------------------------------------------------


@pytest.mark.parametrize("written", ["bücher.test", "xn--bcher-kva.test"])
@pytest.mark.parametrize("entry", ENTRIES)
def test_r022_a_name_in_another_script_is_denied_in_the_form_that_clients_send(
    contained: Do, world: World, entry: str, written: str
) -> None:
    world.set_dns({"xn--bcher-kva.test": {"a": [EVIL]}, "xn--kse-qla.test": {"a": [APP]}})
    policy = allow("*.test") + f"  - deny: {written}\n"
    tried = contained(
        get("xn--bcher-kva.test", entry=entry), get("xn--kse-qla.test", entry=entry), policy=policy
    )
    assert [ok(answer) for answer in tried.answers] == [False, True]
    assert world.packets(address=EVIL) == []
    assert [denial["reason"] for denial in tried.run.denials()] == ["listed-deny"]


# --- R027, R028, R029: what an entry covers --------------------------------------------------------


@pytest.mark.parametrize("entry", ENTRIES)
def test_r027_apex_and_depth_are_covered_as_documented(contained: Do, world: World, entry: str) -> None:
    names = ("allowed.test", "www.allowed.test", "a.b.allowed.test", "notallowed.test")
    world.set_dns({name: {"a": [APP]} for name in names})
    steps = [get(name, entry=entry) for name in names]
    exact = contained(*steps, policy=allow("allowed.test"))
    below = contained(*steps, policy=allow("*.allowed.test"))
    assert [ok(answer) for answer in exact.answers] == [True, False, False, False]
    assert [ok(answer) for answer in below.answers] == [False, True, True, False]


def test_r029_each_missing_host_is_named_with_the_line_to_add(
    stockade: Callable[..., Any], world: World
) -> None:
    """One script, three hosts: the same status for both that are missing, and a summary to copy from."""
    world.set_dns({name: {"a": [APP]} for name in ("code.test", "api.code.test", "raw.codecontent.test")})
    fetch = "curl -s -o /dev/null -w '%{http_code}\\n'"
    names = ("code.test", "api.code.test", "raw.codecontent.test")
    script = "; ".join(f"{fetch} http://{name}/" for name in names)
    run = stockade(["sh", "-c", script], allow("code.test"))
    assert run.out.split() == ["200", "403", "403"]
    for name in names[1:]:
        assert f"add `- {{allow: {name}, ports: [80]}}` under `rules:`" in run.err
    added = "rules:\n" + "".join(f"- {{allow: {name}, ports: [80]}}\n" for name in names)
    assert stockade(["sh", "-c", script], added).out.split() == ["200"] * 3
