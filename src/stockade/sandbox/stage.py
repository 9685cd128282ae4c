"""The first process inside the sandbox (PID 1): it waits, seals itself, starts the worker, and ends with us.

It runs as ``python3 -I -S stage.py LIFELINE [terminal]`` and imports only modules that
are built in or cost less than a millisecond, since every start pays for them.

What must stay true:

* Nothing of the worker runs before the supervisor's two orders have come in full. The
  first one is the seal, which binds this process as well, and all that it will fork.
* End of file on the lifeline ends this process at any time. The kernel then kills
  all others in the PID namespace, so nobody outlives a supervisor that was killed.
* The worker cannot look into this process (undumpable) and inherits nothing from it
  but its three standard streams, or those and a debugging pipe on 3 and 4.
* Signals that the worker sends to PID 1 have no effect: the kernel drops those for
  which an init has no handler, and the only handler here does nothing.

The other half of the conversation is lifeline.py.
"""

import _ctypes
import _signal  # type: ignore[import-not-found]  # typeshed does not list it
import _socket
import posix
import resource
import select
import sys

EVERY_FD = 2**31 - 1
CAPABILITIES_AND_FILTERS = (
    *("CapPrm:", "CapEff:", "CapBnd:", "CapAmb:"),
    *("NoNewPrivs:", "Seccomp:", "Seccomp_filters:", "Uid:"),
)


class Long(_ctypes._SimpleCData):  # type: ignore[type-arg]
    _type_ = "l"


class Int(_ctypes._SimpleCData):  # type: ignore[type-arg]
    _type_ = "i"


class Char(_ctypes._SimpleCData):  # type: ignore[type-arg]
    _type_ = "c"


class Call(_ctypes.CFuncPtr):
    """A function of the C library; `_ctypes` alone is a fifth of the cost of importing ctypes."""

    _flags_ = 1 | 8  # the C convention, and errno kept
    _restype_ = Long


class IntCall(_ctypes.CFuncPtr):
    """One that answers with an int, such as prctl: read as a long, its -1 would be 4294967295."""

    _flags_ = 1 | 8
    _restype_ = Int


def find_address(name: str) -> int:
    return _ctypes.dlsym(_ctypes.dlopen(None, 2), name)  # type: ignore[arg-type]


def system_call() -> Call:
    return Call(find_address("syscall"))


def control_process(option: int, value: int) -> None:
    """prctl(2)."""
    checked(IntCall(find_address("prctl")), option, value, 0, 0, 0)


def checked(call: Call | IntCall, *arguments: int | bytes) -> int:
    """Call it with whole machine words and pointers; a negative answer becomes `OSError`."""
    words = [Long(word) if isinstance(word, int) else word for word in arguments]
    result: int = call(*words)
    if result < 0:
        raise OSError(_ctypes.get_errno(), "refused")
    return result


def forbid_looking_in() -> None:
    """Make this process undumpable: /proc/1/mem, ptrace and pidfd_getfd are then refused (prctl(2))."""
    control_process(4, 0)


def open_victim_score() -> int:
    """How soon the kernel kills us for want of memory; opened before the file becomes root's (undumpable)."""
    try:
        return posix.open("/proc/self/oom_score_adj", posix.O_RDWR | posix.O_CLOEXEC)
    except OSError:
        return -1


def fork_victim(score: int) -> int:
    """Fork, with the child as the kernel's first choice when there is no memory: if we go, all goes.

    Everybody may raise his score and put it back (proc_pid_oom_score_adj(5)); the child inherits it raised.
    """
    try:
        own = posix.read(score, 16)
        posix.write(score, str(min(1000, int(own) + VICTIM_SCORE)).encode())
    except OSError:
        return posix.fork()
    child = posix.fork()
    if child:
        try:  # noqa: SIM105  as below
            posix.write(score, own)
        except OSError:
            pass  # then both are the first choice
        posix.close(score)
    return child


VICTIM_SCORE = 500  # as if it used half of what is permitted besides


