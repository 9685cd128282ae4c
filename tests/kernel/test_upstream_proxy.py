"""R041: a site whose only way out is a proxy of the operator's, at a private address."""

import socket
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from stockade.prove.world_client import World

pytestmark = [pytest.mark.kernel, pytest.mark.needs("world", "bwrap")]

OWN_ADDRESS = "10.9.0.2"  # this side of the range: private, and the gateway's own
PUBLIC = "93.184.216.34"
POLICY = (
    "rules:\n  - {allow: allowed.test, ports: [8080], protocol: http}\n"
    "  - {allow: priv.test, ports: [8080], protocol: http}\n"
    "internal:\n  - {host: priv.test, networks: [10.20.0.0/24], ports: [8080]}\n"
)


class SiteProxy:
    """A CONNECT proxy that notes what it is asked for; it takes every name to the same public server."""

    def __init__(self, answer: bytes = b"") -> None:
        self.heads: list[bytes] = []
        self._answer = answer
        self._listener = socket.create_server((OWN_ADDRESS, 0))
        self.port = self._listener.getsockname()[1]
        threading.Thread(target=self._serve, daemon=True).start()

    @property
    def targets(self) -> list[bytes]:
        return [head.split(b" ")[1] for head in self.heads]

    def _serve(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            head = b""
            while b"\r\n\r\n" not in head:
                head += client.recv(4096)
            self.heads.append(head)
            if self._answer:
                client.sendall(self._answer)
                client.close()
                continue
            far = socket.create_connection((PUBLIC, int(head.split(b" ")[1].rpartition(b":")[2])))
            client.sendall(b"HTTP/1.1 200 yes\r\nVia: site\r\n\r\n")
            for source, target in ((client, far), (far, client)):
                threading.Thread(target=self._copy, args=(source, target), daemon=True).start()

    @staticmethod
    def _copy(source: socket.socket, target: socket.socket) -> None:
        try:
            while data := source.recv(65536):
                target.sendall(data)
            target.shutdown(socket.SHUT_WR)
        except OSError:
            pass

    def close(self) -> None:
        self._listener.close()


@pytest.fixture
def proxy() -> Iterator[SiteProxy]:
    site = SiteProxy()
    yield site
    site.close()


def through(proxy: SiteProxy, userinfo: str = "") -> list[str]:
    return ["env", f"STOCKADE_UPSTREAM_PROXY=http://{userinfo}{OWN_ADDRESS}:{proxy.port}"]


def curl(url: str) -> list[str]:
    return ["curl", "-sS", "-m8", "-o", "/dev/null", "-w", "%{http_code}", url]


def test_r041_a_permitted_name_goes_by_the_proxy_and_is_looked_up_there(
    stockade: Any, world: World, proxy: SiteProxy
) -> None:
    run = stockade(curl("http://allowed.test:8080/"), POLICY, prefix=through(proxy))
    assert run.out == "200", run.err
    assert proxy.targets == [b"allowed.test:8080"]
    assert world.dns_questions() == []
    (attempt,) = run.attempts()
    assert (attempt["verdict"], attempt["through"]) == ("allow", f"{OWN_ADDRESS}:{proxy.port}")
    assert "Address checks end at the upstream proxy" in attempt["why"]


def test_r041_a_name_that_is_not_permitted_does_not_reach_the_proxy(
    stockade: Any, world: World, proxy: SiteProxy
) -> None:
    run = stockade(curl("http://evil.test:8080/"), POLICY, prefix=through(proxy))
    assert run.out == "403"
    assert proxy.heads == []


def test_r041_the_worker_cannot_use_the_proxy_itself(stockade: Any, world: World, proxy: SiteProxy) -> None:
    run = stockade(curl(f"http://{OWN_ADDRESS}:{proxy.port}/"), POLICY, prefix=through(proxy))
    assert proxy.heads == []
    assert [d["reason"] for d in run.denials()] == ["own-address"]


def test_a_name_of_the_own_network_is_reached_directly_and_judged(
    stockade: Any, world: World, proxy: SiteProxy
) -> None:
    run = stockade(curl("http://priv.test:8080/"), POLICY, prefix=through(proxy))
    assert run.out == "200"
    assert proxy.heads == []
    assert [a["address"] for a in run.attempts()] == ["10.20.0.5"]


def test_what_the_operator_resolved_by_hand_is_reached_directly(
    stockade: Any, world: World, proxy: SiteProxy
) -> None:
    extra = ["--resolve", f"allowed.test={PUBLIC}"]
    run = stockade(curl("http://allowed.test:8080/"), POLICY, prefix=through(proxy), extra=extra)
    assert run.out == "200"
    assert proxy.heads == []


def test_credentials_reach_the_proxy_and_no_record(stockade: Any, world: World, proxy: SiteProxy) -> None:
    run = stockade(curl("http://allowed.test:8080/"), POLICY, prefix=through(proxy, "ann:s%40cret@"))
    assert run.out == "200"
    # RFC 7617: base64 of "ann:s@cret", by hand with `printf ann:s@cret | base64`.
    assert b"\r\nProxy-Authorization: Basic YW5uOnNAY3JldA==\r\n" in proxy.heads[0]
    assert "cret" not in str(run.records)
    assert "YW5uOnNAY3JldA" not in str(run.records)


@pytest.mark.parametrize(
    ("answer", "word"),
    [
        (b"HTTP/1.1 403 no\r\n\r\n", "upstream-proxy-said-403"),
        (b"SSH-2.0-x\r\n\r\n", "upstream-proxy-nonsense"),
        (b"HTTP/1.1 200 half", "upstream-proxy-closed"),
        (b"HTTP/1.1 200 x\r\nA: " + bytes(20_000), "upstream-proxy-answer-too-long"),
    ],
)
def test_a_proxy_that_says_no_or_nonsense_is_a_failed_dial(
    stockade: Any, world: World, answer: bytes, word: str
) -> None:
    proxy = SiteProxy(answer)
    run = stockade(curl("http://allowed.test:8080/"), POLICY, prefix=through(proxy))
    proxy.close()
    assert run.out == "502"
    details = [
        r.get("detail") for r in run.records if r["kind"] == "outcome" and r["outcome"] == "dial-failed"
    ]
    assert details == [word]


@pytest.mark.parametrize(
    "text", ["proxy.test", "https://p.test:1", "http://p.test", "http://p.test:1/x", "http://:1"]
)
def test_a_variable_that_is_not_a_proxy_stops_the_run(stockade: Any, world: World, text: str) -> None:
    run = stockade(["true"], POLICY, prefix=["env", f"STOCKADE_UPSTREAM_PROXY={text}"])
    assert run.code == 102
    assert "bad-upstream-proxy" in run.err
