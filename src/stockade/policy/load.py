"""Policy files to a `Policy`: one file, its includes, and nothing else from the machine.

A file is opened once and judged by what was opened (a regular file, not too large), so a
swap between a check and a read changes nothing. Includes are presets of the package or
files in the folder of the first file; links may not lead out of it.
"""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import Any, Literal

from msgspec import Struct
from msgspec.structs import replace

from stockade.net.host import escape_text
from stockade.policy.canonical import digest_policy
from stockade.policy.model import (
    DEFAULT_HOLD_S,
    PRESET_ORIGIN,
    ExecPolicy,
    FilesPolicy,
    Finding,
    Limits,
    Policy,
)
from stockade.policy.parse import Parts, Reader
from stockade.policy.problems import PolicyError, nearest, refuse_at, shown
from stockade.policy.yaml_tree import parse_yaml

PRESETS = Path(__file__).parent / "presets"

MAX_FILE_BYTES = 32 << 20  # 100,000 rules with every key are about 20 MB
MAX_DEPTH = 8
MAX_FILES = 64


def load_policy(path: Path) -> Policy:
    """Load a policy file and its includes.

    Raises:
        PolicyError: with every problem of the files, each with file, line and code.
    """
    name = (
        escape_text(path.name.encode("utf-8", "backslashreplace"))
        if not path.name.isprintable()
        else path.name or str(path)
    )
    text = _read_text(path, name, None)
    return _Loader(name, path.parent.resolve(), path.resolve()).load(text)


def load_policy_text(text: str | bytes, source: str = "policy") -> Policy:
    """Load policy text; its includes can be presets only.

    Raises:
        PolicyError: with every problem of the text.
    """
    return _Loader(source, None, None).load(_decode(text, source) if isinstance(text, bytes) else text)


def load_preset(name: str) -> Policy:
    """Load one preset of the package as a policy of its own."""
    return load_policy_text(f"version: 1\ninclude: [{name}]\n", f"preset:{name}")


def list_presets() -> list[str]:
    """Names of the presets that ship with the package."""
    return sorted(str(path.relative_to(PRESETS).with_suffix("")) for path in PRESETS.rglob("*.yaml"))


def read_preset(name: str) -> str:
    """The text of a preset; the name must be one of `list_presets`."""
    return (PRESETS / f"{name}.yaml").read_text(encoding="utf-8")


class _File(Struct, frozen=True):
    """Something to read: its name in messages, and what tells it from others."""

    name: str
    identity: str
    text: str


class _Loader:
    """Follows the includes of one policy, each file once."""

    def __init__(self, source: str, root: Path | None, path: Path | None) -> None:
        self._source = source
        self._root = root
        self._first = str(path) if path else "text"
        self._parts: list[Parts] = []
        self._done: set[str] = set()
        self._problems: list[Finding] = []
        self._notes: list[Finding] = []

    def load(self, text: str) -> Policy:
        self._read(_File(self._source, self._first, text), ())
        if self._problems:
            raise PolicyError(tuple(self._problems))
        paths = tuple(sorted(identity for identity in self._done if identity.startswith("/")))
        return replace(_join(self._source, self._parts, tuple(self._notes)), paths=paths)

    def _read(self, file: _File, above: tuple[str, ...]) -> None:
        self._done.add(file.identity)
        if len(file.text) > MAX_FILE_BYTES:
            raise refuse_at(file.name, "file-too-large", f"larger than {MAX_FILE_BYTES >> 20} MiB")
        reader = Reader(file.name)
        try:
            parts = reader.read_file(parse_yaml(file.text, file.name))
        except PolicyError as error:
            self._problems.extend(error.problems)
            return
        self._problems.extend(reader.problems)
        self._notes.extend(reader.notes)
        self._parts.append(parts)
        for name, origin in parts.include:
            self._include(name, origin, (*above, file.identity))

    def _include(self, name: str, origin: str, above: tuple[str, ...]) -> None:
        try:
            file = self._open_include(name, origin)
            if file.identity in above:
                raise refuse_at(
                    origin, "include-cycle", f"{name} includes this file again", "remove one of the includes"
                )
            if len(above) >= MAX_DEPTH or len(self._done) >= MAX_FILES:
                limit = f"at most {MAX_DEPTH} deep and {MAX_FILES} files"
                raise refuse_at(
                    origin, "include-too-many", f"includes go {limit}", "write fewer, flatter files"
                )
        except PolicyError as error:
            self._problems.extend(error.problems)
            return
        if file.identity not in self._done:
            self._read(file, above)

    def _open_include(self, name: str, origin: str) -> _File:
        if not name.endswith((".yaml", ".yml")):
            return _open_preset(name, origin)
        if self._root is None:
            raise refuse_at(
                origin, "include-not-possible", f"{name} is a file, and this policy has no folder"
            )
        path = (self._root / name).resolve()
        if not path.is_relative_to(self._root):
            raise refuse_at(
                origin,
                "include-outside",
                f"{shown(name)} lies outside the policy's folder",
                "copy it beside the policy",
            )
        return _File(name, str(path), _read_text(path, name, origin))


