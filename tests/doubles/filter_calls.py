"""A machine for classic BPF, and system calls of which it is known from outside how the filter must answer.

Numbers are from the kernel's own tables (arch/x86/entry/syscalls/syscall_64.tbl,
include/uapi/asm-generic/unistd.h), constants from its uapi headers and the manual pages.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass

Call = tuple[str | int, ...]  # a name and up to six arguments

X86, ARM, I386 = 0xC000003E, 0xC00000B7, 0x40000003  # AUDIT_ARCH_*, linux/audit.h
AUDIT = {"x86_64": X86, "aarch64": ARM}
HIGH = 1 << 32  # the lowest bit that no 32-bit argument of the kernel has
EPERM, EACCES, ENOSYS, EPROTONOSUPPORT, EAFNOSUPPORT = 1, 13, 38, 93, 97

# name, number on x86-64, number on arm64 (- where the machine has no such call)
_NUMBERS = """
    accept4 288 242, acct 163 89, add_key 248 217, adjtimex 159 171, bpf 321 280, brk 12 214, capset 126 91,
    chmod 90 -, chroot 161 51, clock_settime 227 112, clone 56 220, clone3 435 435, close 3 57, close_range
    436 436, connect 42 203, creat 85 -, delete_module 176 106, dup3 292 24, execve 59 221, execveat 322
    281, exit_group 231 94, faccessat2 439 439, fanotify_init 300 262, fchmod 91 52, fchmodat 268 53,
    fchmodat2 452 452, finit_module 313 273, fork 57 -, fsconfig 431 431, fsmount 432 432, fsopen 430 430,
    fspick 433 433, futex 202 98, getpid 39 172, getrandom 318 278, getuid 102 174, init_module 175 105,
    inotify_init1 294 26, io_setup 206 0, io_uring_enter 426 426, io_uring_register 427 427, io_uring_setup
    425 425, ioctl 16 29, ioperm 173 -, iopl 172 -, kcmp 312 272, kexec_file_load 320 294, kexec_load 246
    104, keyctl 250 219, kill 62 129, landlock_add_rule 445 445, landlock_create_ruleset 444 444,
    landlock_restrict_self 446 446, lookup_dcookie 212 18, madvise 28 233, membarrier 324 283, memfd_create
    319 279, memfd_secret 447 447, mknod 133 -, mknodat 259 33, mmap 9 222, modify_ldt 154 -, mount 165 40,
    mount_setattr 442 442, move_mount 429 429, mprotect 10 226, mremap 25 216, munmap 11 215,
    name_to_handle_at 303 264, open 2 -, open_by_handle_at 304 265, open_tree 428 428, open_tree_attr 467
    467, openat 257 56, openat2 437 437, perf_event_open 298 241, personality 135 92, pidfd_getfd 438 438,
    pidfd_open 434 434, pidfd_send_signal 424 424, pipe2 293 59, pivot_root 155 41, pkey_mprotect 329 288,
    ppoll 271 73, prctl 157 167, prlimit64 302 261, process_madvise 440 440, process_vm_readv 310 270,
    process_vm_writev 311 271, ptrace 101 117, quotactl 179 60, quotactl_fd 443 443, read 0 63, readlinkat
    267 78, reboot 169 142, remap_file_pages 216 234, request_key 249 218, rseq 334 293, rt_sigaction 13
    134, rt_sigreturn 15 139, sched_setaffinity 203 122, sched_setattr 314 274, sched_setparam 142 118,
    sched_setscheduler 144 119, seccomp 317 277, sendmsg 46 211, set_tid_address 218 96, setdomainname 171
    162, sethostname 170 161, setns 308 268, setpgid 109 154, setpriority 141 140, setsid 112 157,
    setsockopt 54 208, settimeofday 164 170, shmat 30 196, shmget 29 194, socket 41 198, socketpair 53 199,
    splice 275 76, statx 332 291, swapoff 168 225, swapon 167 224, syslog 103 116, tgkill 234 131, umount2
    166 39, unlinkat 263 35, unshare 272 97, uselib 134 -, userfaultfd 323 282, vfork 58 -, vhangup 153 58,
    wait4 61 260, waitid 247 95, write 1 64
