"""The lab's server as a process: how it starts and ends, and whom it answers, on real sockets."""

from __future__ import annotations

import http.client
import os
import re
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from lab_server import COMMAND, Caller, LabServer, lab_server

pytestmark = [pytest.mark.slow, pytest.mark.timeout(60)]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LabServer]:
    with lab_server(tmp_path_factory.mktemp("lab")) as server:
        yield server


@pytest.fixture
def caller(server: LabServer) -> Caller:
    return Caller(server)


def raw(server: LabServer, text: str) -> bytes:
    """What comes back for these bytes, until the server closes."""
    with socket.create_connection(("127.0.0.1", server.port), timeout=10) as connection:
        connection.sendall(text.replace("\n", "\r\n").encode("latin-1"))
        parts = []
        while part := connection.recv(65536):
            parts.append(part)
        return b"".join(parts)


# --- starting and ending ---------------------------------------------------------------------


def test_the_address_is_alone_on_standard_output(tmp_path: Path) -> None:
    server = LabServer(tmp_path)
    assert re.fullmatch(r"http://127\.0\.0\.1:\d+/\?token=[\w-]{43}", server.address)
    server.process.send_signal(signal.SIGTERM)
    out, err = server.process.communicate(timeout=10)
    assert out == ""
    assert err == "stockade lab: open this address in a browser; Ctrl-C ends the lab\n"


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_signals_end_it_cleanly(tmp_path: Path, number: signal.Signals) -> None:
    server = LabServer(tmp_path)
    Caller(server).get("/api/state")
    code, said = server.end(number)
    assert code == 0
    assert "Traceback" not in said


def test_it_ends_in_time_with_an_open_connection_and_half_a_request(tmp_path: Path) -> None:
    server = LabServer(tmp_path)
    with socket.create_connection(("127.0.0.1", server.port)) as connection:
        connection.sendall(b"GET / HTTP/1.1\r\nHost:")
        started = time.monotonic()
        assert server.end()[0] == 0
    assert time.monotonic() - started < 5


def below(pid: int) -> set[int]:
    """All processes that one has started, and theirs (proc_pid_task(5): children)."""
    found: set[int] = set()
    for task in Path(f"/proc/{pid}/task").iterdir():
        for child in map(int, (task / "children").read_text().split()):
            found |= {child} | below(child)
    return found


@pytest.mark.needs("room", "bwrap")
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_the_sandboxes_end_with_it_even_if_it_is_killed(tmp_path: Path, number: signal.Signals) -> None:
    server = LabServer(tmp_path)
    caller = Caller(server)
    assert below(server.process.pid) == set(), "nobody has looked at a page yet"
    while caller.get("/api/state")["live"]["state"] == "starting":
        time.sleep(0.05)
    assert caller.post("/api/live", {"scenario": "E067"})["state"] == "done"
    started = below(server.process.pid)
    assert len(started) > 3
    server.end(number)
    deadline = time.monotonic() + 10
    while (left := {pid for pid in started if Path(f"/proc/{pid}").exists()}) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert left == set()


def test_a_taken_port_is_said_with_a_remedy(server: LabServer, tmp_path: Path) -> None:
    command = [COMMAND, "lab", "--no-open", "--port", str(server.port), "--data", str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=15)
    assert done.returncode == 2
    assert done.stdout == ""
    assert f"port-taken: port {server.port}" in done.stderr
    assert "hint: " in done.stderr


@pytest.mark.parametrize("port", ["65536", "-1"])
def test_what_is_no_port_is_refused(tmp_path: Path, port: str) -> None:
    command = [COMMAND, "lab", "--no-open", "--port", port, "--data", str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=15)
    assert (done.returncode, done.stderr.split(":")[1]) == (2, " bad-port")


def test_a_data_folder_that_cannot_be_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    command = [COMMAND, "lab", "--no-open", "--data", str(tmp_path / "file" / "below")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=15)
    assert (done.returncode, done.stderr.split(":")[1]) == (3, " no-place-for-progress")


def test_it_listens_on_loopback_and_nowhere_else(server: LabServer) -> None:
    """By the kernel's own table (proc(5): addresses in hex, host byte order), and by trying."""
    rows = [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:]]
    ours = {row[1] for row in rows if row[1].endswith(f":{server.port:04X}") and row[3] == "0A"}
    assert ours == {f"0100007F:{server.port:04X}"}
    with socket.create_connection(("127.0.0.1", server.port), timeout=5):
        pass
    with pytest.raises(OSError), socket.create_connection(("127.0.0.2", server.port), timeout=5):
        pass