def _open_preset(name: str, origin: str) -> _File:
    presets = list_presets()
    if name not in presets:
        listed = "`stockade policy presets` lists them; the name of a file ends in .yaml"
        better = f"the nearest is {nearest(name, presets)}; {listed}" if presets else listed
        raise refuse_at(origin, "include-unknown", f"no preset is called {shown(name)}", better)
    return _File(f"preset:{name}", f"preset:{name}", read_preset(name))


def _read_text(path: Path, name: str, origin: str | None) -> str:
    """Open once, judge what was opened, read it whole.

    Args:
        path: Where it is; for an include already resolved, so no link may come in between.
        name: What messages call it.
        origin: The line that includes it; None for the file given with -p.
    """
    place = origin or name
    # O_NONBLOCK: opening a pipe must not wait for a writer.
    flags = os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | (os.O_NOFOLLOW if origin else 0)
    try:
        descriptor = os.open(path, flags)
    except FileNotFoundError as error:
        raise refuse_at(place, "file-not-found", f"there is no file {path}") from error
    except (OSError, ValueError) as error:
        raise refuse_at(
            place, "file-unreadable", f"{path} cannot be opened ({_errno_text(error)})"
        ) from error
    try:
        return _decode(_read_descriptor(descriptor, path, place, is_include=origin is not None), name)
    finally:
        os.close(descriptor)


def _read_descriptor(descriptor: int, path: Path, place: str, *, is_include: bool) -> bytes:
    about = os.fstat(descriptor)
    if not stat.S_ISREG(about.st_mode):
        better = "give a file, not a folder or pipe"
        raise refuse_at(place, "file-not-regular", f"{path} is not a regular file", better)
    if is_include and os.readlink(f"/proc/self/fd/{descriptor}") != str(path):
        raise refuse_at(place, "include-outside", f"{path} changed while it was opened")
    if about.st_size > MAX_FILE_BYTES:
        raise refuse_at(place, "file-too-large", f"{path} is larger than {MAX_FILE_BYTES >> 20} MiB")
    try:
        with open(descriptor, "rb", closefd=False) as file:
            return file.read(MAX_FILE_BYTES + 1)
    except OSError as error:
        raise refuse_at(place, "file-unreadable", f"{path} cannot be read ({_errno_text(error)})") from error


def _errno_text(error: Exception) -> str:
    return error.strerror or str(error) if isinstance(error, OSError) else str(error)


def _decode(data: bytes, name: str) -> str:
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        better = "save it as UTF-8"
        raise refuse_at(
            f"{name}:{line}", "file-not-utf8", f"byte {error.start} is not UTF-8", better
        ) from error


