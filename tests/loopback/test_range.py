"""The range itself: it is sealed, its world answers, and it counts what arrives."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from stockade.errors import ContainmentError
from stockade.prove.sealed import SEALED_VARIABLE, probe_links, sealed_proof
from stockade.prove.world_client import World

pytestmark = pytest.mark.needs("world")


def curl(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(["curl", "-sS", "-m", "5", *arguments], capture_output=True, text=True)


def test_one_link_leads_out_of_host_and_it_ends_in_the_world() -> None:
    assert [link.name for link in probe_links() if link.is_up and not link.is_loopback] == ["range0"]
    assert sealed_proof().device == "range0"


def test_seal_is_not_believed_without_a_world_that_answers(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv(SEALED_VARIABLE, str(tmp_path / "nobody.sock"))
    with pytest.raises(ContainmentError, match="does not answer"):
        sealed_proof()


def test_seal_is_not_believed_when_the_variable_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(SEALED_VARIABLE)
    with pytest.raises(ContainmentError, match="is not set"):
        sealed_proof()


@pytest.mark.kernel
@pytest.mark.needs("userns")
def test_loopback_alone_is_a_seal_and_unknown_links_are_not() -> None:
    ask = "from stockade.prove.sealed import sealed_proof; print(sealed_proof().device)"
    alone = subprocess.run(["unshare", "-Urn", sys.executable, "-c", ask], capture_output=True, text=True)
    assert alone.stdout.strip() == "None"
    links = "ip link add x type veth peer name y && ip link set x up && ip link set y up"
    script = f"{links} && {sys.executable} -c '{ask}'"
    dangling = subprocess.run(["unshare", "-Urn", "sh", "-c", script], capture_output=True, text=True)
    assert dangling.returncode != 0
    assert "not sealed" in dangling.stderr


def test_names_come_from_the_range_alone() -> None:
    assert Path("/etc/resolv.conf").read_text() == "nameserver 9.9.9.9\n"
    assert "hosts: files dns\n" in Path("/etc/nsswitch.conf").read_text()


def test_web_request_is_counted_with_address_path_and_host(world: World) -> None:
    assert "range-docs-page" in curl("http://app.test/?a=1").stdout
    [arrival] = world.arrivals()
    assert (arrival["address"], arrival["port"], arrival["protocol"]) == ("93.184.216.34", 80, "tcp")
    assert [(r["method"], r["path"], r["host"]) for r in arrival["requests"]] == [
        ("GET", "/?a=1", "app.test")
    ]
    assert arrival["first"].startswith("GET /?a=1 HTTP/1.1\r\n")


def test_tls_is_trusted_by_the_range_ca_and_its_server_name_is_noted(world: World) -> None:
    assert curl("--cacert", str(world.ca_path), "https://docs.test/").returncode == 0
    assert curl("https://docs.test/").returncode == 60  # curl(1): peer certificate cannot be authenticated
    assert [arrival["sni"] for arrival in world.arrivals()] == ["docs.test", "docs.test"]


@pytest.mark.parametrize(
    "address", ["169.254.169.254", "[fd00:ec2::254]", "100.100.100.200", "168.63.129.16"]
)
def test_metadata_service_answers_on_its_real_addresses(world: World, address: str) -> None:
    """The control of all metadata attacks: without enforcement they succeed."""
    answer = curl(f"http://{address}/latest/meta-data/iam/security-credentials/role").stdout
    assert "RANGE-FAKE-KEY" in answer


def test_packet_to_a_port_where_nobody_listens_is_seen(world: World) -> None:
    with pytest.raises(OSError, match="refused"):
        socket.create_connection(("1.2.3.4", 4242), 5)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
        sender.sendto(b"out", ("8.8.8.8", 4343))
    assert world.packets(address="1.2.3.4")[0]["port"] == 4242
    assert world.packets(address="8.8.8.8")[0]["protocol"] == "udp"


def test_reset_forgets_everything(world: World) -> None:
    curl("http://app.test/")
    world.reset()
    assert (world.arrivals(), world.packets(), world.dns_questions()) == ([], [], [])


def test_flip_test_alternates_between_public_and_metadata(world: World) -> None:
    answers = [socket.gethostbyname("flip.test") for _ in range(4)]
    assert answers == ["93.184.216.34", "169.254.169.254"] * 2


@pytest.mark.parametrize("address", ["93.184.216.77", "2606:2800:220:1::77"])
def test_swallowed_address_is_silent_until_reset(world: World, address: str) -> None:
    world.swallow(address)
    with pytest.raises(TimeoutError):
        socket.create_connection((address, 80), 0.2)
    world.reset()
    socket.create_connection((address, 80), 1).close()


def test_zone_is_replaced_over_the_control_socket(world: World) -> None:
    world.set_dns({"new.test": {"a": ["93.184.216.99"]}, "app.test": None})
    assert socket.gethostbyname("new.test") == "93.184.216.99"
    with pytest.raises(socket.gaierror):
        socket.gethostbyname("app.test")
    assert {question["name"] for question in world.dns_questions()} == {"new.test", "app.test"}


def test_truncated_answer_is_asked_again_over_tcp(world: World) -> None:
    assert socket.gethostbyname("truncated.test") == "93.184.216.34"
    assert {"udp", "tcp"} <= {question["transport"] for question in world.dns_questions("truncated.test")}


def test_upload_is_hashed_and_counted(world: World, tmp_path: Path) -> None:
    (tmp_path / "data").write_bytes(b"abc")
    # FIPS 180-2, appendix B.1: SHA-256 of "abc".
    answer = curl("-T", str(tmp_path / "data"), "http://paste.test/upload").stdout
    assert answer == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad 3\n"
    assert [request["body_bytes"] for request in world.requests()] == [3]


def test_git_clone_and_push_over_https(world: World, tmp_path: Path) -> None:
    git = [
        "git",
        "-c",
        f"http.sslCAInfo={world.ca_path}",
        "-c",
        "user.name=R",
        "-c",
        "user.email=r@range.test",
    ]
    clone = tmp_path / "clone"
    subprocess.run([*git, "clone", "-q", "https://git.test/range.git", str(clone)], check=True)
    assert (clone / "README").read_text() == "range-git-content\n"
    subprocess.run([*git, "-C", str(clone), "commit", "-q", "--allow-empty", "-m", "more"], check=True)
    subprocess.run([*git, "-C", str(clone), "push", "-q", "origin", "HEAD:refs/heads/x"], check=True)
    assert "POST" in {request["method"] for request in world.requests(address="93.184.216.46")}


@pytest.mark.kernel
@pytest.mark.needs("userns")
def test_exit_code_and_signal_of_the_command_come_through() -> None:
    tool = [sys.executable, "-m", "stockade.prove.range"]
    assert subprocess.run([*tool, "--", "sh", "-c", "exit 7"]).returncode == 7
    assert subprocess.run([*tool, "--", "sh", "-c", "kill -9 $$"]).returncode == 128 + 9
    assert subprocess.run([*tool], capture_output=True).returncode == 2


@pytest.mark.kernel
@pytest.mark.needs("userns")
def test_killing_the_range_leaves_no_process(tmp_path: Path) -> None:
    fifo = tmp_path / "alive"
    os.mkfifo(fifo)
    script = f"exec 9>{fifo}; echo up >&9; sleep 1000"
    tool = subprocess.Popen([sys.executable, "-m", "stockade.prove.range", "--", "sh", "-c", script])
    with fifo.open() as reader:
        assert reader.readline() == "up\n"
        tool.kill()
        assert reader.read() == ""  # end of file: the last process that held the other end is gone
    tool.wait()


def test_many_that_come_at_the_same_moment_are_all_noted_with_their_bytes_when_one_asks(
    world: World,
) -> None:
    """A busy machine must not make an arrival late: the judge asks once."""
    streams = [socket.create_connection(("93.184.216.66", 9000), 5) for _ in range(200)]
    for number, stream in enumerate(streams):
        stream.sendall(b"%d" % number)
    arrivals, _packets, _questions = world.everything()
    for stream in streams:
        stream.close()
    assert sorted(int(one["first"]) for one in arrivals) == list(range(200))


# A header with one question (RFC 1035 section 4.1): allowed.test, type A, class IN.
QUESTION = b"\x12\x34\x01\0\0\x01\0\0\0\0\0\0" + b"\x07allowed\x04test\0" + b"\0\x01\0\x01"
# An empty OPT record (RFC 6891 section 6.1.2), and the count of additional records that goes with it.
WITH_OPT = QUESTION[:11] + b"\x01" + QUESTION[12:] + b"\0\0\x29\x04\xd0\0\0\0\0\0\0"


@pytest.mark.parametrize(
    ("message", "name", "beside_bytes"),
    [
        (QUESTION, "allowed.test", 0),
        (WITH_OPT, "allowed.test", 0),
        (QUESTION + b"stolen", "allowed.test", 6),
        (b"stolen", "", 6),
        (QUESTION[:12].replace(b"\0\x01", b"\0\0"), "", 12),
    ],
)
@pytest.mark.parametrize("transport", ["udp", "tcp"])
def test_whatever_comes_to_the_name_server_is_noted(
    world: World, transport: str, message: bytes, name: str, beside_bytes: int
) -> None:
    if transport == "udp":
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as line:
            line.sendto(message, ("9.9.9.9", 53))
    else:
        with socket.create_connection(("9.9.9.9", 53), 3) as line:
            line.sendall(len(message).to_bytes(2, "big") + message)
            line.settimeout(3)
            line.recv(1000)  # an answer, or the end
    (noted,) = world.everything()[2]
    assert (noted["name"], noted["beside_bytes"]) == (name, beside_bytes)


@pytest.mark.parametrize("sent", [b"x", b"GET / HTTP/1.1\r\n\r\n"])
def test_bytes_on_the_name_server_s_port_that_are_no_message_are_noted(world: World, sent: bytes) -> None:
    with socket.create_connection(("9.9.9.9", 53), 3) as line:
        line.sendall(sent)
        line.shutdown(socket.SHUT_WR)
        line.settimeout(3)
        assert line.recv(10) == b""
    assert [noted["name"] for noted in world.everything()[2]] == [""]


def test_a_range_that_is_started_behind_an_ampersand_hands_no_ignored_signals_on() -> None:
    """POSIX shells ignore SIGINT and SIGQUIT for such; a shell cannot trap what it got ignored."""
    ignoring = ["sh", "-c", 'trap "" INT QUIT; exec "$@"', "sh"]
    trap = ["/bin/sh", "-c", "trap 'echo got it' QUIT; kill -QUIT $$"]
    assert subprocess.run([*ignoring, *trap], capture_output=True, text=True).stdout == ""
    in_range = [sys.executable, "-P", "-m", "stockade.prove.range", "--", *trap]
    done = subprocess.run([*ignoring, *in_range], capture_output=True, text=True, timeout=15)
    assert done.stdout == "got it\n", done.stderr
