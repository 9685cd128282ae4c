"""The YAML tree of one file to the parts of a policy. Pure; files are `policy.load`'s.

Each kind of value in `policy.keys` has one reader here. A reader that cannot take a value
raises `Rejected`; the fault is noted with its line and reading goes on.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from enum import Enum
from ipaddress import ip_interface, ip_network
from typing import Any

from msgspec import Struct

from stockade.net.address import IPNetwork, classify_network, judge_address
from stockade.policy.host_pattern import parse_closing_pattern, parse_exact_name, parse_host_pattern
from stockade.policy.keys import LEVELS, SECTIONS, Key, Section
from stockade.policy.match import parse_path_pattern
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
from stockade.policy.quantities import parse_count, parse_duration, parse_rate, parse_size
from stockade.policy.yaml_tree import Mapping, Node, Scalar, Sequence
from stockade.vocabulary import Control, Identity, Phase, PlaceClass, Protocol, Risk, Verdict

RULE_PROTOCOLS = (Protocol.TLS, Protocol.HTTP, Protocol.SSH, Protocol.TCP)
USUAL_PORTS = {Protocol.TLS: 443, Protocol.HTTP: 80}
USUAL_PROTOCOLS = {port: protocol for protocol, port in USUAL_PORTS.items()}
OPERATIONS = ("query", "mutation", "subscription")

_NULLS = ("", "~", "null", "Null", "NULL")
# What YAML 1.1 or 1.2 readers take for something other than a text.
_NOT_TEXT = re.compile(
    r"y|n|yes|no|on|off|true|false|[-+]?[0-9][0-9_]*(\.[0-9]*)?(e[-+]?[0-9]+)?|0[xob][0-9a-f_]+|"
    r"[0-9]{4}-[0-9]{2}-[0-9]{2}|[0-9]+(:[0-5]?[0-9])+",
    re.IGNORECASE | re.ASCII,
)
_TOKEN = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]{1,64}", re.ASCII)  # RFC 9110 5.6.2
_METHOD = re.compile(r"[A-Z][A-Z-]{0,31}", re.ASCII)
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,127}", re.ASCII)
_TOOL = re.compile(r"[A-Za-z0-9_.:/-]{1,128}", re.ASCII)
_INCLUDE = re.compile(r"[A-Za-z0-9_.][A-Za-z0-9_./ -]{0,254}", re.ASCII)
_MAX_TEXT = 500


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
                better = "write version: 1" if key.kind == "version" else key.doc
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
            value = _SCALARS[kind](node.value)
        except Rejected as rejected:
            self.reject(node, rejected.code, rejected.message, rejected.better)
            return None
        self._note_translation(kind, node, value)
        return (value, self.origin(node)) if kind == "include" else value

    def _note_translation(self, kind: str, node: Scalar, value: Any) -> None:
        if kind in _NUMERIC:
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
        if mode == "any" and ("allow" in values or "libraries" in values):
            self.reject(
                node, "exec-conflict", "`mode: any` permits every program", "keep the list, or `mode: any`"
            )
        return ExecPolicy(
            mode=mode,
            allow=values.get("allow", ()),
            libraries=values.get("libraries", ()),
            origin=self.origin(node),
        )

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
            connections=values.get("connections"),
            upload_bytes=values.get("upload"),
        )

    def _complete(self, section: str, node: Node) -> dict[str, Any] | None:
        """The values of a mapping without any fault, else None."""
        before = len(self.problems)
        values = self.read_mapping(SECTIONS[section], node)
        return values if len(self.problems) == before else None


def plan_services(
    level: str, ports: tuple[int, ...], protocol: Protocol | None
) -> list[tuple[tuple[int, ...], Protocol | None]]:
    """Ports with what is spoken there: one group for each protocol.

    Raises:
        Rejected: nobody can tell the port or the protocol.
    """
    if level == "deny":
        return [(ports, protocol)]
    if protocol is None and not ports:
        return [((443,), Protocol.TLS)]
    if protocol is None:
        return _usual_services(ports)
    if level == "proxy" and protocol in (Protocol.SSH, Protocol.TCP):
        raise Rejected(
            "proxy-without-requests",
            f"{protocol} carries no requests that a proxy rule could read",
            "write `allow:`",
        )
    if ports:
        return [(ports, protocol)]
    if protocol not in USUAL_PORTS:
        usual = 22 if protocol is Protocol.SSH else "N"
        raise Rejected("ports-missing", f"`protocol: {protocol}` needs its ports", f"write ports: [{usual}]")
    return [((USUAL_PORTS[protocol],), protocol)]


def _usual_services(ports: tuple[int, ...]) -> list[tuple[tuple[int, ...], Protocol | None]]:
    odd = [port for port in ports if port not in USUAL_PROTOCOLS]
    if odd:
        raise Rejected(
            "protocol-missing",
            f"nobody can tell what is spoken on port {odd[0]}",
            "write protocol: http, tls, ssh or tcp",
        )
    return [((port,), USUAL_PROTOCOLS[port]) for port in ports]


def explain_unknown_key(section: Section, name: str) -> tuple[str, str]:
    """The message and the remedy for a key that a section does not have."""
    message = (
        f"{shown(name)} is no key of {section.title.lower() if section.name == 'policy' else section.title}"
    )
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


# readers of single values


def _word(what: str, words: type[Enum] | tuple[str, ...] | tuple[Protocol, ...]) -> Callable[[str], Any]:
    by_text = {str(getattr(word, "value", word)): word for word in words}

    def parse_word(text: str) -> Any:
        if text in by_text:
            return by_text[text]
        better = f"the nearest is `{nearest(text, list(by_text))}`; there are {', '.join(by_text)}"
        raise Rejected("unknown-word", f"{shown(text)} is no {what}", better)

    return parse_word


def _pattern(code: str, what: str, expression: re.Pattern[str], better: str) -> Callable[[str], str]:
    def parse_text(text: str) -> str:
        if not expression.fullmatch(text):
            raise Rejected(code, f"{shown(text)} is not {what}", better)
        return text

    return parse_text


def _parse_version(text: str) -> int:
    if text != "1":
        raise Rejected("version-unknown", f"version {shown(text)} is not known", "write version: 1")
    return 1


def _parse_port(text: str) -> int:
    if not re.fullmatch(r"[1-9][0-9]{0,4}", text, re.ASCII) or int(text) > 65535:
        stripped = text.lstrip("0")
        better = (
            f"write {stripped}"
            if stripped != text and stripped.isdigit()
            else "write a number from 1 to 65535"
        )
        raise Rejected("port-unclear", f"{shown(text)} is not a port", better)
    return int(text)


def _parse_method(text: str) -> str:
    if not _METHOD.fullmatch(text):
        upper = text.upper()
        better = f"write {upper}" if _METHOD.fullmatch(upper) else "leave `methods` out for every method"
        raise Rejected("method-unclear", f"{shown(text)} is not a method in capital letters", better)
    return text


def _parse_network(text: str) -> IPNetwork:
    try:
        network = ip_network(text, strict=False)
    except ValueError:
        raise Rejected(
            "network-unclear", f"{shown(text)} is not a network", "write it as 10.20.0.0/24"
        ) from None
    if ip_interface(text).ip != network.network_address:
        exact = f"{text.partition('/')[0]}/{network.max_prefixlen}"
        better = f"write {network}, or {exact} for one address"
        raise Rejected("network-unclear", f"{shown(text)} has bits set outside the mask", better)
    _refuse_fixed(network)
    return network


def _refuse_fixed(network: IPNetwork) -> None:
    kind = classify_network(network)
    if kind.value in ("private", "shared", "loopback"):
        return
    if kind.value == "public":
        raise Rejected(
            "network-public",
            f"{network} is not a private network; public addresses need no entry here",
            "leave the entry out; name a private network for private answers",
        )
    row = judge_address(network.network_address).row
    raise Rejected(
        "network-never",
        f"{network} is always denied: {row.network} ({row.note}); no entry can open it",
        "leave the entry out",
    )


def _parse_count(text: str) -> int:
    count = parse_count(text)
    if count == 0:
        raise Rejected("not-a-number", "0 would permit none", "write 1 or more")
    return count


def _parse_text(text: str) -> str:
    joined = " ".join(text.split())
    if not joined.isprintable() or len(joined) > _MAX_TEXT:
        raise Rejected(
            "text-unclear", f"the text has control characters or more than {_MAX_TEXT} letters", "shorten it"
        )
    return joined


def _parse_program(text: str) -> str:
    has_dots = ".." in text.split("/")
    if not text.isprintable() or has_dots or ("/" in text and not text.startswith("/")) or text.endswith("/"):
        raise Rejected(
            "program-unclear",
            f"{shown(text)} is not a program name or an absolute path",
            "write git or /usr/bin/git",
        )
    if " " in text:
        raise Rejected(
            "program-unclear",
            f"{shown(text)} has a space in it; arguments are not judged",
            f"write {text.split()[0]}",
        )
    return text


def _parse_folder(text: str) -> str:
    if not text.isprintable() or len(text) > 4096 or ".." in text.split("/"):
        raise Rejected("folder-unclear", f"{shown(text)} is not a path without ..", "write it without ..")
    if text.startswith("~") and text != "~" and not text.startswith("~/"):
        raise Rejected(
            "folder-unclear", f"{shown(text)} names another user's home", "write the absolute path"
        )
    return text


_HOST_KINDS = ("host-pattern", "closing-pattern", "rubric-host", "exact-host")
_NUMERIC = ("version", "port", "count", "size", "duration", "rate", "text")

_SCALARS: dict[str, Callable[[str], Any]] = {
    "version": _parse_version,
    "include": _pattern("include-unknown", "a preset or a file", _INCLUDE, "write python-docs or team.yaml"),
    "unknown": _word("answer for unknown places", ("deny", "ask")),
    "duration": parse_duration,
    "host-pattern": parse_host_pattern,
    "closing-pattern": parse_closing_pattern,
    "rubric-host": lambda text: parse_closing_pattern(text, takes_addresses=False),
    "exact-host": parse_exact_name,
    "class": _word("class", PlaceClass),
    "text": _parse_text,
    "port": _parse_port,
    "protocol": _word("protocol", RULE_PROTOCOLS),
    "method": _parse_method,
    "path": parse_path_pattern,
    "phase": _word("phase", Phase),
    "identity": _word("identity", Identity),
    "size": parse_size,
    "rate": parse_rate,
    "count": _parse_count,
    "risk": _word("risk", Risk),
    "control": _word("control", Control),
    "header": lambda text: _pattern("text-unclear", "a header name", _TOKEN, "write x-api-key")(text).lower(),
    "variable": _pattern("text-unclear", "a variable's name", _VARIABLE, "write PROVIDER_KEY"),
    "tool": _pattern("text-unclear", "a tool's name", _TOOL, "write web_search"),
    "operation": _word("operation", OPERATIONS),
    "network": _parse_network,
    "exec-mode": _word("mode", ("listed", "any")),
    "program": _parse_program,
    "folder": _parse_folder,
}

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
