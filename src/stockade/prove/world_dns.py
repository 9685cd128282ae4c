"""The range's scripted name server: answers as told, and remembers every question.

A zone is plain data, so that a test can say over the control socket what a name
answers: fixed records, a script that changes with each question (rebinding),
errors, truncation, delay, silence. The defaults below are the cast of the range.
"""

from __future__ import annotations

import socket
import struct
import threading
import time
from collections import Counter
from typing import Any

import dns.exception
import dns.flags
import dns.message
import dns.name
import dns.rcode
import dns.rdatatype
import dns.rrset

from stockade.prove.world_log import FIRST_BYTES

Entry = dict[str, Any]
"""One name: `a`, `aaaa`, `txt` (lists), `cname`, `ttl`, `rcode`, `delay_s`, `drop`, `truncate` (UDP only),
`sequence` (a list of entries: the n-th question of one type gets the n-th, over and over)."""

PUBLIC = "93.184.216.34"
EVIL = "93.184.216.66"
PUBLIC6 = "2606:2800:220:1::34"
METADATA = "169.254.169.254"
NO_QUESTION = "none"
"""The type that is noted of a message which holds no question."""


def cast() -> dict[str, Entry]:
    """Who is who in the range: friends first, then the names that lie."""
    friends = {
        name: {"a": [PUBLIC]} for name in ("allowed.test", "app.test", "www.allowed.test", "api.allowed.test")
    }
    places = (
        "docs.test",
        "shop.test",
        "mirror.test",
        "hub.test",
        "rubric.test",
        "paste.test",
        "git.test",
        "provider.test",
        "cdn.test",
        "registry.test",
        "neighbor.test",
    )
    numbered = {name: {"a": [f"93.184.216.{40 + index}"]} for index, name in enumerate(places)}
    liars: dict[str, Entry] = {
        "evil.test": {"a": [EVIL]},
        "*.evil.test": {"a": [EVIL]},
        "rebind.test": {"a": [METADATA]},
        "priv.test": {"a": ["10.20.0.5"]},
        "loop.test": {"a": ["127.0.0.1"]},
        "loop6.test": {"aaaa": ["::1"]},
        "map.test": {"aaaa": [f"::ffff:{METADATA}"]},
        "nat64.test": {"aaaa": ["64:ff9b::a9fe:a9fe"]},
        "ula.test": {"aaaa": ["fd00:ec2::254"]},
        "zero.test": {"a": ["0.0.0.0"]},
        "cgn.test": {"a": ["100.64.0.1"]},
        "azure.test": {"a": ["168.63.129.16"]},
        "host.test": {"a": ["10.9.0.2"]},
        "flip.test": {"ttl": 0, "sequence": [{"a": [PUBLIC]}, {"a": [METADATA]}]},
        "mixed.test": {"a": [PUBLIC, "10.20.0.5"]},
        "mixedmeta.test": {"a": [PUBLIC, METADATA]},
        "mixed6.test": {"a": [PUBLIC], "aaaa": [f"::ffff:{METADATA}"]},
        "dual.test": {"a": [PUBLIC], "aaaa": [PUBLIC6]},
        "six.test": {"aaaa": [PUBLIC6]},
        "alias.test": {"cname": "allowed.test"},
        "aliasevil.test": {"cname": "evil.test"},
        "aliaspriv.test": {"cname": "priv.test"},
        "chain.test": {"cname": "chain2.test"},
        "chain2.test": {"cname": "chain3.test"},
        "chain3.test": {"cname": "allowed.test"},
        "loopchain.test": {"cname": "loopchain2.test"},
        "loopchain2.test": {"cname": "loopchain.test"},
        "many.test": {"a": [f"93.184.217.{n}" for n in range(1, 201)]},
        "truncated.test": {"a": [PUBLIC], "truncate": True},
        "servfail.test": {"rcode": "SERVFAIL"},
        "empty.test": {},
        "slow.test": {"a": [PUBLIC], "delay_s": 2.0},
        "hole.test": {"drop": True},
    }
    return {**friends, **numbered, **liars}


