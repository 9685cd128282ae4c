"""Public reports of kind POLICY: a list that is loaded and shown, and something else is enforced."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from attack_steps import ENTRIES, Tried, allow, get, get_tls, ok

from stockade.prove.world_client import World

pytestmark = [pytest.mark.kernel, pytest.mark.needs("world", "userns", "bwrap", "room")]

Do = Callable[..., Tried]
COMMAND = str(Path(sys.prefix) / "bin" / "stockade")
APP, EVIL = "93.184.216.34", "93.184.216.66"
HEAD = "version: 1\nexec: {mode: any}\n"
APP_ONLY = allow("app.test")
ROADS = {
    "transparent": "",
    "http-proxy": "-x http://198.18.0.1:3128",
    "connect": "-p -x http://198.18.0.1:3128",
    "socks5": "-x socks5h://198.18.0.1:1080",
}


@pytest.mark.parametrize("road", ROADS.values(), ids=ROADS)
def test_r001_what_is_not_listed_gets_no_connection_on_any_road(
    stockade: Callable[..., Any], world: World, road: str
) -> None:
    """Over TLS, in plain HTTP, and a name that nobody resolves; `curl -f` fails each time."""
    urls = ["https://evil.test/", "http://evil.test/", "http://nowhere.example/", "http://app.test/"]
    for url in urls[:2]:
        assert subprocess.run(["curl", "-sfk", "-m", "5", url], capture_output=True).returncode == 0
    assert len(world.arrivals(address=EVIL)) == 2
    world.reset()
    curl = f"curl -sfk -m 5 -o /dev/null {road}"
    run = stockade(["sh", "-c", "; ".join(f"{curl} {url}; echo $?" for url in urls)], APP_ONLY)
    codes = [int(line) for line in run.out.split()]
    assert all(codes[:3])
    assert codes[3] == 0
    assert [packet["address"] for packet in world.packets()] == [APP]
    assert {question["name"] for question in world.dns_questions()} == {"app.test"}
    assert [denial["name"] for denial in run.denials()] == ["evil.test", "evil.test", "nowhere.example"]
    assert {denial["reason"] for denial in run.denials()} == {"not-listed"}


@pytest.mark.parametrize(
    ("key", "nearest"),
    [("network.allow: [app.test]", "rules"), ("additionalAllowedHosts: [app.test]", "rules"),
     ("allowed_domain: app.test", "rules"), ("rulez: [{allow: app.test}]", "rules")],
)  # fmt: skip
def test_r003_a_misspelt_key_stops_the_run(
    stockade: Callable[..., Any], workspace: Path, world: World, key: str, nearest: str
) -> None:
    broken = stockade(["touch", "started"], f"{key}\n", extra=["--write", "."])
    assert broken.code == 102
    assert "policy.yaml:3: unknown-key" in broken.err
    assert f"`{nearest}`" in broken.err or f"write {nearest}:" in broken.err
    assert not (workspace / "started").exists()
    assert stockade(["touch", "started"], APP_ONLY, extra=["--write", "."]).code == 0
    assert (workspace / "started").exists()


# --- a policy or a phase that changes under a running worker ------------------------------------


class Asker:
    """A worker that fetches what it is told, one new client after the other, and its operator."""

    def __init__(self, stockade: Any, policy: str, road: str = "") -> None:
        fetch = f'curl -s -m 5 -o /dev/null -w "%{{http_code}}\\n" {road} "$url"'
        self._stockade = stockade
        self._worker = stockade.start(["sh", "-c", f"while read url; do {fetch}; done"], policy)

    def may(self, name: str) -> bool:
        """Whether a fetch of this name is answered by the world."""
        self._worker.stdin.write(f"http://{name}/\n".encode())
        self._worker.stdin.flush()
        return bool(self._worker.stdout.readline() == b"200\n")

    def operate(self, *words: str) -> dict[str, Any]:
        done = self.try_to_operate(*words)
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout) if "--json" in words else {}

    def try_to_operate(self, *words: str) -> subprocess.CompletedProcess[str]:
        shelf = ["--ledger", str(self._stockade.ledger)]
        return subprocess.run([COMMAND, *words, *shelf], capture_output=True, text=True, timeout=10)

    def end(self) -> Any:
        out, err = self._worker.communicate(timeout=15)
        return self._stockade.finish(self._worker, out, err)


@pytest.mark.parametrize("road", ROADS.values(), ids=ROADS)
def test_r004_a_replaced_list_opens_what_is_new_and_closes_what_is_gone(
    stockade: Callable[..., Any], world: World, tmp_path: Path, road: str
) -> None:
    """When the command has returned the new list is in force: nobody waits for anything."""
    asker = Asker(stockade, APP_ONLY, road)
    assert [asker.may("app.test"), asker.may("docs.test")] == [True, False]
    (tmp_path / "b.yaml").write_text(HEAD + allow("docs.test"))
    digest = asker.operate("policy", "replace", str(tmp_path / "b.yaml"), "--json")["policy"]
    assert [asker.may("app.test"), asker.may("docs.test")] == [False, True]
    run = asker.end()
    shown = subprocess.run(
        [COMMAND, "policy", "show", "--json", str(tmp_path / "b.yaml")], capture_output=True
    )
    assert json.loads(shown.stdout)["digest"] == digest
    assert [(a["name"], a["verdict"], a["policy"] == digest) for a in run.attempts()] == [
        ("app.test", "allow", False),
        ("docs.test", "deny", False),
        ("app.test", "deny", True),
        ("docs.test", "allow", True),
    ]


@pytest.mark.parametrize(
    ("head", "more"),
    [
        (HEAD, "limits: {connections: 4}\n"),
        (HEAD, "files: {write: [.]}\n"),
        ("version: 1\n", "exec: {allow: [curl]}\n"),
        ("version: 1\n", "exec: {mode: any, unix-sockets: true}\n"),
    ],
)
def test_r004_a_replacement_that_could_not_be_held_is_refused(
    stockade: Callable[..., Any], world: World, tmp_path: Path, head: str, more: str
) -> None:
    """The room was built with its limits, view and seal; the network part alone can change under it."""
    asker = Asker(stockade, APP_ONLY)
    assert asker.may("app.test")
    (tmp_path / "b.yaml").write_text(head + allow("docs.test") + more)
    refused = asker.try_to_operate("policy", "replace", str(tmp_path / "b.yaml"))
    assert refused.returncode == 2
    assert more.partition(":")[0] in refused.stderr
    assert [asker.may("app.test"), asker.may("docs.test")] == [True, False]
    assert [record for record in asker.end().records if record["kind"] == "policy.changed"] == []


@pytest.mark.parametrize("road", ROADS.values(), ids=ROADS)
def test_r016_each_switch_changes_verdicts_at_once_and_back_and_is_a_record(
    stockade: Callable[..., Any], world: World, road: str
) -> None:
    asker = Asker(stockade, allow("app.test", "rubric.test") + "rubric: [rubric.test]\n", road)
    seen = [asker.may("rubric.test")]
    for words in (["scoring"], ["work", "--reopen"], ["scoring"]):
        asker.operate("phase", *words)
        seen.append(asker.may("rubric.test"))
    assert asker.may("app.test")
    run = asker.end()
    assert seen == [True, False, True, False]
    changes = [(r["from"], r["to"]) for r in run.records if r["kind"] == "phase.changed"]
    assert changes == [("work", "scoring"), ("scoring", "work"), ("work", "scoring")]
    assert {denial["risk"] for denial in run.denials()} == {"eval-contamination"}
    assert len(world.requests(address="93.184.216.44")) == 2


# A tunnel by CONNECT that goes on as long as it may: one byte of echo for each word from outside.
TUNNEL = r"""
import socket, sys
line = socket.create_connection(("198.18.0.1", 3128), 5)
line.sendall(b"CONNECT app.test:9000 HTTP/1.1\r\nHost: app.test:9000\r\n\r\n")
while not line.recv(1000).endswith(b"\r\n\r\n"): pass
for order in sys.stdin:
    try:
        line.sendall(b"x")
        print(line.recv(1).decode() or "end", flush=True)
    except OSError as problem:
        print(type(problem).__name__, flush=True)