def _join(source: str, parts: list[Parts], notes: tuple[Finding, ...]) -> Policy:
    """The union of the files; where one value is needed, the stricter one."""
    holds = [part.hold_s for part in parts if part.hold_s is not None]
    policy = Policy(
        source=source,
        rules=tuple(rule for part in parts for rule in part.rules),
        rubric=tuple(entry for part in parts for entry in part.rubric),
        internal=tuple(entry for part in parts for entry in part.internal),
        unknown=_join_unknown(parts),
        unknown_origin=next(
            (part.unknown_origin for part in parts if part.unknown == _join_unknown(parts)), ""
        ),
        hold_s=min(holds, default=DEFAULT_HOLD_S),
        catalogue=tuple(entry for part in parts for entry in part.catalogue),
        exec=_join_exec([part.exec for part in parts if part.exec is not None]),
        files=_join_files([part.files for part in parts]),
        limits=_join_limits([part.limits for part in parts]),
        digest="",
        notes=notes,
    )
    return replace(policy, digest=digest_policy(policy))


def _join_unknown(parts: list[Parts]) -> Literal["deny", "ask"]:
    said = {part.unknown for part in parts}
    return "ask" if "ask" in said and "deny" not in said else "deny"


def _join_exec(policies: list[ExecPolicy]) -> ExecPolicy | None:
    """The union, save that a list from anywhere narrows `mode: any` from elsewhere.

    What `mode: any` means for native code goes with it; what it says of sockets stays.
    """
    if not policies:
        return None
    listed = [policy for policy in policies if policy.mode == "listed"]
    if not listed:
        return _open_sockets(policies[0], policies)
    origins: dict[str, str] = {}
    for policy in listed:
        for entry, origin in zip(policy.allow, policy.origins, strict=True):
            # What a file names counts as the operator's, also if a preset names it too.
            if entry not in origins or origins[entry].startswith(PRESET_ORIGIN) > origin.startswith(
                PRESET_ORIGIN
            ):
                origins[entry] = origin
    jit = next((policy for policy in listed if policy.code == "jit"), None)
    joined = ExecPolicy(
        allow=tuple(origins),
        libraries=_union(policy.libraries for policy in listed),
        code="closed" if jit is None else "jit",
        origin=listed[0].origin,
        origins=tuple(origins.values()),
        code_origin="" if jit is None else jit.code_origin,
    )
    return _open_sockets(joined, policies)


def _open_sockets(joined: ExecPolicy, policies: list[ExecPolicy]) -> ExecPolicy:
    opening = next((policy for policy in policies if policy.unix_sockets), None)
    if opening is None:
        return joined
    return replace(joined, unix_sockets=True, unix_sockets_origin=opening.unix_sockets_origin)


def _join_files(files: list[FilesPolicy]) -> FilesPolicy:
    return FilesPolicy(
        read=_union(part.read for part in files),
        write=_union(part.write for part in files),
        hide=_union(part.hide for part in files),
        origin=next((part.origin for part in files if part.origin), ""),
    )


def _union(groups: object) -> tuple[str, ...]:
    return tuple(dict.fromkeys(item for group in groups for item in group))  # type: ignore[attr-defined]


def _join_limits(limits: list[Limits]) -> Limits:
    def smallest(name: str) -> Any:
        said = (getattr(part, name) for part in limits)
        return min((value for value in said if value is not None), default=None)

    # The origin is for refusals, and memory is the limit that a run may have to refuse.
    origins = [part.origin for part in sorted(limits, key=lambda part: part.memory_bytes is None)]
    return Limits(
        memory_bytes=smallest("memory_bytes"),
        processes=smallest("processes"),
        open_files=smallest("open_files"),
        file_size_bytes=smallest("file_size_bytes"),
        time_s=smallest("time_s"),
        connections=smallest("connections"),
        upload_bytes=smallest("upload_bytes"),
        origin=next(filter(None, origins), ""),
    )