class Zone:
    """The names of the range, what they answer, and how often each was asked."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.reset()

    def reset(self) -> None:
        """Back to the cast, all counts at zero."""
        self._entries = cast()
        self._asked: Counter[tuple[str, str]] = Counter()
        self.questions: list[dict[str, Any]] = []

    def set(self, entries: dict[str, Entry | None]) -> None:
        """Replace names; `None` takes a name out of the zone."""
        with self._lock:
            for name, entry in entries.items():
                self._entries.pop(name.lower(), None)
                if entry is not None:
                    self._entries[name.lower()] = entry

    def note_question(
        self, name: str, kind: str, transport: str, server: str, wire: bytes, beside_bytes: int
    ) -> None:
        """Remember a question; `text` is the message as it came, for what hides beside the question.

        Args:
            beside_bytes: What the message holds besides a header, one question and an empty EDNS record.
        """
        noted = {"time": time.time(), "name": name, "type": kind, "transport": transport, "server": server}
        noted["beside_bytes"] = beside_bytes
        with self._lock:
            self.questions.append({**noted, "text": wire[:FIRST_BYTES].decode("latin-1")})

    def find(self, name: str, kind: str) -> Entry | None:
        """The entry in force for this question; a script moves on by one step per question of a type."""
        with self._lock:
            entry = self._lookup(name)
            if entry is None or "sequence" not in entry:
                return entry
            step = self._asked[name, kind]
            self._asked[name, kind] += 1
            script: list[Entry] = entry["sequence"]
            return {**entry, **script[step % len(script)]}

    def _lookup(self, name: str) -> Entry | None:
        if name in self._entries:
            return self._entries[name]
        labels = name.split(".")
        for cut in range(1, len(labels)):
            entry = self._entries.get("*." + ".".join(labels[cut:]))
            if entry is not None:
                return entry
        return None


def answer(zone: Zone, wire: bytes, transport: str, server: str) -> bytes | None:
    """One question in, one answer out, or `None` for silence (malformed, or told to drop)."""
    try:
        query = dns.message.from_wire(wire, ignore_trailing=True)
    except (dns.exception.DNSException, ValueError):
        query = None
    if query is None or not query.question:
        # It arrived all the same: port 53 of the resolver carries other bytes as well as questions.
        zone.note_question("", NO_QUESTION, transport, server, wire, len(wire))
        return None
    asked = query.question[0]
    name = asked.name.to_text(omit_final_dot=True).lower()
    kind = dns.rdatatype.to_text(asked.rdtype)
    zone.note_question(name, kind, transport, server, wire, _count_beside(wire, query))
    response = dns.message.make_response(query, recursion_available=True)
    if not _fill(zone, response, name, kind, transport):
        return None
    return _to_wire(response, 65535 if transport == "tcp" else max(query.payload, 512))


def _count_beside(wire: bytes, query: dns.message.Message) -> int:
    """Bytes besides a header (12), the first question and an empty OPT record (11, RFC 6891)."""
    question = len(query.question[0].name.to_wire() or b"") + 4
    return len(wire) - 12 - question - (11 if query.edns >= 0 else 0)


def _to_wire(response: dns.message.Message, limit_bytes: int) -> bytes:
    try:
        return response.to_wire(max_size=limit_bytes)
    except dns.exception.TooBig:
        response.answer.clear()
        response.flags |= dns.flags.TC
        return response.to_wire()


def _fill(zone: Zone, response: dns.message.Message, name: str, kind: str, transport: str) -> bool:
    """Follow aliases through the zone, at most ten; False means that nobody answers."""
    for _ in range(10):
        entry = zone.find(name, kind)
        if entry is None:
            response.set_rcode(dns.rcode.NXDOMAIN)
            return True
        if entry.get("drop"):
            return False
        time.sleep(float(entry.get("delay_s", 0)))
        if entry.get("rcode"):
            response.set_rcode(dns.rcode.from_text(entry["rcode"]))
        if entry.get("truncate") and transport == "udp":
            response.flags |= dns.flags.TC
            return True
        ttl = int(entry.get("ttl", 60))
        if "cname" not in entry or kind == "CNAME":
            _add(response, name, ttl, kind, entry.get(kind.lower(), []))
            return True
        _add(response, name, ttl, "CNAME", [entry["cname"] + "."])
        name = entry["cname"]
    return True


def _add(response: dns.message.Message, name: str, ttl: int, kind: str, values: list[str] | str) -> None:
    texts = [values] if isinstance(values, str) else values
    if texts:
        response.answer.append(dns.rrset.from_text(dns.name.from_text(name), ttl, "IN", kind, *texts))


def serve_tcp(zone: Zone, connection: socket.socket, server: str) -> None:
    """DNS over TCP: two bytes of length, then the message; many on one connection."""
    stream = connection.makefile("rb")
    while len(prefix := stream.read(2)) == 2:
        wire = stream.read(struct.unpack("!H", prefix)[0])  # less than that, if no more comes
        response = answer(zone, wire, "tcp", server)
        if response is None:
            return
        connection.sendall(struct.pack("!H", len(response)) + response)
    if prefix:
        zone.note_question("", NO_QUESTION, "tcp", server, prefix, len(prefix))