"""


@pytest.mark.parametrize("how", ["policy", "phase"])
def test_r017_an_open_connect_tunnel_is_cut_and_the_cut_is_counted(
    stockade: Any, world: World, tmp_path: Path, how: str
) -> None:
    policy = "rules:\n  - {allow: app.test, ports: [9000], protocol: tcp}\nrubric: [app.test]\n"
    worker = stockade.start(["/usr/bin/python3", "-c", TUNNEL], policy)

    def say() -> str:
        worker.stdin.write(b"\n")
        worker.stdin.flush()
        return str(worker.stdout.readline().decode().strip())

    assert [say() for _ in range(3)] == ["x"] * 3
    (tmp_path / "b.yaml").write_text(HEAD + "rules:\n  - allow: docs.test\n")
    change = ["phase", "scoring"] if how == "phase" else ["policy", "replace", str(tmp_path / "b.yaml")]
    subprocess.run([COMMAND, *change, "--ledger", str(stockade.ledger)], check=True, capture_output=True)
    assert say() in ("ConnectionResetError", "BrokenPipeError")
    out, err = worker.communicate(timeout=15)
    run = stockade.finish(worker, out, err)
    [cut] = [record for record in run.records if record["kind"] == "outcome" and record["outcome"] == "cut"]
    assert (cut["sent_bytes"], cut["received_bytes"]) == (3, 3)
    assert [denial["reason"] for denial in run.denials()] == ["policy-changed"]
    assert [arrival["bytes"] for arrival in world.arrivals(port=9000)] == [3]


# --- what the list says, on every road -----------------------------------------------------------


def test_r005_overlapping_entries_start_a_filtered_run(contained: Do, world: World) -> None:
    """A name beside the wildcard over it: a union, and never a run without a filter."""
    tried = contained(
        get("www.allowed.test"), get("api.allowed.test"), get("evil.test"),
        policy=allow("api.allowed.test", "*.allowed.test"),
    )  # fmt: skip
    assert [ok(answer) for answer in tried.answers] == [True, True, False]
    assert world.packets(address=EVIL) == []
    dotted = "rules:\n  - allow: .allowed.test\n"
    with pytest.raises(AssertionError, match="the payload did not run: 102"):
        contained(get("evil.test"), policy=dotted)


@pytest.mark.parametrize("order", [1, -1], ids=["network-first", "denial-first"])
def test_r007_a_denied_address_inside_an_opened_network_stays_denied(
    contained: Do, world: World, order: int
) -> None:
    """`internal:` is the one way to open a network; a denied number in it is not dialled."""
    world.set_dns({f"{name}.test": {"a": [f"10.20.1.{name[1:]}"]} for name in ("n4", "n5", "n6")})
    rules = [
        "  - deny: 10.20.1.5\n",
        *(f"  - {{allow: {n}.test, ports: [80]}}\n" for n in ("n4", "n5", "n6")),
    ]
    policy = (
        "rules:\n"
        + "".join(rules[::order])
        + "internal:\n"
        + "".join(
            f"  - {{host: {name}.test, networks: [10.20.0.0/16], ports: [80]}}\n"
            for name in ("n4", "n5", "n6")
        )
    )
    for entry in ENTRIES:
        tried = contained(*[get(f"{name}.test", entry=entry) for name in ("n4", "n5", "n6")], policy=policy)
        assert [ok(answer) for answer in tried.answers] == [True, False, True]
        assert [denial["name"] for denial in tried.run.denials()] == ["n5.test"]
    assert {packet["address"] for packet in world.packets()} == {"10.20.1.4", "10.20.1.6"}


PLACES = {"app.test": True, "evil.test": False, "x.app.test": False, EVIL: False, APP: False,
          "169.254.169.254": False}  # fmt: skip


@pytest.mark.parametrize("place", PLACES)
def test_r009_the_verdict_is_the_same_on_every_road(contained: Do, world: World, place: str) -> None:
    """Absolute form, CONNECT, SOCKS and no proxy at all, with TLS and without."""
    sni = place if place.endswith("test") else "app.test"
    steps = [get(place, entry=entry) for entry in ENTRIES]
    steps += [get_tls(place, entry=entry, sni=sni) for entry in ENTRIES]
    steps.append(get(place, entry="http-proxy", tunnel=True, target="/"))
    tried = contained(*steps, {"do": "dns", "host": "9.9.9.9", "name": place}, policy=APP_ONLY)
    assert [ok(answer) for answer in tried.answers[:-1]] == [PLACES[place]] * len(steps)
    verdicts = [attempt["verdict"] for attempt in tried.run.attempts()]
    assert verdicts == ["allow" if PLACES[place] else "deny"] * len(steps)
    questions = {record["verdict"] for record in tried.run.attempts(entry="dns")}
    assert questions == {"allow" if PLACES[place] else "deny"}
    assert bool(world.packets()) == PLACES[place]