"""


def _parse_numbers(text: str) -> dict[str, tuple[int | None, int | None]]:
    rows = (row.split() for row in text.split(","))
    return {name: (_number(x86), _number(arm)) for name, x86, arm in rows}


def _number(word: str) -> int | None:
    return None if word == "-" else int(word)


NUMBERS = _parse_numbers(_NUMBERS)

# What ordinary programs, and the stage itself, cannot do without. None of it may be refused at any level.
_ORDINARY = """
    accept4 adjtimex brk capset close close_range connect dup3 execve execveat exit_group faccessat2
    fork futex getpid getrandom getuid inotify_init1 io_setup kill landlock_add_rule
    landlock_create_ruleset landlock_restrict_self madvise membarrier mremap munmap pidfd_open
    pidfd_send_signal pipe2 ppoll prctl prlimit64 process_madvise read readlinkat remap_file_pages rseq
    rt_sigaction rt_sigreturn sched_setaffinity seccomp sendmsg set_tid_address setpgid setsid
    setsockopt shmget splice statx tgkill unlinkat vfork wait4 waitid write
"""
ORDINARY = _ORDINARY.split()


@dataclass(frozen=True)
class Line:
    """How calls must be answered where one line of the table holds.

    `refused` get `errno`; `passed` are the nearest that must get through. A line that
    refuses its calls whatever the arguments has none: there the neighboring numbers pass.
    """

    errno: int
    refused: tuple[Call, ...]
    passed: tuple[Call, ...] = ()
    codes: tuple[str, ...] = ("closed", "jit", "any")


def every(names: str, errno: int = EPERM, codes: tuple[str, ...] = ("closed", "jit", "any")) -> Line:
    return Line(errno, tuple((name,) for name in names.split()), codes=codes)


_CWD = 0xFFFFFF9C  # AT_FDCWD
_CREATE, _TMPFILE = 0o100, 0o20200000
_NEW = (0x20000, 0x2000000, 0x4000000, 0x8000000, 0x10000000, 0x20000000, 0x40000000)  # CLONE_NEW*, sched.h
_SIGCHLD = 17
_THREAD = 0x3D0F00  # the flags by which glibc makes a thread


def _modes(*before: str | int, refused: bool) -> tuple[Call, ...]:
    """The call with modes: those with a set-id bit, or the nearest without."""
    modes = (0o4755, 0o2755, 0o4000, 0o2000, 0o6777) if refused else (0o755, 0o1777, 0o10644, 0o100644)
    return tuple((*before, mode) for mode in modes)


LINES: dict[str, Line] = {
    "socket-families": Line(
        EAFNOSUPPORT,
        (
            *(("socket", family, 1, 0) for family in range(48) if family not in (1, 2, 10, 16)),
            ("socket", 0x80000002, 1, 0),
            ("socket", 0x80000010, 3, 0),
        ),
        (("socket", 2, 1, 0), ("socket", 10, 2, 0), ("socket", 16, 3, 0)),
    ),
    "unix-sockets": Line(
        EAFNOSUPPORT,
        (("socket", 1, 1, 0), ("socket", 1, 2 | 0o2000000, 0), ("socket", 1, 5, 0)),
        (("socket", 2, 1, 0), ("socketpair", 1, 1, 0)),
    ),
    "socketpair-families": Line(
        EAFNOSUPPORT,
        (
            ("socketpair", 0, 1, 0),
            ("socketpair", 2, 1, 0),
            ("socketpair", 30, 1, 0),
            ("socketpair", 0x80000001, 1, 0),
        ),
        (("socketpair", 1, 1, 0), ("socketpair", 1, 2 | 0o4000, 0), ("socketpair", 1, 5, 0)),
    ),
    "internet-protocols": Line(
        EPROTONOSUPPORT,
        (
            *(("socket", 2, 1, protocol) for protocol in (1, 2, 7, 18, 41, 132, 136, 255, 262)),
            *(("socket", 10, 2, protocol) for protocol in (1, 7, 18, 58, 136)),
            *(("socket", 2, kind, 0) for kind in (0, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12)),
            ("socket", 10, 3 | 0o2000000, 58),
            ("socket", 2, 1, 0x80000006),
        ),
        (
            ("socket", 2, 1, 6),
            ("socket", 2, 1, 0),
            ("socket", 2, 2, 17),
            ("socket", 2, 1 | 0o2000000 | 0o4000, 6),
            ("socket", 10, 1, 6),
            ("socket", 10, 2 | 0o2000000, 0),
            ("socket", 16, 3, 0),
        ),
    ),
    "netlink-protocols": Line(
        EPROTONOSUPPORT,
        (*(("socket", 16, 3, protocol) for protocol in range(1, 23)), ("socket", 16, 2, 0x80000000)),
        (("socket", 16, 3, 0), ("socket", 16, 2 | 0o2000000, 0), ("socket", 2, 2, 17)),
    ),
    "io-uring": every("io_uring_setup io_uring_enter io_uring_register", ENOSYS),
    "terminal-injection": Line(
        EPERM,
        (("ioctl", 0, 0x5412), ("ioctl", 0, 0x541C, 1)),
        (
            ("ioctl", 0, 0x5413),
            ("ioctl", 0, 0x541D),
            ("ioctl", 0, 0x5401),
            ("ioctl", 0, 0x80005412),
            ("ioctl", 0x5412, 0x5413),
        ),
    ),
    "keyrings": every("add_key request_key keyctl", ENOSYS),
    "set-id-mode": Line(
        EPERM,
        (
            *_modes("chmod", 0, refused=True),
            *_modes("fchmod", 3, refused=True),
            *_modes("creat", 0, refused=True),
        ),
        (
            *_modes("chmod", 0, refused=False),
            *_modes("fchmod", 3, refused=False),
            *_modes("creat", 0, refused=False),
            ("fchmod", 3072, 0o644),
        ),
    ),
    "set-id-mode-at": Line(
        EPERM,
        (*_modes("fchmodat", _CWD, 0, refused=True), *_modes("fchmodat2", _CWD, 0, refused=True)),
        (*_modes("fchmodat", _CWD, 0, refused=False), *_modes("fchmodat2", _CWD, 0, refused=False)),
    ),
    "set-id-node": Line(EPERM, _modes("mknod", 0, refused=True), _modes("mknod", 0, refused=False)),
    "set-id-node-at": Line(
        EPERM, _modes("mknodat", _CWD, 0, refused=True), _modes("mknodat", _CWD, 0, refused=False)
    ),
    "set-id-open": Line(
        EPERM,
        (*_modes("open", 0, _CREATE | 2, refused=True), ("open", 0, _TMPFILE | 2, 0o4755)),
        (
            *_modes("open", 0, _CREATE | 2, refused=False),
            ("open", 0, 2, 0o4755),  # no file is made: that register holds anything
            ("open", 0, 0o40, 0o4755),
            ("open", 0, 0o200000, 0o2755),  # O_DIRECTORY alone, one bit of O_TMPFILE
            ("open", 0, 0x800000, 0o4755),
        ),
    ),
    "set-id-open-at": Line(
        EPERM,
        (*_modes("openat", _CWD, 0, _CREATE | 2, refused=True), ("openat", _CWD, 0, _TMPFILE | 2, 0o4755)),
        (
            *_modes("openat", _CWD, 0, _CREATE | 2, refused=False),
            ("openat", _CWD, 0, 2, 0o4755),
            ("openat", _CWD, 0, 0o40, 0o4755),
            ("openat", _CWD, 0, 0o200000, 0o2755),
            ("openat", _CWD, 0, 0x800000, 0o4755),
        ),
    ),
    "openat2": every("openat2", ENOSYS),
    "process-access": every("ptrace process_vm_readv process_vm_writev pidfd_getfd"),
    "own-image": Line(
        EPERM,
        (("prctl", 35, 14), ("prctl", 35, 15), ("prctl", 35, 8, 4096)),  # MAP, MAP_SIZE, ARG_START: prctl.h
        (("prctl", 34), ("prctl", 36), ("prctl", 38, 1), ("prctl", 0x80000023, 14)),
    ),
    "first-process": Line(
        EPERM,
        (
            ("prlimit64", 1, 7),
            ("sched_setscheduler", 1, 5),
            ("sched_setparam", 1),
            ("sched_setattr", 1),
            ("sched_setaffinity", 1),
        ),
        (
            ("prlimit64", 0, 7),
            ("prlimit64", 2, 7),
            ("prlimit64", 0x80000001, 7),
            ("sched_setscheduler", 0, 1),
            ("sched_setparam", 0, 1),
            ("sched_setattr", 0, 1),
            ("sched_setaffinity", 0, 1),
        ),
    ),
    "first-process-priority": Line(
        EPERM,
        (("setpriority", 0, 1, 0), ("setpriority", 1, 1, 0)),  # PRIO_PROCESS, PRIO_PGRP: setpriority(2)
        (
            ("setpriority", 0, 0, 1),
            ("setpriority", 1, 0, 1),
            ("setpriority", 0, 2, 1),
            ("setpriority", 0, 0x80000001, 1),
        ),
    ),
    "user-priority": Line(
        EPERM,
        (("setpriority", 2, 0, 0), ("setpriority", 2, 65533, 19)),
        (
            ("setpriority", 0, 0, 1),
            ("setpriority", 1, 0, 1),
            ("setpriority", 3, 0, 1),
            ("setpriority", 0x80000002, 0, 1),
        ),
    ),
    "kcmp": every("kcmp"),
    "clone-namespaces": Line(
        EPERM,
        tuple(("clone", flag | _SIGCHLD) for flag in (*_NEW, 0x7E020000)),
        (
            ("clone", _SIGCHLD),
            ("clone", 0x01200011),  # as glibc forks: CHILD_CLEARTID, CHILD_SETTID
            ("clone", 0x4111),  # as glibc spawns: VM, VFORK
            ("clone", _THREAD),
            ("clone", 0x10000 | _SIGCHLD),
            ("clone", 0x80000000 | _SIGCHLD),  # CLONE_IO
            ("clone", 0x80 | _SIGCHLD),  # here part of the exit signal, not CLONE_NEWTIME
        ),
    ),
    "clone3": every("clone3", ENOSYS),
    "unshare-namespaces": Line(
        EPERM,
        tuple(("unshare", flag) for flag in (*_NEW, 0x80, 0x7E020080)),
        (
            ("unshare", 0),
            ("unshare", 0x200),
            ("unshare", 0x400),
            ("unshare", 0x40000),
            ("unshare", 0x40),
            ("unshare", 0x80000000),
        ),
    ),
    "join-namespaces": every("setns"),
    "mounts": every(
        "mount umount2 pivot_root chroot open_tree open_tree_attr move_mount fsopen fsconfig fsmount fspick "
        "mount_setattr"
    ),
    "bpf": every("bpf"),
    "performance-events": every("perf_event_open"),
    "userfaultfd": every("userfaultfd"),
    "another-kernel": every("kexec_load kexec_file_load reboot"),
    "kernel-modules": every("init_module finit_module delete_module"),
    "file-handles": every("name_to_handle_at open_by_handle_at"),
    "file-watch": every("fanotify_init"),
    "kernel-log": every("syslog"),
    "host-disks": every("acct swapon swapoff quotactl quotactl_fd"),
    "host-clock": every("settimeofday clock_settime"),
    "host-names": every("sethostname setdomainname vhangup"),
    "old-surface": every("iopl ioperm modify_ldt uselib lookup_dcookie"),
    "memory-file": Line(
        ENOSYS, (("memfd_create", 0, 0), ("memfd_create", 0, 1), ("memfd_create", 0, 8)), codes=("closed",)
    ),
    "memory-file-unsealed": Line(
        ENOSYS,
        tuple(("memfd_create", 8, flags) for flags in (0, 1, 2, 4, 7, 0x10, 0x11)),
        (("memfd_create", 0, 8), ("memfd_create", 0, 9)),
        codes=("jit",),
    ),
    "memory-file-secret": every("memfd_secret", ENOSYS, ("closed", "jit")),
    "shared-memory-code": Line(
        EACCES,
        (("shmat", 0, 0, 0o100000), ("shmat", 0, 0, 0o140000)),
        (("shmat", 0, 0, 0), ("shmat", 0, 0, 0o10000), ("shmat", 0, 0, 0o40000), ("shmat", 0, 0, 0x10000)),
        codes=("closed",),
    ),
    "personality": Line(
        EPERM,
        tuple(("personality", flags) for flags in (0x400000, 0x40000, 0x20000, 8, 1, 0xFFFFFFFE, 0x80000000)),
        (("personality", 0), ("personality", 0xFFFFFFFF)),
        codes=("closed", "jit"),
    ),
    "anonymous-code": Line(
        EACCES,
        (("mmap", 0, 4096, 5, 0x22), ("mmap", 0, 4096, 4, 0x21), ("mmap", 0, 4096, 5, 0x40022)),
        (
            ("mmap", 0, 4096, 3, 0x22),
            ("mmap", 0, 4096, 8, 0x22),
            ("mmap", 0, 4096, 5, 2),  # a shared object's code
            ("mmap", 0, 4096, 5, 0x812),
            ("mmap", 0, 4096, 5, 0x42),
        ),
        codes=("closed",),
    ),
    "writable-code": Line(
        EACCES,
        (("mmap", 0, 4096, 7, 2), ("mmap", 0, 4096, 6, 1), ("mmap", 0, 4096, 7 | 0x1000000, 2)),
        (("mmap", 0, 4096, 5, 2), ("mmap", 0, 4096, 3, 2), ("mmap", 0, 4096, 1, 2), ("mmap", 0, 4096, 0, 2)),
        codes=("closed",),
    ),
    "changed-code": Line(
        EACCES,
        (
            *(("mprotect", 0, 4096, protection) for protection in (4, 5, 7, 0x1000005)),
            ("pkey_mprotect", 0, 4096, 5, 0xFFFFFFFF),
        ),
        (
            *(("mprotect", 0, 4096, protection) for protection in (0, 1, 3, 8)),
            ("mprotect", 0, 4, 1),
            ("pkey_mprotect", 0, 4096, 3, 4),
        ),
        codes=("closed",),
    ),
}


def numbered(machine: str, call: Call) -> tuple[int | None, tuple[int, ...]]:
    """The number of a call on a machine, and its six arguments."""
    name, *arguments = call
    both = NUMBERS[str(name)]
    padded = [*map(int, arguments), *[0] * (6 - len(arguments))]
    return both[0 if machine == "x86_64" else 1], tuple(padded)


def run_program(program: bytes, arch: int, number: int, arguments: tuple[int, ...]) -> tuple[int, int]:
    """Run a filter as the kernel would (its networking/filter.rst); the answer, and the instructions it took.

    Raises:
        AssertionError: An instruction that this machine does not know, or no answer at the end.
    """
    data = struct.pack("<IIQ6Q", number & 0xFFFFFFFF, arch, 0, *arguments)
    code = list(struct.iter_unpack("<HBBI", program))
    at, accumulator, steps = 0, 0, 0
    while at < len(code):
        kind, if_true, if_false, value = code[at]
        at += 1
        steps += 1
        if kind == 0x20:
            accumulator = struct.unpack_from("<I", data, value)[0]
        elif kind == 0x54:
            accumulator &= value
        elif kind == 0x05:
            at += value
        elif kind == 0x15:
            at += if_true if accumulator == value else if_false
        elif kind == 0x35:
            at += if_true if accumulator >= value else if_false
        elif kind == 0x45:
            at += if_true if accumulator & value else if_false
        elif kind == 0x06:
            return value, steps
        else:
            raise AssertionError(f"unknown instruction {kind:#x}")
    raise AssertionError("the program ends without an answer")
