"""What the worker sees of the file system, as an ordered list of mounts. Pure.

Built from nothing: an empty root, then what is listed. A hide list on top of the
host's root would be one forgotten socket away from the host, since Unix sockets and
FIFOs answer through read-only binds too.

Order matters: a later mount covers an earlier one. Base, then the operator's folders
from the outside in, then what is protected inside writable ones, then what is hidden,
and at the end the root becomes read-only.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from enum import StrEnum

from msgspec import Struct

from stockade.sandbox.environment import HOME, USER

SANDBOX_NAME = "stockade"
STAGE_PATH = "/.stockade/stage"

# Single files and folders of /etc, shown read-only where the host has them. On a sound host none
# holds a secret; what may (pip.conf, gitconfig, environment, profile.d) is left out.
ETC_SHOWN = (
    "alternatives",  # links of Debian's alternatives lead through here
    "ssl/certs", "ssl/openssl.cnf", "ssl/cert.pem", "ca-certificates", "ca-certificates.conf",
    "pki/tls/certs", "pki/ca-trust", "crypto-policies",  # trust anchors; never ssl/private
    "ld.so.cache", "ld.so.conf", "ld.so.conf.d",  # without the cache programs in odd folders do not load
    "localtime", "timezone", "mime.types", "magic", "terminfo", "inputrc", "bash.bashrc", "profile",
    "fonts", "chromium", "chromium.d",  # the browser's launcher reads these
    "services", "protocols", "rpc", "networks", "host.conf", "gai.conf",
    "os-release", "debian_version", "lsb-release", "shells",
    "perl", "mailcap", "ImageMagick-6",
)  # fmt: skip
# Folders whose names carry a version; matched by prefix.
ETC_SHOWN_PREFIXES = ("python3", "java-", "node")
CACHES_SHOWN = ("/var/cache/fontconfig",)


class MountKind(StrEnum):
    """One operation of the view; the values are bubblewrap's option names where it has one."""

    READ_ONLY = "ro-bind"
    WRITABLE = "bind"
    TMPFS = "tmpfs"
    LINK = "symlink"
    PROC = "proc"
    DEV = "dev"
    DATA = "file"
    COPY = "copy"
    COVER = "ro-bind-data"
    FOLDER = "dir"
    FREEZE = "remount-ro"


class Mount(Struct, frozen=True, kw_only=True):
    """One step of the view.

    Attributes:
        kind: What is put there.
        target: Where, inside.
        source: Path on the host for binds and copies, text of the link for LINK.
        data: Content for DATA.
        mode: Permission bits for TMPFS, FOLDER and DATA.
        owner: Owner (uid, gid) on disk whose files the worker is to own inside: the bind
            is made with an id map when Stockade was started by root. None: as it is.
        identity: (device, inode) that the source had when it was judged; compared again
            before the worker starts, so that a folder swapped meanwhile is noticed.
        is_late: Put up by finish_view.py, on itself, when bubblewrap has finished.
        covers: For TMPFS and COVER, the identity of what must not be seen there.
        why: Shown by ``--dry-run``.
    """

    kind: MountKind
    target: str
    source: str = ""
    data: bytes = b""
    mode: int = 0o755
    owner: tuple[int, int] | None = None
    identity: tuple[int, int] | None = None
    is_late: bool = False
    covers: tuple[int, int] | None = None
    why: str = ""

    def describe(self) -> str:
        how = {
            MountKind.READ_ONLY: "read-only",
            MountKind.WRITABLE: "writable",
            MountKind.TMPFS: "empty, private",
            MountKind.LINK: f"link to {self.source}",
            MountKind.PROC: "processes of the sandbox",
            MountKind.DEV: "minimal devices",
            MountKind.DATA: f"file of {len(self.data)} bytes",
            MountKind.COPY: "copy of the host's file",
            MountKind.COVER: f"covered by a read-only file of {len(self.data)} bytes",
            MountKind.FOLDER: "empty folder",
            MountKind.FREEZE: "made read-only",
        }[self.kind]
        is_moved = self.kind is not MountKind.LINK and self.source not in ("", self.target)
        elsewhere = f" (from {self.source})" if is_moved else ""
        return f"{self.target}: {how}{elsewhere}{' – ' + self.why if self.why else ''}"


def bind(
    path: str,
    kind: MountKind,
    why: str,
    *,
    owner: tuple[int, int] | None = None,
    identity: tuple[int, int] | None = None,
) -> Mount:
    """A bind of a path at the same path."""
    return Mount(kind=kind, target=path, source=path, why=why, owner=owner, identity=identity)


