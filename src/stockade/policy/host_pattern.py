"""The host of a rule: an exact name, ``*.name``, or ``*`` in a denial.

People paste what they have: a URL, a host with its port, a path, an address, a pattern
of another tool. Each such form would be a rule that can never match, or one that matches
something else than meant, so each is refused with the spelling that would work.
"""

from __future__ import annotations

import re
from ipaddress import ip_network

from stockade.net.address import RANGES, AddressClass, IPAddress, IPNetwork, is_openable, judge_address
from stockade.net.host import Host, HostRefusal, parse_host, parse_policy_host
from stockade.policy.fixed import METADATA_NAMES
from stockade.policy.model import HostPattern
from stockade.policy.problems import Rejected, shown
from stockade.policy.suffixes import classify_suffix

_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://(.*)", re.DOTALL)
_PORT = re.compile(r"([^:]+):([0-9]+)")
# IDNA 2008 permits no capital letters. Those of ASCII mean their small ones to everybody; others
# (a Kelvin sign) may become another letter, so they stay and are refused.
_ASCII_LOWER = {ord(letter): letter.lower() for letter in "ABCDEFGHIJKLMNOPQRSTUVWXYZ"}
_OTHER_DOTS = "。．｡"  # IDNA libraries split at these; nobody who writes them means it


def parse_host_pattern(text: str) -> HostPattern:
    """Parse what may be opened: no address, no metadata name, no public suffix.

    Raises:
        Rejected: with the spelling that would work, where there is one.
    """
    pattern = parse_closing_pattern(text, takes_addresses=False)
    if not pattern.name:
        raise Rejected(
            "wildcard-too-broad",
            '"*" covers every host',
            "name the hosts; everything else is denied without a rule",
        )
    if not pattern.is_wildcard and pattern.name in METADATA_NAMES:
        owner = METADATA_NAMES[pattern.name]
        raise Rejected(
            "metadata-name", f"{pattern.name} is a metadata service ({owner}), which no rule can open"
        )
    if pattern.is_wildcard and classify_suffix(pattern.name) == "public":
        raise Rejected(
            "wildcard-too-broad",
            f'"{pattern.text}" covers every name that anybody registers under .{pattern.name}',
            f"write *.example.{pattern.name}",
        )
    return pattern


def parse_closing_pattern(text: str, *, takes_addresses: bool = True) -> HostPattern:
    """Parse what may be closed or described: wide wildcards and ``*`` are welcome here."""
    _refuse_pasted(text, takes_addresses)
    if text == "*":
        return HostPattern("", True)
    is_wildcard = text.startswith("*.")
    name = text.removeprefix("*.")
    _refuse_misplaced(name, text)
    host = _parse_name(name, text)
    if host.address is not None and (is_wildcard or not takes_addresses):
        raise _refuse_address(host.address)
    return HostPattern(host.name, is_wildcard)


def parse_exact_name(text: str) -> str:
    """Parse the name of an ``internal:`` entry."""
    pattern = parse_closing_pattern(text, takes_addresses=False)
    if pattern.is_wildcard:
        raise Rejected(
            "wildcard-not-here",
            f"{shown(text)} is a wildcard; a private address is opened for one name",
            "write the name",
        )
    if pattern.name in METADATA_NAMES:
        raise Rejected("metadata-name", f"{pattern.name} is a metadata service, which no entry can open")
    return pattern.name


def _parse_name(name: str, text: str) -> Host:
    if any(dot in name for dot in _OTHER_DOTS):
        raise Rejected(
            "host-malformed", f"{shown(text)} has a dot that is not a full stop", "write it with plain dots"
        )
    host = parse_policy_host(name.translate(_ASCII_LOWER))
    if isinstance(host, Host):
        return host
    raise Rejected(
        "host-malformed",
        f"{shown(text)} is not a host that all readers read alike: {host.problem}",
        _guess(host),
    )


def _guess(refusal: HostRefusal) -> str | None:
    if refusal.guess is None:
        return None
    if isinstance(refusal.guess, str):
        return f"a browser would read it as {refusal.guess}"
    return f"a browser would read it as the address {refusal.guess}, and a rule takes names only"


def _refuse_pasted(text: str, takes_addresses: bool) -> None:
    if not text:
        raise Rejected("empty-value", "no host")
    url = _SCHEME.fullmatch(text)
    if url:
        raise Rejected(
            "host-with-scheme", f"{shown(text)} is a URL; a rule names a host", _explain_url(url[1], url[2])
        )
    if "/" in text:
        _refuse_slash(text, is_closing=takes_addresses)
    if "@" in text:
        raise Rejected(
            "host-with-user", f"{shown(text)} has a user name in it", f"write {text.rpartition('@')[2]}"
        )
    with_port = _PORT.fullmatch(text)
    if with_port:
        raise Rejected(
            "host-with-port",
            f"{shown(text)} has a port in it",
            f"write the host {with_port[1]} and the key {_keys_of_port(int(with_port[2][:6]))}",
        )
    if not takes_addresses:
        literal = parse_host(text, is_bracketed=False)
        if isinstance(literal, Host) and literal.address is not None:
            raise _refuse_address(literal.address)


