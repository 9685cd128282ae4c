"""System calls by which another namespace, process, kernel part or kind of socket would be reached.

Usage: calls.py WORK. Prints one JSON object: try -> ["done" or the error, process id]. In the open
each does what it says (as root, or in a user namespace); nothing here changes the machine.
"""

import ctypes
import fcntl
import os
import struct
import sys
import termios

from apart import ON_X86, checked, libc, report, system_call

WORK = sys.argv[1]
HIGH = 1 << 32  # the lowest bit that no 32-bit argument of the kernel has
NEW_USER, NEW_MOUNTS, NEW_NET, SIGCHLD = 0x10000000, 0x20000, 0x40000000, 17


def call(number, *arguments):
    def attempt():
        system_call(number, *arguments)
        return "done"

    return attempt


def child_of_clone(number, *arguments):
    """A call that comes back twice; the child ends at once."""

    def attempt():
        pid = system_call(number, *arguments)
        if pid == 0:
            os._exit(0)
        os.waitpid(pid, 0)
        return "done"

    return attempt


def arguments_of_clone3(flags):
    """struct clone_args of 64 bytes: flags first, the exit signal fifth."""
    packed = struct.pack("8Q", flags, 0, 0, 0, SIGCHLD, 0, 0, 0)
    return ctypes.create_string_buffer(packed, len(packed)), len(packed)


# --- namespaces and mounts ------------------------------------------------------------------


def join():
    fd = os.open("/proc/self/ns/net", os.O_RDONLY)
    checked(libc.setns(fd, NEW_NET), "setns")
    return "done"


def mount(kind):
    def attempt():
        place = f"{WORK}/mount-{os.getpid()}"
        os.mkdir(place)
        checked(libc.mount(kind, place.encode(), kind, 0, None), "mount")
        return "done"

    return attempt


# --- parts of the kernel ----------------------------------------------------------------------


def bpf():
    """BPF_MAP_CREATE of an array with one entry."""
    attributes = ctypes.create_string_buffer(struct.pack("5I", 2, 4, 4, 1, 0).ljust(128, b"\0"), 128)
    system_call((321, 280), 0, attributes, 128)
    return "done"


def perf():
    """The processor time of this process: PERF_TYPE_SOFTWARE, without kernel and hypervisor."""
    head = struct.pack("2I5Q", 1, 128, 0, 0, 0, 0, 1 << 0 | 1 << 5 | 1 << 6)
    attributes = ctypes.create_string_buffer(head.ljust(128, b"\0"), 128)
    system_call((298, 241), attributes, 0, -1, -1, 0)
    return "done"


def ring():
    system_call((425, 425), 4, ctypes.create_string_buffer(120))
    return "done"


# --- another process ------------------------------------------------------------------------


def on_child(action):
    """Do it to a child of one's own, which nothing but the call itself forbids."""

    def attempt():
        pid = os.fork()
        if pid == 0:
            libc.pause()
        try:
            action(pid)
        finally:
            os.kill(pid, 9)
            os.waitpid(pid, 0)
        return "done"

    return attempt


MEMORY = ctypes.create_string_buffer(b"secret", 16)


def vectors():
    """Two struct iovec: a buffer here, and the same address in the child."""
    own = ctypes.create_string_buffer(16)
    at = ctypes.addressof
    return [ctypes.create_string_buffer(struct.pack("2Q", at(place), 16), 16) for place in (own, MEMORY)], own


def read_memory(pid):
    (local, remote), own = vectors()
    system_call((310, 270), pid, local, 1, remote, 1, 0)
    assert own.value == b"secret"


def write_memory(pid):
    (local, remote), _own = vectors()
    system_call((311, 271), pid, local, 1, remote, 1, 0)


def take_descriptor(pid):
    system_call((438, 438), os.pidfd_open(pid), 1, 0)


# --- terminals and set-id files -----------------------------------------------------------------


