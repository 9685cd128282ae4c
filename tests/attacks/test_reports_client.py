"""Public reports of kind CLIENT: programs that ignore, misread or cannot use a proxy."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from typing import Any

import pytest
from attack_steps import allow

from stockade.prove.world_client import World

pytestmark = [
    pytest.mark.kernel,
    pytest.mark.clients,
    pytest.mark.needs("world", "userns", "bwrap", "room"),
]

PAGE = "range-docs-page"
FETCH = (
    "fetch(process.argv[1]).then(r => r.text()).then(console.log)"
    ".catch(e => {console.error(e); process.exit(1)})"
)


@pytest.mark.needs("node")
def test_r089_nodes_own_fetch_works_without_a_variable_and_is_judged(
    stockade: Callable[..., Any], world: World
) -> None:
    good = stockade(["node", "-e", FETCH, "http://app.test/"], allow("app.test"))
    assert PAGE in good.out, good.err
    bad = stockade(["node", "-e", FETCH, "http://evil.test/"], allow("app.test"))
    assert world.arrivals(address="93.184.216.66") == []
    assert [denial["name"] for denial in bad.denials()] == ["evil.test"]


@pytest.mark.needs("ssh", "git")
@pytest.mark.parametrize("name", ["app.test", "evil.test"])
def test_r091_git_over_ssh_reaches_a_listed_host_and_fails_fast_on_another(
    stockade: Callable[..., Any], world: World, name: str
) -> None:
    """The world's port 22 says only its banner; that ssh answers with its own is the arrival."""
    ssh = "ssh -F none -o StrictHostKeyChecking=no -o ConnectTimeout=3 -o BatchMode=yes"
    policy = "rules:\n  - allow: app.test\n    ports: [22]\n    protocol: ssh\n"
    command = [
        "env",
        f"GIT_SSH_COMMAND=timeout 4 {ssh}",
        "HOME=/tmp",
        "git",
        "ls-remote",
        f"ssh://git@{name}/x",
    ]
    run = stockade(command, policy)
    assert run.code != 0
    if name == "app.test":
        [arrival] = world.arrivals(port=22)
        assert arrival["first"].startswith("SSH-2.0-")
        assert [attempt["protocol"] for attempt in run.attempts(verdict="allow")] == ["ssh"]
    else:
        assert world.packets() == []
        [denial] = run.denials()
        assert (denial["name"], denial["port"]) == ("evil.test", 22)


def test_r093_no_proxy_variable_is_set_and_none_changes_a_verdict(
    stockade: Callable[..., Any], world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HTTPS_PROXY", "http://evil.test:3128")
    monkeypatch.setenv("no_proxy", "*")
    inside = stockade(["env"], allow("app.test")).out.lower()
    assert not [line for line in inside.splitlines() if "proxy" in line.partition("=")[0]]
    lists = ["", "*", ".test", "evil.test", "93.184.216.0/24", " evil.test , app.test "]
    fetch = "; ".join(
        f"no_proxy='{text}' http_proxy=http://198.18.0.1:3128 curl -s -m 5 -o /dev/null http://{name}/"
        for text in lists
        for name in ("evil.test", "app.test")
    )
    run = stockade(["sh", "-c", fetch], allow("app.test"))
    assert world.arrivals(address="93.184.216.66") == []
    assert len(world.requests()) == len(lists)
    assert {denial["reason"] for denial in run.denials()} == {"not-listed"}
    assert len(run.denials()) == len(lists)


LISTS = ("", "*", ".test", "evil.test", "93.184.216.0/24", " evil.test , app.test ", "test,*.test")
URLLIB = "import sys, urllib.request as u; print(u.urlopen(sys.argv[1], timeout=5).status)"
OTHERS = {
    "urllib": f'/usr/bin/python3 -c "{URLLIB}" http://%s/',
    "wget": "wget -q -T 5 -t 1 -O /dev/null http://%s/",
    "git": "git ls-remote -q http://%s/range.git HEAD",
}


@pytest.mark.needs("wget", "git")
@pytest.mark.parametrize("command", OTHERS.values(), ids=OTHERS)
def test_r093_whatever_a_client_makes_of_no_proxy_the_verdict_is_the_same(
    stockade: Callable[..., Any], world: World, command: str
) -> None:
    """Some of these go direct and some by the proxy, each client in its own way: nothing depends on it."""
    script = "; ".join(
        f"no_proxy='{text}' http_proxy=http://198.18.0.1:3128 {command % name} >/dev/null; echo $?"
        for text in LISTS
        for name in ("evil.test", "git.test")
    )
    run = stockade(["env", "HOME=/tmp", "sh", "-c", script], allow("git.test"))
    codes = [int(line) for line in run.out.split()]
    assert all(codes[0::2])
    assert not any(codes[1::2])
    assert world.arrivals(address="93.184.216.66") == []
    assert [denial["reason"] for denial in run.denials()] == ["not-listed"] * len(LISTS)
    assert {attempt["entry"] for attempt in run.attempts()} == {"transparent", "http-proxy"}


@pytest.mark.parametrize("road", ["http", "socks5h"])
def test_r095_the_proxy_asks_for_no_credentials_and_survives_long_ones(
    stockade: Callable[..., Any], world: World, road: str
) -> None:
    port = 3128 if road == "http" else 1080
    secret = "p%25" * (375 if road == "http" else 60)  # a SOCKS5 password is at most 255 bytes (RFC 1929)
    plain = f"{road}://198.18.0.1:{port}"
    with_credentials = f"{road}://user:{secret}@198.18.0.1:{port}"
    for proxy in (plain, with_credentials):
        run = stockade(["curl", "-sS", "-m", "5", "-x", proxy, "http://app.test/"], allow("app.test"))
        assert PAGE in run.out, run.err
        assert "p%p%" not in str(run.records)
    assert all("proxy-authorization" not in request["head"].lower() for request in world.requests())


def test_r095_control_a_client_without_proxy_needs_none_either(world: World) -> None:
    done = subprocess.run(["curl", "-sS", "-m", "5", "http://app.test/"], capture_output=True, text=True)
    assert PAGE in done.stdout
