"""The YAML tree of one file to the parts of a policy. Pure; files are `policy.load`'s.

Each kind of value in `policy.keys` has one reader here. A reader that cannot take a value
raises `Rejected`; the fault is noted with its line and reading goes on.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from msgspec import Struct

from stockade.policy.keys import LEVELS, SECTIONS, Key, Section
from stockade.policy.model import (
    BodyRule,
    CatalogueEntry,
    Credential,
    ExecPolicy,
    FilesPolicy,
    Finding,
    HostPattern,
    InternalEntry,
    Limits,
    RubricEntry,
    Rule,
)
from stockade.policy.problems import Rejected, nearest, shown
from stockade.policy.services import plan_services
from stockade.policy.values import VALUE_READERS
from stockade.policy.yaml_tree import Mapping, Node, Scalar, Sequence
from stockade.vocabulary import Identity, Phase, Verdict

_NULLS = ("", "~", "null", "Null", "NULL")
# What YAML 1.1 or 1.2 readers take for something other than a text.
_NOT_TEXT = re.compile(
    r"y|n|yes|no|on|off|true|false|[-+]?[0-9][0-9_]*(\.[0-9]*)?(e[-+]?[0-9]+)?|0[xob][0-9a-f_]+|"
    r"[0-9]{4}-[0-9]{2}-[0-9]{2}|[0-9]+(:[0-5]?[0-9])+",
    re.IGNORECASE | re.ASCII,
)
_HOST_KINDS = ("host-pattern", "closing-pattern", "rubric-host", "exact-host")
# What other YAML readers may take for a number or a truth value is meant as one here, or is prose.
_NOT_A_NAME = ("version", "port", "count", "size", "duration", "rate", "text", "boolean")


class Parts(Struct, kw_only=True):
    """What one file says, before its includes are joined to it."""

    include: tuple[tuple[str, str], ...] = ()
    rules: tuple[Rule, ...] = ()
    rubric: tuple[RubricEntry, ...] = ()
    internal: tuple[InternalEntry, ...] = ()
    catalogue: tuple[CatalogueEntry, ...] = ()
    unknown: str | None = None
    unknown_origin: str = ""
    hold_s: float | None = None
    exec: ExecPolicy | None = None
    files: FilesPolicy = FilesPolicy()
    limits: Limits = Limits()


class Reader:
    """Reads one file, collecting what is wrong and what had to be translated.

    Attributes:
        problems: Load errors so far.
        notes: Translations that lint shows.
    """

    def __init__(self, source: str) -> None:
        self.source = source
        self.problems: list[Finding] = []
        self.notes: list[Finding] = []

    def origin(self, node: Node) -> str:
        return f"{self.source}:{node.line}"

    def reject(self, node: Node, code: str, message: str, better: str | None = None) -> None:
        self.problems.append(
            Finding(code=code, severity="error", origin=self.origin(node), message=message, better=better)
        )

    def note(self, node: Node, code: str, message: str, better: str | None = None) -> None:
        self.notes.append(
            Finding(code=code, severity="note", origin=self.origin(node), message=message, better=better)
        )

    def read_file(self, root: Node | None) -> Parts:
        """Read the whole document; look at `problems` before using what comes back."""
        if root is None or (isinstance(root, Scalar) and root.is_plain and root.value in _NULLS):
            self.reject(Scalar("", True, 1), "empty-file", "the file says nothing", "write version: 1")
            return Parts()
        values = self.read_mapping(SECTIONS["policy"], root) or {}
        rules = tuple(rule for group in values.get("rules", ()) for rule in group)
        return Parts(
            include=values.get("include", ()),
            rules=rules,
            rubric=values.get("rubric", ()),
            internal=values.get("internal", ()),
            catalogue=values.get("catalogue", ()),
            unknown=values.get("unknown"),
            unknown_origin=self._origin_of(root, "unknown"),
            hold_s=values.get("hold"),
            exec=values.get("exec"),
            files=values.get("files", FilesPolicy()),
            limits=values.get("limits", Limits()),
        )

    def _origin_of(self, root: Node, name: str) -> str:
        entries = root.entries if isinstance(root, Mapping) else ()
        return next((self.origin(key) for key, _ in entries if key.value == name), "")

    # mappings

    def read_mapping(self, section: Section, node: Node) -> dict[str, Any] | None:
        """Read the keys of a section; None if the node is no mapping.

        A key whose value was refused is missing from the result, and noted.
        """
        if not isinstance(node, Mapping):
            self.reject(
                node, "not-a-mapping", f"{section.title} has keys and values", _mapping_hint(section, node)
            )
            return None
        keys = {key.name: key for key in section.keys}
        values: dict[str, Any] = {}
        seen: set[str] = set()
        for name, value in node.entries:
            if name.value not in keys:
                self.reject(name, "unknown-key", *explain_unknown_key(section, name.value))
            elif name.value in seen:
                self.reject(name, "duplicate-key", f"`{name.value}` stands twice", "keep one of them")
            else:
                self._read_key(keys[name.value], value, values)
            seen.add(name.value)
        self._require_keys(section, node, seen)
        return values

    def _read_key(self, key: Key, node: Node, values: dict[str, Any]) -> None:
        before = len(self.problems)
        value = self.read_value(key, node)
        if len(self.problems) == before:
            values[key.name] = value

    def _require_keys(self, section: Section, node: Node, seen: set[str]) -> None:
        for key in section.keys:
            if key.is_required and key.name not in seen:
                code = "version-missing" if key.kind == "version" else "missing-key"
                better = f"write {key.name}: {_EXAMPLES[key.name]}" if key.name in _EXAMPLES else key.doc
                self.reject(node, code, f"`{key.name}` is missing", better)

    # values

    def read_value(self, key: Key, node: Node) -> Any:
        """Read one value by the kind of its key; a fault is noted and gives None."""
        kind = key.kind
        if not kind.endswith("[]"):
            return self._read_one(key.name, kind, node)
        if not isinstance(node, Sequence):
            is_text = isinstance(node, Scalar) and not (node.is_plain and node.value in _NULLS)
            better = f"write {key.name}: [{node.value}]" if is_text and isinstance(node, Scalar) else None
            code = "not-a-list" if is_text or not isinstance(node, Scalar) else "empty-value"
            self.reject(
                node,
                code,
                f"`{key.name}` is a list",
                better or f"write {key.name}: [...] or leave the key out",
            )
            return None
        if not node.items and not key.may_be_empty:
            self.reject(
                node, "empty-list", f"`{key.name}` is empty", "leave the key out, or write what it is for"
            )
        return self._read_items(key.name, kind[:-2], node)

    def _read_items(self, name: str, kind: str, node: Sequence) -> tuple[Any, ...]:
        found: list[Any] = []
        seen: set[Any] = set()
        for item in node.items:
            value = self._read_one(name, kind, item)
            if value is None:
                continue
            if kind in SECTIONS or value not in seen:
                found.append(value)
            else:
                self.note(
                    item,
                    "listed-twice",
                    f"{shown(_text_of(item))} stands twice in `{name}`",
                    "keep one of them",
                )
            if kind not in SECTIONS:
                seen.add(value)
        return tuple(sorted(found)) if kind in ("port", "method") else tuple(found)

    def _read_one(self, name: str, kind: str, node: Node) -> Any:
        if kind in _STRUCTURES:
            return _STRUCTURES[kind](self, node)
        if not isinstance(node, Scalar):
            self.reject(node, "not-one-value", f"`{name}` takes one value here", _one_value_hint(name))
            return None
        if node.is_plain and node.value in _NULLS:
            better = 'write "~" in quotes' if node.value == "~" else "write a value, or leave the key out"
            self.reject(node, "empty-value", f"`{name}` has no value", better)
            return None
        try:
            value = VALUE_READERS[kind](node.value)
        except Rejected as rejected:
            self.reject(node, rejected.code, rejected.message, rejected.better)
            return None
        self._note_translation(kind, node, value)
        return (value, self.origin(node)) if kind == "include" else value

    def _note_translation(self, kind: str, node: Scalar, value: Any) -> None:
        if kind in _NOT_A_NAME:
            return
        if node.is_plain and _NOT_TEXT.fullmatch(node.value):
            self.note(
                node, "word-unquoted", f"{node.value} is read as text here", f'write "{node.value}" in quotes'
            )
        name = value.text if isinstance(value, HostPattern) else value
        if kind not in _HOST_KINDS or name == node.value:
            return
        if not node.value.isascii():
            self.note(node, "name-converted", f"{shown(node.value)} is {name} on the wire", f"write {name}")
        elif name != node.value.lower():
            self.note(node, "name-respelled", f"{shown(node.value)} is read as {name}", f"write {name}")

    # structures

    def read_rule(self, node: Node) -> tuple[Rule, ...] | None:
        before = len(self.problems)
        values = self.read_mapping(SECTIONS["rule"], node)
        if values is None or not isinstance(node, Mapping):
            return None
        level = self._read_level(node)
        if level is None:
            return None
        self._refuse_misplaced_keys(node, level)
        if len(self.problems) > before:
            return None
        return self._build_rules(node, level, values)

    def _read_level(self, node: Mapping) -> str | None:
        levels = [name.value for name, _ in node.entries if name.value in LEVELS]
        if len(set(levels)) == 1:
            return levels[0]
        if levels:
            both = " and ".join(dict.fromkeys(levels))
            self.reject(node, "verdict-twice", f"the rule says {both}", "write a rule for each")
        else:
            self.reject(
                node, "verdict-missing", "the rule says none of allow, proxy and deny", "write - allow: HOST"
            )
        return None

    def _refuse_misplaced_keys(self, node: Mapping, level: str) -> None:
        keys = {key.name: key for key in SECTIONS["rule"].keys}
        for name, _ in node.entries:
            key = keys.get(name.value)
            if key is None or level in key.levels or name.value in LEVELS:
                continue
            if level == "allow":
                message = f"`{name.value}` cannot be held: an allow rule is a closed tunnel"
                self.reject(name, "condition-in-allow", message, "write `proxy:` instead of `allow:`")
            else:
                message = f"`{name.value}` has no meaning in a denial"
                self.reject(
                    name,
                    "condition-in-deny",
                    message,
                    f"leave it out, or write a `proxy:` rule with {name.value}",
                )

    def _build_rules(self, node: Mapping, level: str, values: dict[str, Any]) -> tuple[Rule, ...] | None:
        try:
            services = plan_services(level, values.get("ports", ()), values.get("protocol"))
        except Rejected as rejected:
            self.reject(node, rejected.code, rejected.message, rejected.better)
            return None
        everyone = (Identity.AGENT, Identity.GRADER) if level == "deny" else (Identity.AGENT,)
        return tuple(
            Rule(
                level=Verdict[level.upper()],
                host=values[level],
                ports=ports,
                protocol=protocol,
                place=values.get("class"),
                why=values.get("why"),
                methods=values.get("methods", ()),
                paths=values.get("paths", ()),
                phases=_in_order(Phase, values.get("phases", tuple(Phase))),
                identities=_in_order(Identity, values.get("identities", everyone)),
                credential=values.get("credential"),
                max_body_bytes=values.get("max-body"),
                max_query_bytes=values.get("max-query"),
                rate_per_s=values.get("rate"),
                body=values.get("body"),
                risk=values.get("risk"),
                control=values.get("control"),
                origin=self.origin(node),
            )
            for ports, protocol in services
        )

    def read_credential(self, node: Node) -> Credential | None:
        values = self._complete("credential", node)
        return Credential(values["header"], values["env"]) if values else None

    def read_body(self, node: Node) -> BodyRule | None:
        values = self._complete("body", node)
        if values == {}:
            self.reject(node, "empty-value", "`body` says nothing", "leave the key out")
        if not values:
            return None
        return BodyRule(forbid_tools=values.get("forbid-tools", ()), graphql=values.get("graphql", ()))

    def read_rubric(self, node: Node) -> RubricEntry | None:
        if isinstance(node, Scalar):
            host = self._read_one("rubric", "rubric-host", node)
            return None if host is None else RubricEntry(host=host, origin=self.origin(node))
        values = self._complete("rubric", node)
        if not values:
            return None
        return RubricEntry(
            host=values["host"],
            paths=values.get("paths", ()),
            why=values.get("why"),
            origin=self.origin(node),
        )

    def read_internal(self, node: Node) -> InternalEntry | None:
        values = self._complete("internal", node)
        if not values:
            return None
        return InternalEntry(
            host=values["host"], networks=values["networks"], ports=values["ports"], origin=self.origin(node)
        )

    def read_catalogue(self, node: Node) -> CatalogueEntry | None:
        values = self._complete("catalogue", node)
        if not values:
            return None
        return CatalogueEntry(
            place=values["class"],
            hosts=values["hosts"],
            risk=values.get("risk"),
            control=values.get("control"),
            origin=self.origin(node),
        )

    def read_exec(self, node: Node) -> ExecPolicy | None:
        values = self._complete("exec", node)
        if values is None:
            return None
        mode = values.get("mode", "listed")
        code = values.get("code", "closed" if mode == "listed" else "jit")
        unix_sockets = values.get("unix-sockets", False)
        if mode == "any" and ("allow" in values or "libraries" in values):
            self.reject(
                node, "exec-conflict", "`mode: any` permits every program", "keep the list, or `mode: any`"
            )
        if mode == "any" and code == "closed":
            message = "`mode: any` permits every program, and with it new native code"
            self.reject(node, "exec-conflict", message, "leave `code` out, or list the programs")
        origins = self._origins_of_items(node, "allow")
        return ExecPolicy(
            mode=mode,
            allow=values.get("allow", ()),
            libraries=values.get("libraries", ()),
            code=code,
            unix_sockets=unix_sockets,
            origin=self.origin(node),
            origins=tuple(origins[entry] for entry in values.get("allow", ())),
            code_origin=self._origin_of(node, "code") if code == "jit" else "",
            unix_sockets_origin=self._origin_of(node, "unix-sockets") if unix_sockets else "",
        )

    def _origins_of_items(self, node: Node, name: str) -> dict[str, str]:
        """The line of each value of a list of programs that was read without a fault."""
        origins: dict[str, str] = {}
        for key, value in node.entries if isinstance(node, Mapping) else ():
            if key.value == name and isinstance(value, Sequence):
                for item in value.items:
                    origins.setdefault(VALUE_READERS["program"](_text_of(item)), self.origin(item))
        return origins

    def read_files(self, node: Node) -> FilesPolicy | None:
        values = self._complete("files", node)
        return None if values is None else FilesPolicy(**values, origin=self.origin(node))

    def read_limits(self, node: Node) -> Limits | None:
        values = self._complete("limits", node)
        if values is None:
            return None
        return Limits(
            memory_bytes=values.get("memory"),
            processes=values.get("processes"),
            open_files=values.get("open-files"),
            file_size_bytes=values.get("file-size"),
            time_s=values.get("time"),
            connections=values.get("connections"),
            upload_bytes=values.get("upload"),
            origin=self.origin(node),
        )

    def _complete(self, section: str, node: Node) -> dict[str, Any] | None:
        """The values of a mapping without any fault, else None."""
        before = len(self.problems)
        values = self.read_mapping(SECTIONS[section], node)
        return values if len(self.problems) == before else None


def explain_unknown_key(section: Section, name: str) -> tuple[str, str]:
    """The message and the remedy for a key that a section does not have."""
    message = f"{shown(name)} is no key of {section.title[:1].lower()}{section.title[1:]}"
    homes = [other for other in SECTIONS.values() if name in other.names()]
    if homes:
        better = f"`{name}` belongs to {homes[0].title.lower()}"
        return message, f"{better}: write rules: - {name}: HOST" if name in LEVELS else better
    if section.name == "policy":
        for level, words in _HABITS.items():
            if any(word in name.lower() for word in words):
                return message, f"the nearest valid key is `rules`: write rules: - {level}: HOST"
    valid = ", ".join(section.names())
    return message, f"the nearest valid key is `{nearest(name, section.names())}`; valid are {valid}"


# How the value of a key that must be there may look.
_EXAMPLES = {"version": "1", "host": "NAME", "networks": "[10.20.0.0/24]", "ports": "[443]"}

# Keys of other tools that mean a list of hosts.
_HABITS = {
    "deny": ("deny", "denied", "block", "forbid"),
    "allow": ("allow", "permit", "whitelist", "network", "domain", "host", "egress"),
}


def _mapping_hint(section: Section, node: Node) -> str | None:
    if isinstance(node, Scalar) and section.name == "rule":
        level, colon, host = node.value.partition(":")
        if colon and level in LEVELS:
            return f"a space follows the colon: - {level}: {host}"
        return f"write - allow: {node.value}" if node.value else "write - allow: HOST"
    if isinstance(node, Scalar) and ":" in node.value:
        return "a space follows the colon"
    return f"its keys are {', '.join(section.names())}"


def _one_value_hint(name: str) -> str:
    return "write a rule for each host" if name in LEVELS else "write one value"


def _text_of(node: Node) -> str:
    return node.value if isinstance(node, Scalar) else "…"


def _in_order(words: Any, chosen: tuple[Any, ...]) -> tuple[Any, ...]:
    return tuple(word for word in words if word in chosen)


_STRUCTURES: dict[str, Callable[[Reader, Node], Any]] = {
    "rule": Reader.read_rule,
    "rubric": Reader.read_rubric,
    "internal": Reader.read_internal,
    "catalogue": Reader.read_catalogue,
    "credential": Reader.read_credential,
    "body": Reader.read_body,
    "exec": Reader.read_exec,
    "files": Reader.read_files,
    "limits": Reader.read_limits,
}
