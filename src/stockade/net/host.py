"""Host text, parsed once into a `Host`, or refused.

The classic hole is a check and a connect that read one text differently: a NUL byte at
which the resolver stops, an ``@`` before the real host, ``0xA9FEA9FE``. So a text is
taken only if every reader takes it the same way; anything else becomes a `HostRefusal`,
which is a denial, together with what a browser would have made of it, so that the
denial can be named for what it was aimed at.

Taken: letters, digits, hyphens and underscores in labels of 1 to 63 characters, up to
253 in all, any case, one final dot; A-labels that IDNA 2008 permits; IPv4 as four
decimal numbers without leading zeros; IPv6 of RFC 4291. Underscores are taken although
RFC 952 has none: DNS and browsers carry them, real hosts use them, and nobody reads
them in two ways. Unicode is refused on the wire, where a correct client has already
turned it into A-labels, and converted in policies (`parse_policy_host`).
"""

from __future__ import annotations

import re
from ipaddress import IPv4Address, IPv6Address

from msgspec import Struct

from stockade.net.address import IPAddress, carried_addresses

MAX_NAME = 253  # RFC 1035 2.3.4: 255 octets on the wire, without the root label's and first length octets
MAX_RAW = 255  # what of a refused text is kept for the record
MAX_USER_PART = (
    24  # and of a user part, if that is longer; escaped (at most 10 characters each) it leaves room
)

_LABEL = re.compile(r"[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?", re.ASCII)
_NAME = re.compile(rf"(?:{_LABEL.pattern})(?:\.{_LABEL.pattern})*", re.ASCII)
_QUAD = re.compile(r"(?:(?:25[0-5]|2[0-4]\d|1\d\d|[1-9]?\d)(?:\.(?!$)|$)){4}", re.ASCII)
_NUMERIC = re.compile(r"\d+|0x[0-9a-f]*", re.ASCII)
# WHATWG URL 3.1, forbidden domain code points
_FORBIDDEN = re.compile(r"[\x00-\x20\x7f\"#%/:<>?@\[\\\]^`{|}]")
_PERCENT = re.compile(rb"%([0-9A-Fa-f]{2})")
_ASCII_LOWER = str.maketrans("ABCDEFGHIJKLMNOPQRSTUVWXYZ", "abcdefghijklmnopqrstuvwxyz")


class Host(Struct, frozen=True, eq=False):
    """A destination that every reader reads alike; made by the parsers of this module only.

    Two hosts are equal if their names are: how they were spelled does not count.

    Attributes:
        name: Canonical name in lower case without a final dot, or canonical text of an address.
        address: Set if it is an address literal.
        was_normalized: True if it was spelled in another way: upper case, a final dot, another
            text of an IPv6 address, or an IPv6 address that carries an IPv4 one.
    """

    name: str
    address: IPAddress | None = None
    was_normalized: bool = False

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Host) and self.name == other.name

    # msgspec's own != compares identity and would not ask the method above.
    def __ne__(self, other: object) -> bool:
        return not self == other

    def __hash__(self) -> int:
        return hash(self.name)

    def __str__(self) -> str:
        return self.name


class HostRefusal(Struct, frozen=True):
    """A text that two readers could read differently.

    Attributes:
        raw: The text, escaped to printable ASCII, at most 255 characters.
        problem: One plain phrase.
        guess: What a browser's URL parser (or, behind a NUL, a C resolver) would make of
            it: an address, else a name, else None. For naming the denial, never for a dial.
    """

    raw: str
    problem: str
    guess: IPAddress | str | None = None


def parse_host(text: bytes | str, *, is_bracketed: bool = True) -> Host | HostRefusal:
    """Parse host text from the wire; never raises.

    Args:
        text: The host alone, without a port.
        is_bracketed: True where IPv6 is written in brackets (URLs, Host, CONNECT); False
            where it is bare (SOCKS, DNS, command lines), which accepts brackets as well.
    """
    if not text.isascii():
        return refuse_host(text, "characters outside ASCII")
    if isinstance(text, bytes):
        text = text.decode("ascii")
    if text.startswith("["):
        if not text.endswith("]"):
            return refuse_host(text, "brackets that do not stand around the whole host")
        return _parse_ipv6(text, text[1:-1])
    if ":" in text and not is_bracketed:
        return _parse_ipv6(text, text)
    return _parse_name(text)