@pytest.mark.needs("ordinary-user")  # for root no browser is opened
def test_the_browser_is_opened_with_an_address_good_for_one_use(tmp_path: Path) -> None:
    """A stand-in for xdg-open notes its arguments, which every user of the machine could read."""
    opener = tmp_path / "bin" / "xdg-open"
    opener.parent.mkdir()
    opener.write_text(
        f'#!/bin/sh\nprintf "%s\\n" "$@" >{tmp_path}/shown.new; mv {tmp_path}/shown.new {tmp_path}/shown\n'
    )
    opener.chmod(0o755)
    environment = {**os.environ, "DISPLAY": ":7", "PATH": f"{opener.parent}:{os.environ['PATH']}"}
    process = subprocess.Popen(
        [COMMAND, "lab", "--data", str(tmp_path / "data")], stdout=subprocess.PIPE, text=True, env=environment
    )
    try:
        assert process.stdout is not None
        printed = process.stdout.readline().strip()
        deadline = time.monotonic() + 10
        while not (tmp_path / "shown").exists() and time.monotonic() < deadline:
            time.sleep(0.02)
        shown = (tmp_path / "shown").read_text().strip()
        assert shown.partition("=")[0] == printed.partition("=")[0]
        assert shown != printed
        import requests

        first, second, third = [requests.get(at, allow_redirects=False) for at in (shown, shown, printed)]
        assert [first.status_code, second.status_code, third.status_code] == [303, 403, 303]
    finally:
        process.terminate()
        process.wait(10)


# --- who is let in ---------------------------------------------------------------------------


def test_the_token_becomes_a_cookie_and_leaves_the_address(server: LabServer, caller: Caller) -> None:
    answer = caller.session.get(server.address, allow_redirects=False)
    assert (answer.status_code, answer.headers["location"]) == (303, "/")
    cookie = answer.headers["set-cookie"]
    assert cookie.startswith(f"stockade-lab-{server.port}=")
    for word in ("HttpOnly", "SameSite=strict", "Path=/"):
        assert word in cookie
    assert server.address.partition("token=")[2] not in cookie


@pytest.mark.parametrize("query", ["", "?token=", "?token=wrong", "?token=%ff%00"])
def test_without_the_token_a_page_says_how_to_get_in(server: LabServer, query: str) -> None:
    import requests

    answer = requests.get(f"{server.origin}/{query}", allow_redirects=False)
    assert answer.status_code == 403
    assert "stockade lab</code> has printed" in answer.text
    assert "set-cookie" not in answer.headers
    assert requests.get(f"{server.origin}/static/vendor/preact-htm.js").status_code == 403
    answer = requests.get(f"{server.origin}/api/state")
    assert (answer.status_code, answer.json()["error"]) == (401, "not-signed-in")


def test_followed_from_a_link_elsewhere_the_token_still_leads_in(server: LabServer, caller: Caller) -> None:
    """A redirect would arrive without the strict cookie, so it is a page that goes on by itself."""
    headers = {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "document"}
    answer = caller.session.get(server.address, headers=headers, allow_redirects=False)
    assert answer.status_code == 200
    assert 'content="0;url=/"' in answer.text
    assert "set-cookie" in answer.headers


def test_every_answer_carries_what_the_browser_must_know(server: LabServer, caller: Caller) -> None:
    answers = [
        caller.ask("GET", "/api/state"),
        caller.ask("GET", "/api/none"),
        caller.ask("GET", "/static/vendor/preact-htm.js"),
        caller.ask("POST", "/api/state", {}),
        caller.ask("GET", "/api/state", Host="attacker.test"),
    ]
    assert [one.status_code for one in answers] == [200, 404, 200, 405, 421]
    for answer in answers:
        assert "default-src 'none'" in answer.headers["content-security-policy"]
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert answer.headers["referrer-policy"] == "no-referrer"
        assert answer.headers["cross-origin-opener-policy"] == "same-origin"
        assert answer.headers["cross-origin-resource-policy"] == "same-origin"
        assert "access-control-allow-origin" not in answer.headers
        assert "server" not in answer.headers
    assert answers[0].headers["cache-control"] == "no-store"


def test_a_page_is_kept_by_the_browser_and_asked_for_again(server: LabServer, caller: Caller) -> None:
    """RFC 9110, 13.1.2: If-None-Match with the entity tag is answered with 304 and no body."""
    path = "/static/vendor/preact-htm.js"
    whole = caller.ask("GET", path)
    assert whole.headers["content-type"] == "text/javascript; charset=utf-8"
    again = caller.ask("GET", path, If_None_Match=whole.headers["etag"])
    assert (again.status_code, again.content) == (304, b"")
    assert caller.ask("GET", path, If_None_Match='"other"').content == whole.content


