"""Programs that people really use, inside: with no proxy settings, and configured with the room's proxy.

For each: what is allowed comes through whole, and a name that nobody listed does not
arrive, while the same command in the open does.
"""

from __future__ import annotations

import importlib.util
import shutil
import subprocess
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from stockade.prove.world_client import World

pytestmark = [
    pytest.mark.kernel,
    pytest.mark.clients,
    pytest.mark.needs("world", "userns", "bwrap", "room"),
]

HTTP_PROXY = "http://198.18.0.1:3128"
SOCKS_PROXY = "socks5h://198.18.0.1:1080"
EVIL = "93.184.216.66"
PAGE = "range-docs-page"

POLICY = """
rules:
  - allow: docs.test
    ports: [80, 443]
  - allow: git.test
  - allow: mirror.test
"""

_URLLIB = "import sys, urllib.request as u; print(u.urlopen(sys.argv[1], timeout=8).read().decode())"
_REQUESTS = (
    "import sys, requests as r; a = r.get(sys.argv[1], timeout=8); a.raise_for_status(); print(a.text)"
)
_FETCH = (
    "fetch(process.argv[1]).then(r => {if (!r.ok) throw r.status; return r.text()}).then(t => console.log(t))"
    ".catch(e => {console.error(e); process.exit(1)})"
)
# Node 20's fetch knows no proxy variables: a program that is configured speaks to the proxy itself.
_NODE_PROXIED = """
const http = require('http'), https = require('https'), url = new URL(process.argv[1]);
const fail = e => {console.error(String(e)); process.exit(1)};
const show = r => {if (r.statusCode != 200) fail(r.statusCode); r.pipe(process.stdout)};
const proxy = {host: '198.18.0.1', port: 3128, agent: false};
if (url.protocol == 'http:')
  http.get({...proxy, path: url.href, headers: {host: url.host}}, show).on('error', fail);
else
  http.request({...proxy, method: 'CONNECT', path: url.hostname + ':443'}).on('connect', (r, socket) =>
    r.statusCode == 200 ? https.get({socket, agent: false, host: url.hostname, servername: url.hostname,
      path: url.pathname}, show).on('error', fail) : fail(r.statusCode)).on('error', fail).end();
"""


@dataclass(frozen=True)
class Client:
    """How to make one program fetch a URL to standard output.

    `trust` names the variable that points it at the range's CA; `proxied` is what is
    put in (variables) and `proxied_command` what replaces the command for the proxy.
    """

    command: list[str]
    trust: str | None = None
    proxies: dict[str, dict[str, str]] = field(default_factory=dict)
    proxied_command: list[str] | None = None
    needs: str | None = None

    def line(self, url: str, ca: Path, proxy: str | None) -> list[str]:
        variables = {} if self.trust is None else {self.trust: str(ca)}
        command = self.command
        if proxy is not None:
            variables |= self.proxies[proxy]
            command = self.proxied_command or command
        settings = [f"{key}={value}" for key, value in variables.items()]
        return ["env", *settings, *(word.format(url=url, ca=ca) for word in command)]


def _by_variables(*proxies: str) -> dict[str, dict[str, str]]:
    return {proxy: {"http_proxy": proxy, "https_proxy": proxy} for proxy in proxies}


CLIENTS: dict[str, Client] = {
    "curl": Client(
        ["curl", "-sS", "-f", "-m", "8", "{url}"], "CURL_CA_BUNDLE", _by_variables(HTTP_PROXY, SOCKS_PROXY)
    ),
    "wget": Client(
        ["wget", "-q", "-T", "8", "-t", "1", "--ca-certificate={ca}", "-O", "-", "{url}"],
        proxies=_by_variables(HTTP_PROXY),
        needs="wget",
    ),
    "urllib": Client(
        ["/usr/bin/python3", "-c", _URLLIB, "{url}"], "SSL_CERT_FILE", _by_variables(HTTP_PROXY)
    ),
    "requests": Client(
        ["env", "PYTHONPATH=lib", "/usr/bin/python3", "-c", _REQUESTS, "{url}"],
        "REQUESTS_CA_BUNDLE",
        _by_variables(HTTP_PROXY),
    ),
    "node": Client(
        ["node", "-e", _FETCH.replace("{", "{{").replace("}", "}}"), "{url}"],
        "NODE_EXTRA_CA_CERTS",
        {HTTP_PROXY: {}},
        ["node", "-e", _NODE_PROXIED.replace("{", "{{").replace("}", "}}"), "{url}"],
        needs="node",
    ),
}
ROADS = [
    pytest.param(name, proxy, id=f"{name}-{'bare' if proxy is None else proxy.split(':')[0]}",
                 marks=[pytest.mark.needs(client.needs)] if client.needs else [])
    for name, client in CLIENTS.items()
    for proxy in (None, *client.proxies)
]  # fmt: skip