def base_mounts(
    *,
    root_links: Iterable[tuple[str, str]],
    root_folders: Iterable[str],
    etc: Iterable[tuple[str, bool]],
    caches: Iterable[str],
) -> list[Mount]:
    """The part that is the same for every run on one host."""
    mounts = [bind("/usr", MountKind.READ_ONLY, "programs and libraries")]
    mounts += [Mount(kind=MountKind.LINK, target=name, source=to) for name, to in root_links]
    mounts += [bind(folder, MountKind.READ_ONLY, "as on the host") for folder in root_folders]
    mounts += [
        Mount(kind=MountKind.PROC, target="/proc"),
        Mount(kind=MountKind.DEV, target="/dev"),
        Mount(kind=MountKind.TMPFS, target="/dev/shm", mode=0o1777),
        Mount(kind=MountKind.FREEZE, target="/dev"),
        Mount(kind=MountKind.TMPFS, target="/tmp", mode=0o1777),
        Mount(kind=MountKind.TMPFS, target="/run"),
        Mount(kind=MountKind.TMPFS, target="/var/tmp", mode=0o1777),
        Mount(kind=MountKind.TMPFS, target="/home"),
        Mount(kind=MountKind.FOLDER, target=HOME, mode=0o700),
        Mount(kind=MountKind.FOLDER, target="/etc"),
    ]
    # A copy of a file takes a tenth of the time of a mount, and the root is read-only in the end.
    mounts += [
        bind(f"/etc/{name}", MountKind.READ_ONLY if is_folder else MountKind.COPY, "as on the host")
        for name, is_folder in etc
    ]
    mounts += [bind(path, MountKind.READ_ONLY, "as on the host") for path in caches]
    return mounts


def identity_mounts(uid: int, gid: int, has_room: bool = True) -> list[Mount]:
    """The small files of /etc that we write ourselves.

    Without the room nobody answers at the gateway's address, so names come from where the host gets them.
    """
    shell = "/bin/sh"
    passwd = f"root:x:0:0:root:/nonexistent:/usr/sbin/nologin\n{USER}:x:{uid}:{gid}::{HOME}:{shell}\n"
    group = f"root:x:0:\n{USER}:x:{gid}:\n"
    if uid == 0:  # the supervisor's user namespace knows only its own root, an unprivileged uid outside
        passwd = f"{USER}:x:0:0::{HOME}:{shell}\n"
        group = f"{USER}:x:0:\n"
    nobody = 65534
    if uid != nobody:
        passwd += f"nobody:x:{nobody}:{nobody}::/nonexistent:/usr/sbin/nologin\n"
        group += f"nogroup:x:{nobody}:\n"
    files = {
        "passwd": passwd,
        "group": group,
        "hosts": f"127.0.0.1 localhost {SANDBOX_NAME}\n::1 localhost ip6-localhost ip6-loopback\n",
        "hostname": f"{SANDBOX_NAME}\n",
        "resolv.conf": "nameserver 198.18.0.1\noptions ndots:1\n",
        "nsswitch.conf": "passwd: files\ngroup: files\nhosts: files dns\nservices: files\nprotocols: files\n",
    }
    if not has_room:
        del files["resolv.conf"]
    mounts = [
        Mount(kind=MountKind.DATA, target=f"/etc/{name}", data=text.encode(), mode=0o444)
        for name, text in files.items()
    ]
    return mounts if has_room else [*mounts, bind("/etc/resolv.conf", MountKind.COPY, "as on the host")]


def hide_mounts(path: str, is_folder: bool, why: str, covers: tuple[int, int] | None = None) -> list[Mount]:
    """Cover a path by emptiness; what is below cannot be reached by another name."""
    if not is_folder:
        return [Mount(kind=MountKind.COVER, target=path, mode=0o444, covers=covers, why=why)]
    return [
        Mount(kind=MountKind.TMPFS, target=path, mode=0o555, covers=covers, why=why),
        Mount(kind=MountKind.FREEZE, target=path),
    ]


def is_below(path: str, folder: str) -> bool:
    return path == folder or path.startswith(folder.rstrip("/") + "/")


def by_depth(mounts: Sequence[Mount]) -> list[Mount]:
    """From the outside in, keeping the order among equals."""
    return sorted(mounts, key=lambda mount: mount.target.count("/") if mount.target != "/" else 0)


def chain_below(root: str, path: str) -> list[str]:
    """The folders between a root and a path, both left out: ``/w``, ``/w/a/b/c`` gives a and a/b."""
    parts = path[len(root.rstrip("/")) + 1 :].split("/")
    return [root.rstrip("/") + "/" + "/".join(parts[:count]) for count in range(1, len(parts))]
