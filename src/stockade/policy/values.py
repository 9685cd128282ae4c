"""Single values of a policy file: text in, value out, or `Rejected` with a spelling that would work."""

from __future__ import annotations

import re
from collections.abc import Callable
from enum import Enum
from ipaddress import ip_interface, ip_network
from typing import Any

from stockade.net.address import AddressClass, IPNetwork, classify_network, judge_address
from stockade.policy.host_pattern import parse_closing_pattern, parse_exact_name, parse_host_pattern
from stockade.policy.match import parse_path_pattern
from stockade.policy.problems import Rejected, nearest, shown
from stockade.policy.programs import parse_program
from stockade.policy.quantities import parse_count, parse_duration, parse_rate, parse_size
from stockade.vocabulary import Control, Identity, Phase, PlaceClass, Protocol, Risk

RULE_PROTOCOLS = (Protocol.TLS, Protocol.HTTP, Protocol.SSH, Protocol.TCP)
OPERATIONS = ("query", "mutation", "subscription")

_TOKEN = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]{1,64}", re.ASCII)  # RFC 9110 5.6.2
_METHOD = re.compile(r"[A-Z][A-Z-]{0,31}", re.ASCII)
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,127}", re.ASCII)
_TOOL = re.compile(r"[A-Za-z0-9_.:/-]{1,128}", re.ASCII)
_INCLUDE = re.compile(r"[A-Za-z0-9_.][A-Za-z0-9_./ -]{0,254}", re.ASCII)
_MAX_TEXT = 500


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
    if kind in (AddressClass.PRIVATE, AddressClass.SHARED, AddressClass.LOOPBACK):
        return
    if kind is AddressClass.PUBLIC:
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


def _parse_boolean(text: str) -> bool:
    if text not in ("true", "false"):
        raise Rejected("unknown-word", f"{shown(text)} is neither true nor false", "write true or false")
    return text == "true"


def _parse_folder(text: str) -> str:
    if not text.isprintable() or len(text) > 4096 or ".." in text.split("/"):
        raise Rejected("folder-unclear", f"{shown(text)} is not a path without ..", "write it without ..")
    if text.startswith("~") and text != "~" and not text.startswith("~/"):
        raise Rejected(
            "folder-unclear", f"{shown(text)} names another user's home", "write the absolute path"
        )
    return text


VALUE_READERS: dict[str, Callable[[str], Any]] = {
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
    "exec-code": _word("level of code", ("closed", "jit")),
    "boolean": _parse_boolean,
    "program": parse_program,
    "folder": _parse_folder,
}