def _refuse_slash(text: str, *, is_closing: bool) -> None:
    network = _parse_network(text)
    if network is not None:
        raise _refuse_closing_network(network) if is_closing else _refuse_network(network)
    host, _, path = text.partition("/")
    raise Rejected(
        "host-with-path",
        f"{shown(text)} has a path in it",
        f"write `proxy: {host or 'HOST'}` with `paths: [/{path}]`; an allow rule cannot see paths",
    )


def _parse_network(text: str) -> IPNetwork | None:
    try:
        return ip_network(text.replace("[", "").replace("]", ""), strict=False)
    except ValueError:
        return None


def _explain_url(scheme: str, rest: str) -> str:
    authority, slash, path = rest.partition("/")
    host, _, port = authority.rpartition("@")[2].partition(":")
    keys = []
    if port.isdigit():
        keys.append(_ports_key(int(port[:6])))
    if scheme.lower() in ("http", "ws"):
        keys.append("protocol: http")
    if slash and path:
        keys.append(f"paths: [/{path.partition('?')[0]}]")
    written = f"write {host or 'the host alone'}"
    if not keys:
        return written
    seen = "; an allow rule cannot see paths" if slash and path else ""
    return f"{written} with `{'`, `'.join(keys)}`{seen}"


def _ports_key(port: int) -> str:
    return f"ports: [{port}]"


def _keys_of_port(port: int) -> str:
    """The keys that a rule needs for a port: what is spoken on an unusual one must be said."""
    return f"`{_ports_key(port)}`" + ("" if port in (80, 443) else " with `protocol:`")


def _refuse_misplaced(name: str, text: str) -> None:
    if name.startswith("."):
        better = f'write "*{name}" for the names below it, or {name[1:]} for it alone; both take two rules'
        raise Rejected(
            "wildcard-misplaced", f"{shown(text)} begins with a dot, which tools read in two ways", better
        )
    if "*" in name or "?" in name:
        below = name.rpartition("*")[2].lstrip(".-") or "example.com"
        raise Rejected(
            "wildcard-misplaced",
            f"{shown(text)} has a wildcard inside the name",
            f'a wildcard is "*." at the front of a name: "*.{below}"',
        )


def _refuse_address(address: IPAddress) -> Rejected:
    facts = judge_address(address)
    if is_openable(address):
        better = _internal_hint(f"{address}/{address.max_prefixlen}")
        return Rejected(
            "address-in-rule", f"{address} is an address in {facts.row.network} ({facts.row.note})", better
        )
    if facts.address_class is AddressClass.PUBLIC:
        return Rejected(
            "address-in-rule", f"{address} is an address; rules permit names only", "write the name"
        )
    range_shown = _surrounding(address)
    return Rejected(
        "address-in-rule",
        f"{address} is always denied: {range_shown} ({facts.row.note}); no rule can open it",
        "remove the rule",
    )


def _internal_hint(network: str) -> str:
    entry = f"{{host: NAME, networks: [{network}], ports: [PORT]}}"
    return f"write the service's name here, and under `internal:` {entry}"


def _surrounding(address: IPAddress) -> str:
    """The always-denied range around an address: the link-local one, else that of its own row."""
    facts = judge_address(address)
    inner = next((carried for carried in facts.carried if carried in facts.row.network), address)
    around = (row for row in RANGES if inner in row.network and row.address_class is AddressClass.LINK_LOCAL)
    return str(next(around, facts.row).network)


def _refuse_network(network: IPNetwork) -> Rejected:
    facts = judge_address(network.network_address)
    whole = f"{network} is a network in {facts.row.network} ({facts.row.note})"
    if is_openable(network.network_address):
        return Rejected("network-in-rule", whole, _internal_hint(str(network)))
    if facts.address_class is AddressClass.PUBLIC:
        return Rejected(
            "network-in-rule", f"{network} is a network; rules speak of names only", "write the names"
        )
    return Rejected(
        "network-in-rule", f"{whole}, which is always denied; no rule can open it", "remove the rule"
    )


def _refuse_closing_network(network: IPNetwork) -> Rejected:
    return Rejected(
        "network-in-rule",
        f"{network} is a network; rules speak of names and single addresses",
        "private networks are denied without a rule; narrow the `internal:` entry instead",
    )