def push(request):
    """Type an x into a terminal of one's own: TIOCSTI, termios."""

    def attempt():
        _master, slave = os.openpty()
        os.setsid()
        fcntl.ioctl(slave, termios.TIOCSCTTY, 0)
        system_call((16, 29), slave, request, ctypes.create_string_buffer(b"x\n"))
        return "done"

    return attempt


def file_with(mode, set_mode):
    def attempt():
        path = f"{WORK}/set-id-{os.getpid()}"
        set_mode(path, mode)
        if not os.stat(path).st_mode & 0o6000:
            raise OSError(0, "the bits were dropped")
        return "done"

    return attempt


def made_by(action):
    def set_mode(path, mode):
        with open(path, "w"):
            pass
        action(path, mode)

    return set_mode


def made_with(path, mode):
    os.close(os.open(path, os.O_CREAT | os.O_WRONLY, mode))


def by_descriptor(path, mode):
    fd = os.open(path, os.O_RDONLY)
    os.fchmod(fd, mode)


SOCKET = (41, 198)
TRIES = {
    "unshare-user": call((272, 97), NEW_USER),
    "unshare-mounts": call((272, 97), NEW_MOUNTS),
    "clone-user": child_of_clone((56, 220), NEW_USER | SIGCHLD, 0, 0, 0, 0),
    "clone3": child_of_clone((435, 435), *arguments_of_clone3(0)),
    "clone3-user": child_of_clone((435, 435), *arguments_of_clone3(NEW_USER)),
    "join": join,
    "mount-tmpfs": mount(b"tmpfs"),
    "mount-binfmt": mount(b"binfmt_misc"),
    "new-mount-calls": call((430, 430), ctypes.create_string_buffer(b"tmpfs"), 0),
    "chroot": call((161, 51), ctypes.create_string_buffer(b"/tmp")),
    "bpf": bpf,
    "perf": perf,
    "keyctl": call((250, 219), 0, -2, 1, 0, 0),  # KEYCTL_GET_KEYRING_ID, of this process, made if need be
    "userfaultfd": call((323, 282), 1),  # UFFD_USER_MODE_ONLY, which every user may
    "io-uring": ring,
    "ptrace": on_child(lambda pid: system_call((101, 117), 16, pid, 0, 0)),
    "read-memory": on_child(read_memory),
    "write-memory": on_child(write_memory),
    "take-descriptor": on_child(take_descriptor),
    "push": push(0x5412),
    "push-high": push(0x5412 | HIGH),
    "push-console": push(0x541C),
    "push-console-high": push(0x541C | HIGH),
    "chmod": file_with(0o4755, made_by(os.chmod)),
    "fchmod": file_with(0o2755, made_by(by_descriptor)),
    "open": file_with(0o4755, made_with),
    "mknod": file_with(0o104755, os.mknod),
    "raw": call(SOCKET, 2, 3, 1),
    "raw6": call(SOCKET, 10, 3, 58),
    "packet": call(SOCKET, 17, 3, 0x0300),
    "netlink-diagnosis": call(SOCKET, 16, 3, 4),
    "netlink-audit-high": call(SOCKET, 16, 3, 9 | HIGH),
    "vsock": call(SOCKET, 40, 1, 0),
    "vsock-high": call(SOCKET, 40 | HIGH, 1, 0),
    "mptcp": call(SOCKET, 2, 1, 262),
    "udp-lite": call(SOCKET, 2, 2, 136),
    "unix": call(SOCKET, 1, 1, 0),
    "unix-datagram": call(SOCKET, 1, 2, 0),
    "unix-high": call(SOCKET, 1 | HIGH, 1, 0),
    "tcp": call(SOCKET, 2, 1, 6),
    "udp6": call(SOCKET, 10, 2, 17),
    "netlink-route": call(SOCKET, 16, 3, 0),
    "pair": call((53, 199), 1, 1, 0, ctypes.create_string_buffer(8)),
}
if ON_X86:
    TRIES["x32"] = call(0x40000000 | 39)  # getpid by the x32 convention

report(TRIES)