@pytest.fixture
def library(workspace: Path) -> Path:
    """`requests` and what it needs, copied to where a worker sees it."""
    folder = workspace / "lib"
    for name in ("requests", "urllib3", "idna", "certifi", "charset_normalizer"):
        found = importlib.util.find_spec(name)
        assert found is not None
        assert found.origin is not None
        shutil.copytree(
            Path(found.origin).parent, folder / name, ignore=shutil.ignore_patterns("__pycache__")
        )
    return folder


@pytest.mark.parametrize(("name", "proxy"), ROADS)
@pytest.mark.parametrize("scheme", ["http", "https"])
def test_client_reads_an_allowed_page_and_not_an_unlisted_one(
    stockade: Callable[..., Any],
    world: World,
    workspace: Path,
    range_ca: Path,
    library: Path,
    name: str,
    proxy: str | None,
    scheme: str,
) -> None:
    client = CLIENTS[name]
    open_line = client.line(f"{scheme}://evil.test/", range_ca, None)
    done = subprocess.run(open_line, capture_output=True, text=True, cwd=workspace, timeout=15)
    assert PAGE in done.stdout, done.stderr
    assert len(world.arrivals(address=EVIL, protocol="tcp")) == 1
    world.reset()

    good = stockade(client.line(f"{scheme}://docs.test/", range_ca, proxy), POLICY)
    assert PAGE in good.out, good.err
    assert good.code == 0
    assert len(good.attempts(verdict="allow", name="docs.test")) == 1

    bad = stockade(client.line(f"{scheme}://evil.test/", range_ca, proxy), POLICY)
    assert bad.code != 0
    assert PAGE not in bad.out
    assert world.arrivals(address=EVIL) == []
    assert world.dns_questions("evil.test") == []
    assert {denial["name"] for denial in bad.denials()} == {"evil.test"}
    expected = {None: "transparent", HTTP_PROXY: "http-proxy", SOCKS_PROXY: "socks5"}[proxy]
    assert {attempt["entry"] for attempt in good.attempts() + bad.attempts()} == {expected}


@pytest.mark.needs("git")
@pytest.mark.parametrize("proxy", [None, HTTP_PROXY, SOCKS_PROXY], ids=["bare", "http", "socks5h"])
def test_git_clones_and_pushes_over_https(
    stockade: Callable[..., Any], world: World, range_ca: Path, proxy: str | None
) -> None:
    settings = [f"GIT_SSL_CAINFO={range_ca}", "HOME=/tmp", "GIT_TERMINAL_PROMPT=0"]
    settings += [] if proxy is None else [f"https_proxy={proxy}"]
    branch = "bare" if proxy is None else proxy.split(":")[0]  # the world's repository outlives a test
    script = f"""
        set -e
        git clone -q https://git.test/range.git /tmp/clone
        cd /tmp/clone
        git -c user.name=R -c user.email=r@range.test commit -q --allow-empty -m inside
        git push -q origin HEAD:refs/heads/{branch}
        cat README
        ! git ls-remote -q https://evil.test/range.git
    """
    run = stockade(["env", *settings, "sh", "-c", script], POLICY)
    assert run.code == 0, run.err
    assert "range-git-content" in run.out
    assert any(
        "git-receive-pack" in request["path"] and request["method"] == "POST" for request in world.requests()
    )
    assert world.arrivals(address=EVIL) == []
    assert [denial["name"] for denial in run.denials()] == ["evil.test"]