def parse_policy_host(text: str) -> Host | HostRefusal:
    """Parse a host that the operator wrote: as `parse_host`, and Unicode becomes A-labels.

    Both sides are then compared as A-labels, so an entry in Unicode matches what clients
    send. The conversion is IDNA 2008 without any mapping: a Kelvin sign or a dotted capital
    I is an error here, never quietly another letter.
    """
    if text.isascii():
        return parse_host(text, is_bracketed=False)
    import idna  # its tables are large; only Unicode entries need them

    lower = text.translate(_ASCII_LOWER).removesuffix(".")
    try:
        return parse_host(idna.encode(lower))
    except UnicodeError as problem:  # idna.IDNAError is one
        return refuse_host(text, f"not valid in IDNA 2008 ({problem})")


def refuse_host(text: bytes | str, problem: str) -> HostRefusal:
    """Refuse a host text, or an authority around one, and work out what a browser would make of it."""
    shown = _show_host(text)
    if isinstance(text, bytes):
        text = text.decode("utf-8", "replace")
    return HostRefusal(shown, problem, _guess_host(text))


def _show_host(text: bytes | str) -> str:
    """The text escaped and cut, but never so that a user part remains without its ``@``.

    What stands before an ``@`` can be a password; without the ``@`` nobody would know to redact it.
    """
    at = text.rfind(b"@") if isinstance(text, bytes) else text.rfind("@")
    shown = escape_text(text)
    is_whole = len(shown) < MAX_RAW
    return shown if at < 0 or is_whole else escape_text(text[max(0, at - MAX_USER_PART) :])


def escape_text(text: bytes | str, limit: int = MAX_RAW) -> str:
    """Printable ASCII for records: everything else as ``\\xNN`` or ``\\uNNNN``, cut at `limit`."""
    if isinstance(text, bytes):
        text = text[:limit].decode("latin-1")
    escaped = "".join(
        char if " " <= char <= "~" and char != "\\" else char.encode("unicode_escape").decode()
        for char in text[:limit]
    )
    return escaped if len(escaped) <= limit else escaped[: limit - 3] + "..."


def _parse_ipv6(text: str, inner: str) -> Host | HostRefusal:
    if "%" in inner:
        return refuse_host(text, "an address with a zone")
    try:
        address = IPv6Address(inner)
    except ValueError:
        return refuse_host(text, "not an IPv6 address")
    name = str(address)
    return Host(name, address, was_normalized=inner != name or bool(carried_addresses(address)))


def _parse_name(text: str) -> Host | HostRefusal:
    name = text.lower().removesuffix(".")
    if len(name) > MAX_NAME or not _NAME.fullmatch(name):
        return refuse_host(text, _explain_name(text, name))
    if _NUMERIC.fullmatch(name, name.rfind(".") + 1):
        if not _QUAD.fullmatch(name):
            return refuse_host(text, "an IPv4 address in an unusual spelling")
        return Host(name, IPv4Address(name), was_normalized=name != text)
    if "xn--" in name and not _has_valid_a_labels(name):
        return refuse_host(text, "a punycode label that IDNA 2008 does not permit")
    return Host(name, None, was_normalized=name != text)


def _has_valid_a_labels(name: str) -> bool:
    """True if each ``xn--`` label is exactly the A-label of a valid U-label (RFC 5891 5.4)."""
    import idna  # its tables are large; only internationalized names need them

    try:
        return all(
            idna.alabel(idna.ulabel(label)) == label.encode()
            for label in name.split(".")
            if label.startswith("xn--")
        )
    except UnicodeError:
        return False


