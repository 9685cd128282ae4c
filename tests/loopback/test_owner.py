"""Who holds a socket, with real sockets and processes: this test's own stand in for a sandbox's."""

from __future__ import annotations

import errno
import fcntl
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from ipaddress import ip_address
from pathlib import Path

import pytest

from stockade.net.ends import Ends
from stockade.sandbox import owner as module
from stockade.sandbox.owner import Owner, OwnerFinder, search_descendants
from stockade.sandbox.processes import ProcessFolder, read_start_time
from stockade.sandbox.socket_diag import SocketTable, exact_request

NETLINK_SOCK_DIAG = 4
SO_BINDTODEVICE = 25
CLIENT = """
import ctypes, socket, sys
def connect():
    global client
    client = socket.create_connection(("127.0.0.1", int(sys.argv[1])))
    print(client.getsockname()[1], flush=True)
def in_a_table_of_its_own():
    if ctypes.CDLL(None).unshare(0x400):
        raise OSError("unshare(CLONE_FILES)")
    connect()
    sys.stdin.read()
if "thread" in sys.argv:
    import threading
    threading.Thread(target=in_a_table_of_its_own).start()
else:
    connect()
    sys.stdin.read()
"""


@pytest.fixture
def diagnosis() -> Iterator[socket.socket]:
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, NETLINK_SOCK_DIAG) as channel:
        yield channel


@pytest.fixture
def finder(diagnosis: socket.socket) -> Iterator[OwnerFinder]:
    handle = os.pidfd_open(os.getpid())
    finder = OwnerFinder(diagnosis, os.getpid(), handle)
    yield finder
    finder.close()
    os.close(handle)


@pytest.fixture
def listener() -> Iterator[socket.socket]:
    with socket.create_server(("127.0.0.1", 0), backlog=64) as server:
        yield server


def port_of(sock: socket.socket) -> int:
    port: int = sock.getsockname()[1]
    return port


def ends_of(listener: socket.socket, port: int) -> Ends:
    place = ip_address("127.0.0.1")
    return Ends(True, (place, port), (place, port_of(listener)))


class Client:
    """A Python that connects to the listener and waits."""

    def __init__(self, listener: socket.socket, *how: str) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-I", "-c", CLIENT, str(port_of(listener)), *how],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        assert self._process.stdout is not None
        self.pid = self._process.pid
        self.ends = ends_of(listener, int(self._process.stdout.readline()))

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.communicate(timeout=10)


def sleeping_child(action: Callable[[], None] = lambda: None) -> int:
    """Fork; the child does something, says so and sleeps until it is killed."""
    done_in, done_out = os.pipe()
    pid = os.fork()
    if pid == 0:
        action()
        os.write(done_out, b"x")
        signal.pause()
        os._exit(0)
    os.read(done_in, 1)
    os.close(done_in)
    os.close(done_out)
    return pid


def end(pid: int) -> None:
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)


def found(owner: Owner | None) -> Owner:
    assert owner is not None
    return owner


def test_the_holder_is_named_with_program_arguments_and_parents(
    finder: OwnerFinder, listener: socket.socket
) -> None:
    with Client(listener, "plain") as client:
        owner = found(finder.find(client.ends))
    assert (owner.process.pid, owner.process.inner_pid) == (client.pid, client.pid)
    assert owner.program == os.path.realpath(sys.executable)
    assert owner.argv[1:3] == (b"-I", b"-c")
    assert owner.argv[-1] == b"plain"
    assert owner.parents[0].pid == os.getpid()
    assert owner.parents[0].start_time == read_start_time(os.getpid())
    assert owner.parents[0].image != owner.process.image  # it called exec
    assert owner.also == ()


def test_a_thread_with_a_table_of_its_own_does_not_hide(finder: OwnerFinder, listener: socket.socket) -> None:
    with Client(listener, "thread") as client:
        links = [os.readlink(link) for link in Path(f"/proc/{client.pid}/fd").iterdir()]
        assert not any(link.startswith("socket:") for link in links)  # the control
        assert found(finder.find(client.ends)).process.pid == client.pid


def test_two_connections_are_told_apart(finder: OwnerFinder, listener: socket.socket) -> None:
    with Client(listener, "one") as one, Client(listener, "two") as two:
        assert [found(finder.find(c.ends)).argv[-1] for c in (one, two, one)] == [b"one", b"two", b"one"]


def test_a_socket_that_is_closed_or_was_never_there_has_no_owner(
    finder: OwnerFinder, listener: socket.socket
) -> None:
    client = socket.create_connection(listener.getsockname())
    ends = ends_of(listener, port_of(client))
    assert found(finder.find(ends)).process.pid == os.getpid()
    client.close()  # the connection lives on in the kernel: the listener has not accepted it
    assert finder.find(ends) is None
    assert finder.find(ends_of(listener, 1)) is None


def test_a_forked_child_that_connects_is_named_and_has_its_parent_s_image(
    finder: OwnerFinder, listener: socket.socket
) -> None:
    told_in, told_out = os.pipe()

    def connect() -> None:
        client = socket.create_connection(listener.getsockname())
        os.write(told_out, b"%d" % port_of(client))
        client.detach()

    child = sleeping_child(connect)
    owner = found(finder.find(ends_of(listener, int(os.read(told_in, 10)))))
    assert owner.process.pid == child
    assert owner.process.image == owner.parents[0].image != ()
    end(child)
    os.close(told_in)
    os.close(told_out)