@pytest.mark.parametrize("proxy", [None, HTTP_PROXY], ids=["bare", "http"])
def test_pip_installs_from_the_listed_index_and_not_from_another(
    stockade: Callable[..., Any], world: World, range_ca: Path, proxy: str | None
) -> None:
    pip = f"/usr/bin/python3 -m pip --isolated --disable-pip-version-check --no-cache-dir --cert {range_ca}"
    pip += f" --retries 0 --timeout 5{'' if proxy is None else f' --proxy {proxy}'}"
    install = "install -q --no-deps --break-system-packages"
    script = f"""
        set -e
        export PIP_CONFIG_FILE=/dev/null HOME=/tmp
        {pip} {install} --target /tmp/site --index-url https://mirror.test/simple/ range-tiny
        PYTHONPATH=/tmp/site /usr/bin/python3 -c 'import range_tiny; print(range_tiny.PROOF)'
        ! {pip} {install} --target /tmp/site2 --index-url https://registry.test/simple/ range-tiny
    """
    run = stockade(["sh", "-c", script], POLICY)
    assert run.code == 0, run.err + run.out
    assert "range-tiny-installed" in run.out
    assert world.dns_questions("registry.test") == []
    assert {denial["name"] for denial in run.denials()} == {"registry.test"}


@pytest.mark.needs("openssl")
@pytest.mark.parametrize("proxy", [None, HTTP_PROXY], ids=["bare", "http"])
def test_openssl_s_client_verifies_the_real_server_end_to_end(
    stockade: Callable[..., Any], world: World, range_ca: Path, proxy: str | None
) -> None:
    """The tunnel is end to end: the certificate that the client sees is the server's own."""
    through = "" if proxy is None else f"-proxy {proxy.removeprefix('http://')} "
    client = f"openssl s_client {through}-CAfile {range_ca} -verify_return_error -quiet"
    request = "GET / HTTP/1.0\\r\\nHost: docs.test\\r\\n\\r\\n"
    script = f"""
        printf '{request}' | {client} -connect docs.test:443 -servername docs.test
        ! {client} -connect evil.test:443 -servername evil.test </dev/null
        ! {client} -connect docs.test:443 -servername evil.test </dev/null
    """
    run = stockade(["sh", "-c", script], POLICY)
    assert PAGE in run.out, run.err
    assert "verify return:1" in run.err
    assert run.code == 0
    assert [arrival["sni"] for arrival in world.arrivals(protocol="tcp")] == ["docs.test"]
    assert [denial["reason"] for denial in run.denials()] == ["not-listed", "name-mismatch"]


@pytest.mark.slow
@pytest.mark.timeout(60)
@pytest.mark.needs("chromium")
@pytest.mark.parametrize("proxy", [None, HTTP_PROXY], ids=["bare", "http"])
@pytest.mark.parametrize("scheme", ["http", "https"])
def test_chromium_opens_an_allowed_page_and_is_refused_an_unlisted_one(
    stockade: Callable[..., Any], world: World, proxy: str | None, scheme: str
) -> None:
    chromium = ["chromium", "--no-sandbox", "--headless=new", "--disable-gpu", "--ignore-certificate-errors",
                "--no-first-run", "--user-data-dir=/tmp/profile", "--virtual-time-budget=4000",
                *([] if proxy is None else [f"--proxy-server={proxy}"])]  # fmt: skip
    policy = "exec: {mode: any, unix-sockets: true}" + POLICY  # it locks its profile with one
    good = stockade([*chromium, "--dump-dom", f"{scheme}://docs.test/"], policy, timeout_s=40)
    assert PAGE in good.out, good.err
    world.reset()
    bad = stockade([*chromium, "--dump-dom", f"{scheme}://evil.test/"], policy, timeout_s=40)
    assert PAGE not in bad.out
    assert world.packets(address=EVIL) == []
    assert world.dns_questions("evil.test") == []
    assert "evil.test" in {denial["name"] for denial in bad.denials()}