def send(lifeline: _socket.socket, text: str, fds: bytes = b"") -> None:
    body = text.encode("utf-8", "surrogateescape")
    frame = len(body).to_bytes(4, "big") + body
    rights = [(_socket.SOL_SOCKET, _socket.SCM_RIGHTS, fds)] if fds else []
    sent = lifeline.sendmsg([frame], rights)
    while sent < len(frame):
        sent += lifeline.send(frame[sent:])


def receive_order(lifeline: _socket.socket) -> tuple[list[bytes], list[int]]:
    """The supervisor's one order, with the descriptors that came with it."""
    data = b""
    fds = []
    wanted = 4
    while len(data) < wanted:
        part, rights, _flags, _address = lifeline.recvmsg(
            1 << 16, _socket.CMSG_SPACE(16), _socket.MSG_CMSG_CLOEXEC
        )
        if not part:
            posix._exit(1)  # the supervisor is gone: nothing has started, nothing will
        data += part
        for _level, _kind, raw in rights:
            fds += [int.from_bytes(raw[i : i + 4], sys.byteorder) for i in range(0, len(raw) // 4 * 4, 4)]
        if len(data) >= 4:
            wanted = 4 + int.from_bytes(data[:4], "big")
    return data[4:].split(b"\0"), fds


def facts() -> str:
    """What the supervisor compares with its own before it gives the order."""
    lines = [f"ns-{name} {posix.stat('/proc/self/ns/' + name).st_ino}" for name in NAMESPACES]
    fd = posix.open("/proc/self/status", posix.O_RDONLY)
    for line in posix.read(fd, 1 << 14).decode().splitlines():
        if line.startswith(CAPABILITIES_AND_FILTERS):
            lines.append(line.replace("\t", " "))
    posix.close(fd)
    return "\n".join(lines)


NAMESPACES = ("user", "net", "pid", "mnt", "ipc", "uts", "cgroup")


# --- the seal ------------------------------------------------------------------------------


def seal(order: list[bytes]) -> tuple[str, int]:
    """Give up, for good and with all descendants, what the order says. Returns what to say, and the eye.

    The order of the steps is fixed: what comes later can no longer undo what came before,
    and each needs calls that a later one refuses.
    """
    memory, ruleset, program, flags, *rules = order[1:]
    step = "no-new-code"
    try:
        has_mdwe = memory == b"1" and forbid_new_code()
        step = "landlock"
        if ruleset:
            restrict_files(bytes.fromhex(ruleset.decode()), rules)
        step = "filter"
        eye = install_filter(bytes.fromhex(program.decode()), int(flags)) if program else -1
    except OSError as error:
        return f"seal-failed {step} {error.errno or 5}", -1
    return f"sealed\nmdwe {int(has_mdwe)}\n{facts()}", eye


def forbid_new_code() -> bool:
    """PR_SET_MDWE (kernel 6.3): what was writable never becomes executable. The filter has it too."""
    try:
        control_process(65, 1)
    except OSError as error:
        if error.errno != 22:  # EINVAL: an older kernel
            raise
        return False
    return True


def restrict_files(ruleset: bytes, rules: list[bytes]) -> None:
    """Landlock: from here on only what a rule names, by the file or folder itself and not by its path."""
    syscall = system_call()
    handle = checked(syscall, LANDLOCK_CREATE_RULESET, ruleset, len(ruleset), 0)
    for rule in rules:
        rights, path = rule.split(b" ", 1)
        place = posix.open(path, posix.O_PATH | posix.O_CLOEXEC | posix.O_NOFOLLOW)
        attribute = int(rights).to_bytes(8, sys.byteorder) + place.to_bytes(4, sys.byteorder)
        checked(syscall, LANDLOCK_ADD_RULE, handle, 1, attribute, 0)
        posix.close(place)
    checked(syscall, LANDLOCK_RESTRICT_SELF, handle, 0)
    posix.close(handle)


def install_filter(program: bytes, flags: int) -> int:
    """seccomp(2). With a listener wanted the answer is its descriptor, else -1."""
    code = bytearray(program)
    kind = type("Code", (_ctypes.Array,), {"_type_": Char, "_length_": len(code)})
    held = kind.from_buffer(code)  # type: ignore[attr-defined]
    fprog = (len(code) // 8).to_bytes(8, sys.byteorder) + _ctypes.addressof(held).to_bytes(8, sys.byteorder)
    number = SECCOMP[posix.uname().machine]
    result = checked(system_call(), number, 1, flags, fprog)
    return result if flags & SECCOMP_NEW_LISTENER else -1


LANDLOCK_CREATE_RULESET, LANDLOCK_ADD_RULE, LANDLOCK_RESTRICT_SELF = 444, 445, 446
SECCOMP = {"x86_64": 317, "aarch64": 277}
SECCOMP_NEW_LISTENER = 8


# --- the worker ----------------------------------------------------------------------------


def open_terminal() -> tuple[int, int]:
    """A terminal of this sandbox's own devpts, made our controlling terminal.

    Opening it without O_NOCTTY is enough, since bwrap made us a session leader. We
    keep the session and the worker gets a process group in it: a worker alone in a
    session of its own could not be stopped with Ctrl-Z (its group would be orphaned).
    """
    master, slave = posix.openpty()
    posix.close(posix.open(posix.ttyname(slave), posix.O_RDWR))
    return master, slave


def candidates(program: bytes, search_path: bytes) -> list[bytes]:
    if b"/" in program:
        return [program]
    return [(folder or b".") + b"/" + program for folder in search_path.split(b":")]


def execute(program: bytes, arguments: list[bytes], environment: dict[bytes, bytes]) -> int:
    """Replace this process as execvp does; return the errno that says best why not."""
    worst = 2  # ENOENT
    for path in candidates(program, environment.get(b"PATH", b"/usr/bin:/bin")):
        try:
            posix.execve(path, arguments, environment)
        except OSError as error:
            if error.errno == 8:  # ENOEXEC: a script without #!, which every shell hands to sh
                try:
                    posix.execve(b"/bin/sh", [b"sh", path, *arguments[1:]], environment)
                except OSError as second:
                    error = second
            if error.errno not in (2, 20):  # ENOENT, ENOTDIR: look further
                worst = error.errno or 5
                if worst != 13:  # EACCES: look further, but remember
                    break
    return worst


def apply_limits(text: bytes) -> None:
    for item in text.split(b";"):
        kind, soft, hard = map(int, item.split())
        resource.setrlimit(kind, (soft, hard))


def become_worker(order: list[bytes], streams: list[int], slave: int, report: int) -> None:
    """In the child: own group, default signals, the streams, the folder, the program."""
    step = "setup"
    try:
        posix.setpgid(0, 0)
        if slave >= 0:
            _signal.signal(_signal.SIGTTOU, _signal.SIG_IGN)  # we are not in the foreground yet
            posix.tcsetpgrp(slave, posix.getpid())
        for number in range(1, _signal.NSIG):
            if number not in (9, 19, 32, 33):  # KILL and STOP cannot be set, the C library keeps two
                _signal.signal(number, _signal.SIG_DFL)
        _signal.pthread_sigmask(_signal.SIG_SETMASK, ())
        if len(streams) > 3:
            streams, report = out_of_the_way(streams, report)
        for target, source in enumerate(streams):
            posix.dup2(source, target, True)
        posix.closerange(len(streams), report)
        posix.closerange(report + 1, EVERY_FD)
        cwd, program, limits, argc = order[1], order[2], order[4], int(order[5])
        step = "limits"
        apply_limits(limits)
        step = "chdir"
        posix.chdir(cwd)
        step = "exec"
        environment = dict(pair.split(b"=", 1) for pair in order[6 + argc :])
        error = execute(program, order[6 : 6 + argc], environment)
    except OSError as failure:
        error = failure.errno or 5
    posix.write(report, f"{step} {error}".encode())
    posix._exit(127)


def out_of_the_way(streams: list[int], report: int) -> tuple[list[int], int]:
    """Give them high numbers: a target beyond the three may be a source's own number, or the report's."""
    moved = [posix.dup2(source, 100 + target, False) for target, source in enumerate(streams)]
    return moved, posix.dup2(report, 100 + len(streams), False)


class Watch:
    """The parent's life after the fork: forward signals in, report states out, reap orphans."""

    def __init__(self, lifeline: _socket.socket, worker: int, report: int, wakeups: int) -> None:
        self.lifeline = lifeline
        self.worker = worker
        self.report = report
        self.wakeups = wakeups

    def run(self) -> None:
        poll = select.poll()
        for fd in (self.lifeline.fileno(), self.report, self.wakeups):
            poll.register(fd, select.POLLIN)
        while True:
            for fd, _events in poll.poll():
                if fd == self.lifeline.fileno():
                    self.forward_signals()
                elif fd == self.report and self.report >= 0:
                    poll.unregister(fd)
                    self.read_report()
                elif fd == self.wakeups:
                    posix.read(fd, 4096)
                    self.reap()

    def forward_signals(self) -> None:
        numbers = self.lifeline.recv(256)
        if not numbers:
            posix._exit(1)
        for number in numbers:
            try:  # noqa: SIM105  contextlib costs a millisecond here
                posix.killpg(self.worker, number)
            except OSError:
                pass  # it has just ended: its end is reported by `reap`

    def read_report(self) -> None:
        """An empty report means that exec closed the pipe, that is, the program runs."""
        text = posix.read(self.report, 256).decode()
        posix.close(self.report)
        self.report = -1
        if text:
            send(self.lifeline, "failed " + text)
            posix._exit(0)
        send(self.lifeline, "started")

    def reap(self) -> None:
        while True:
            try:
                pid, status = posix.waitpid(-1, posix.WNOHANG | posix.WUNTRACED)
            except ChildProcessError:
                return
            if pid == 0:
                return
            if pid == self.worker:
                self.tell(status)

    def tell(self, status: int) -> None:
        if posix.WIFSTOPPED(status):
            send(self.lifeline, f"stopped {posix.WSTOPSIG(status)}")
            return
        if self.report >= 0:
            self.read_report()
        if posix.WIFSIGNALED(status):
            send(self.lifeline, f"signaled {posix.WTERMSIG(status)}")
        else:
            send(self.lifeline, f"exited {posix.WEXITSTATUS(status)}")
        posix._exit(0)  # the kernel now kills what is left in this PID namespace


def start_worker(
    lifeline: _socket.socket, order: list[bytes], fds: list[int], slave: int, score: int
) -> Watch:
    streams = [slave if place == 116 else fds[place - 48] for place in order[3]]  # "t" or a digit
    report_in, report_out = posix.pipe2(posix.O_CLOEXEC)
    wake_in, wake_out = posix.pipe2(posix.O_CLOEXEC | posix.O_NONBLOCK)
    _signal.signal(_signal.SIGCHLD, lambda *_: None)
    _signal.set_wakeup_fd(wake_out)
    worker = fork_victim(score)
    if worker == 0:
        _signal.set_wakeup_fd(-1)
        become_worker(order, streams, slave, report_out)
    try:  # noqa: SIM105  as above
        posix.setpgid(worker, worker)  # both sides do it, so that it is done whoever runs first
    except OSError:
        pass  # it has called exec already
    posix.close(report_out)
    posix.dup2(0, 2)  # standard error was the supervisor's, for faults before the start
    for fd in {*streams, *fds}:
        posix.close(fd)
    return Watch(lifeline, worker, report_in, wake_in)


def main() -> None:
    lifeline = _socket.socket(fileno=int(sys.argv[1]))
    _signal.signal(_signal.SIGINT, _signal.SIG_DFL)  # Python's own handler would let the worker end us
    posix.closerange(3, lifeline.fileno())
    posix.closerange(lifeline.fileno() + 1, EVERY_FD)
    score = open_victim_score()
    forbid_looking_in()
    posix.set_inheritable(lifeline.fileno(), False)
    master = slave = -1
    if sys.argv[2:] == ["terminal"]:
        master, slave = open_terminal()
    send(lifeline, "ready\n" + facts(), master.to_bytes(4, sys.byteorder) if master >= 0 else b"")
    if master >= 0:
        posix.close(master)
    order, fds = receive_order(lifeline)
    if order[0] == b"seal":
        answer, eye = seal(order)
        send(lifeline, answer, eye.to_bytes(4, sys.byteorder) if eye >= 0 else b"")
        if eye >= 0:
            posix.close(eye)
        order, fds = receive_order(lifeline)
    start_worker(lifeline, order, fds, slave, score).run()


main()