def test_of_those_that_inherited_it_the_topmost_is_named_and_the_others_told(
    finder: OwnerFinder, listener: socket.socket
) -> None:
    client = socket.create_connection(listener.getsockname())
    ends = ends_of(listener, port_of(client))
    child = sleeping_child()
    os.set_inheritable(client.fileno(), True)
    reader = subprocess.Popen(["cat"], stdin=client)  # as `exec 3<>/dev/tcp/…; cat <&3` does
    owner = found(finder.find(ends))
    assert owner.process.pid == os.getpid()
    assert owner.also in ((child,), (reader.pid,))
    client.close()
    end(child)
    assert found(finder.find(ends)).program == os.path.realpath("/bin/cat")
    reader.kill()
    reader.wait()


# --- never a wrong process ------------------------------------------------------------------------


def test_a_server_on_the_asking_port_is_not_the_client(
    finder: OwnerFinder, diagnosis: socket.socket, listener: socket.socket
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as own_server:
        ends = ends_of(listener, port_of(own_server))
        # The control: asked for a connection that does not exist, the kernel gives the server's socket.
        [row] = SocketTable(diagnosis)._ask(exact_request(ends, 1))
        assert row.inode == os.fstat(own_server.fileno()).st_ino
        assert finder.find(ends) is None


def test_a_descriptor_that_is_closed_while_the_process_is_read_names_nobody(
    finder: OwnerFinder, listener: socket.socket, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = socket.create_connection(listener.getsockname())
    ends = ends_of(listener, port_of(client))
    real = ProcessFolder.argv

    def close_and_read(folder: ProcessFolder) -> tuple[bytes, ...]:
        client.close()
        return real(folder)

    assert finder.find(ends) is not None
    monkeypatch.setattr(ProcessFolder, "argv", close_and_read)
    assert finder.find(ends) is None


def test_a_process_that_calls_exec_while_it_is_read_is_not_named_with_mixed_words(
    finder: OwnerFinder, listener: socket.socket, monkeypatch: pytest.MonkeyPatch
) -> None:
    programs = iter(["/usr/bin/before", "/usr/bin/after"])
    monkeypatch.setattr(ProcessFolder, "program", lambda _folder: next(programs))
    with Client(listener) as client:
        assert finder.find(client.ends) is None


def test_a_parent_that_changes_while_it_is_read_is_left_out(
    finder: OwnerFinder, listener: socket.socket, monkeypatch: pytest.MonkeyPatch
) -> None:
    real, reads = ProcessFolder.stat, iter(range(100))

    def stat(folder: ProcessFolder) -> object:
        read = real(folder)
        if folder.pid == client.pid and next(reads) > 0:  # from the second look on it was reparented
            return type(read)(1, read.start_time, read.image)
        return read

    with Client(listener) as client:
        monkeypatch.setattr(ProcessFolder, "stat", stat)
        assert found(finder.find(client.ends)).parents == ()


def test_a_stage_that_has_ended_is_not_looked_into(diagnosis: socket.socket) -> None:
    ended = subprocess.Popen(["true"])
    handle = os.pidfd_open(ended.pid)
    ended.wait()
    with pytest.raises(ProcessLookupError):  # its number could be another's by now
        OwnerFinder(diagnosis, os.getpid(), handle)
    os.close(handle)


# --- evasion and bounds ----------------------------------------------------------------------------


def test_a_socket_bound_to_the_device_is_found(finder: OwnerFinder, listener: socket.socket) -> None:
    with socket.socket() as client:
        client.setsockopt(socket.SOL_SOCKET, SO_BINDTODEVICE, b"lo")
        client.connect(listener.getsockname())
        assert found(finder.find(ends_of(listener, port_of(client)))).process.pid == os.getpid()


def test_a_look_up_is_bounded_however_many_descriptors_there_are(
    finder: OwnerFinder, listener: socket.socket, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Client(listener) as client:
        monkeypatch.setattr(module, "LINKS_LOOKED_AT", module.PLACE_COSTS)
        assert finder.find(client.ends) is None
        monkeypatch.setattr(module, "LINKS_LOOKED_AT", 4096)
        assert finder.find(client.ends) is not None


def test_a_datagram_s_sender_is_named_unless_two_sockets_share_its_port(finder: OwnerFinder) -> None:
    place = ip_address("127.0.0.1")
    with socket.socket(type=socket.SOCK_DGRAM) as one, socket.socket(type=socket.SOCK_DGRAM) as two:
        for sock in (one, two):
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        one.bind(("0.0.0.0", 0))
        ends = Ends(False, (place, port_of(one)), (place, 53))
        assert found(finder.find(ends)).process.pid == os.getpid()
        two.bind(("127.0.0.1", port_of(one)))
        assert finder.find(ends) is None


def test_before_linux_6_11_the_number_outside_is_found_among_the_stage_s_descendants(
    finder: OwnerFinder, listener: socket.socket, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(_fd: int, _request: int, _argument: int) -> int:
        raise OSError(errno.ENOTTY, "no such request")

    with Client(listener) as client:
        monkeypatch.setattr(fcntl, "ioctl", refuse)
        owner = found(finder.find(client.ends))
        assert (owner.process.pid, owner.process.inner_pid) == (client.pid, client.pid)
        assert search_descendants(os.getpid(), 1) is None