@pytest.mark.parametrize(
    "path",
    [
        "/static/../serve.py",
        "/static/%2e%2e/serve.py",
        "/static/vendor/..%2f..%2f..%2fserve.py",
        "//static/vendor/preact-htm.js",
        "/static/vendor/",
        "/static/vendor/SHA256SUMS",
        "/static//etc/passwd",
        "/etc/passwd",
        "/static/vendor/preact-htm.js%00.js",
    ],
)
def test_nothing_but_the_pages_own_files_is_served(server: LabServer, caller: Caller, path: str) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=10)
    cookie = "; ".join(f"{one.name}={one.value}" for one in caller.session.cookies)
    connection.request("GET", path, headers={"Cookie": cookie})
    answer = connection.getresponse()
    assert (answer.status, b"no-such-page" in answer.read()) == (404, True)
    connection.request("GET", "/static/vendor/preact-htm.js", headers={"Cookie": cookie})
    assert connection.getresponse().status == 200


# --- limits ----------------------------------------------------------------------------------


def test_a_body_over_the_limit_is_refused_also_without_a_length(server: LabServer, caller: Caller) -> None:
    def in_parts(size: int) -> Iterator[bytes]:
        yield b'{"name": "'
        for _ in range(size // 65536):
            yield b"x" * 65536
        yield b'"}'

    headers = {"Origin": server.origin, "Content-Type": "application/json"}
    url = f"{server.origin}/api/learners"
    answer = caller.session.post(url, data=in_parts(2 << 20), headers=headers, timeout=10)
    assert (answer.status_code, answer.json()["error"]) == (413, "too-large")
    answer = caller.ask("POST", "/api/learners", {"name": "x" * (1 << 20)})
    assert answer.status_code == 413
    assert caller.ask("POST", "/api/learners", {"name": "Ada"}).status_code == 200


@pytest.mark.parametrize(
    ("body", "status"),
    [
        (b"{", 400),
        (b'{"name":' + b"[" * 100_000, 422),
        (b"[" * 100_000 + b"]" * 100_000, 422),
        (b"\xff", 400),
        (b"[]", 422),
        (b'{"name": 7}', 422),
        (b"", 422),
    ],
)
def test_what_is_not_the_json_that_is_wanted_is_refused(caller: Caller, body: bytes, status: int) -> None:
    headers = {"Origin": caller.origin, "Content-Type": "application/json"}
    answer = caller.session.post(f"{caller.origin}/api/learners", data=body, headers=headers)
    assert answer.status_code == status, answer.text
    assert set(answer.json()) == {"error", "message", "hint"}


def test_json_without_an_end_of_depth_is_refused_and_the_next_request_is_answered(caller: Caller) -> None:
    deep = b'{"ticks": ' + b"[" * 400_000 + b"]" * 400_000 + b"}"
    headers = {"Origin": caller.origin, "Content-Type": "application/json"}
    answer = caller.session.put(f"{caller.origin}/api/workshop", data=deep, headers=headers)
    assert (answer.status_code, answer.json()["error"]) == (400, "not-json")
    assert caller.put("/api/workshop", {"ticks": {}})["steps"]


def test_a_page_that_goes_away_in_the_middle_of_a_body_is_no_fault_of_ours(tmp_path: Path) -> None:
    server = LabServer(tmp_path)
    cookie = "; ".join(f"{one.name}={one.value}" for one in Caller(server).session.cookies)
    with socket.create_connection(("127.0.0.1", server.port), timeout=10) as connection:
        head = (
            f"POST /api/rounds HTTP/1.1\r\nHost: 127.0.0.1:{server.port}\r\nOrigin: {server.origin}\r\n"
            f"Cookie: {cookie}\r\nContent-Type: application/json\r\nContent-Length: 20\r\n\r\n{{"
        )
        connection.sendall(head.encode())
        time.sleep(0.3)  # until the handler waits for the rest
    Caller(server).get("/api/state")
    assert server.end() == (0, "stockade lab: open this address in a browser; Ctrl-C ends the lab\n")


def test_requests_that_are_no_http_are_refused(server: LabServer) -> None:
    assert b" 400 " in raw(server, "nonsense\n\n").partition(b"\r\n")[0]
    assert b" 400 " in raw(server, "GET / HTTP/1.1\n\n").partition(b"\r\n")[0]
    twice = f"GET / HTTP/1.1\nHost: 127.0.0.1:{server.port}\nHost: attacker.test\n\n"
    assert b" 400 " in raw(server, twice).partition(b"\r\n")[0]
    absolute = f"GET http://attacker.test/ HTTP/1.1\nHost: 127.0.0.1:{server.port}\nConnection: close\n\n"
    assert b" 400 " in raw(server, absolute).partition(b"\r\n")[0]
    old = "GET / HTTP/1.0\n\n"
    assert b" 421 " in raw(server, old).partition(b"\r\n")[0]