_PROBLEM_CHARACTERS = (
    ("\0", "a NUL byte"),
    ("%", "a percent escape"),
    ("\\", "a backslash"),
    ("@", "a user name before the host"),
    (":", "a colon that is not of a port"),
    ("[", "brackets around something that is no IPv6 address"),
)


def _explain_name(text: str, name: str) -> str:
    for character, problem in _PROBLEM_CHARACTERS:
        if character in text:
            return problem
    if not name:
        return "no host"
    if not re.fullmatch(r"[a-z0-9_.-]*", name):
        return "characters that no host name has"
    if len(name) > MAX_NAME:
        return f"longer than {MAX_NAME} characters"
    labels = name.split(".")
    if "" in labels:
        return "an empty label"
    if any(len(label) > 63 for label in labels):
        return "a label longer than 63 characters"
    return "a label that begins or ends with a hyphen"


def _guess_host(text: str) -> IPAddress | str | None:
    """What the WHATWG URL parser would make of an authority or host; see `HostRefusal.guess`."""
    text = text[:4096]  # hostile text is unbounded, and nothing longer is a host
    authority = re.split(r"[/\\?#]", re.sub(r"[\t\r\n]", "", text), maxsplit=1)[0]
    host = _strip_port(authority.rpartition("@")[2])
    if host.startswith("["):
        return _guess_ipv6(host[1:].partition("]")[0])
    decoded = _PERCENT.sub(lambda match: bytes([int(match[1], 16)]), host.encode("utf-8", "replace"))
    name = _map_unicode(decoded.decode("utf-8", "replace")).partition("\0")[0]
    if not name or _FORBIDDEN.search(name):
        return _guess_ipv6(authority)
    if _NUMERIC.fullmatch(name.removesuffix(".").rpartition(".")[2]):
        return _guess_ipv4(name)
    return name.strip(".")[:MAX_NAME] or None


def _strip_port(authority: str) -> str:
    head, colon, port = authority.rpartition(":")
    has_port = colon and (not port or port.isdigit()) and (":" not in head or head.endswith("]"))
    return head if has_port else authority


def _map_unicode(text: str) -> str:
    """The mapping step of UTS 46: full-width, circled and zero-width characters become plain ones."""
    if text.isascii():
        return text.lower()
    import idna

    try:
        mapped = idna.uts46_remap(text, std3_rules=False, transitional=False)
        return ".".join(_to_a_label(label) for label in mapped.split("."))
    except UnicodeError:
        return ""


def _to_a_label(label: str) -> str:
    return label if label.isascii() else "xn--" + label.encode("punycode").decode()


def _guess_ipv6(text: str) -> IPv6Address | None:
    try:
        return IPv6Address(text.strip("[]").partition("%")[0])
    except ValueError:
        return None


def _guess_ipv4(name: str) -> IPv4Address | None:
    """The IPv4 parser of WHATWG URL 3.5: decimal, octal and hex numbers, the last one fills the rest."""
    parts = name.removesuffix(".").split(".")
    numbers = [_parse_ipv4_number(part) for part in parts]
    if len(parts) > 4 or None in numbers:
        return None
    *heads, last = [number for number in numbers if number is not None]
    if any(head > 255 for head in heads) or last >= 256 ** (5 - len(parts)):
        return None
    return IPv4Address(sum(head << (24 - 8 * place) for place, head in enumerate(heads)) + last)


def _parse_ipv4_number(text: str) -> int | None:
    digits, base = text, 10
    if text[:2] in ("0x", "0X"):
        digits, base = text[2:], 16
    elif len(text) > 1 and text.startswith("0"):
        digits, base = text[1:], 8
    if digits == "" and base == 16:
        return 0
    # 2^32 has 11 octal digits; longer ones with leading zeros are cut before int() works on them
    digits = digits.lstrip("0") or digits[:1]
    if len(digits) > 16 or not re.fullmatch(r"[0-9a-fA-F]+", digits):
        return None
    try:
        return int(digits, base)
    except ValueError:
        return None
