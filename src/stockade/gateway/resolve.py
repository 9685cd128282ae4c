"""Looking up permitted names: once, for the whole gateway, and never for a name that was not permitted.

Order of sources: what the operator gave with ``--resolve``, the host's ``/etc/hosts``, the
cache, and then the resolvers of the host's ``/etc/resolv.conf``. A question that really
leaves the machine is recorded before it is sent. Answers of both families come back as
one list, since every answer is judged. Search lists are not used: the name that was
judged is the name that is asked for.

The DNS library is imported by the first look-up, in its thread: a run that looks
nothing up does not pay for it.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Mapping
from functools import partial
from ipaddress import ip_address
from pathlib import Path
from typing import Any

from msgspec import Struct

from stockade.net.address import IPAddress
from stockade.net.host import Host
from stockade.reactor import Reactor

# A record is believed for as long as it says, within these bounds (seconds): the floor keeps a TTL of 0
# from asking anew for every connection of a burst, the ceiling lets a moved service be found again.
TTL_FLOOR_S = 1.0
TTL_CEILING_S = 300.0
FAILURE_TTL_S = 1.0
CACHE_NAMES = 4096
LOOKUP_TIMEOUT_S = 8.0
THREADS = 16
# Names of one zone are often answered by one server; if it is silent, it holds up at most so many threads.
THREADS_FOR_ZONE = 4
HOSTS_FILE = Path("/etc/hosts")

Answered = Callable[[tuple[IPAddress, ...], "str | None"], None]
Proceed = Callable[[], None]


class Answer(Struct, frozen=True):
    addresses: tuple[IPAddress, ...]
    error: str | None
    expires: float


class Resolver:
    """All look-ups of one gateway.

    Args:
        static: Names that the operator resolved by hand, lower case.
    """

    def __init__(
        self,
        reactor: Reactor,
        static: Mapping[str, tuple[IPAddress, ...]],
        hosts_file: Path = HOSTS_FILE,
    ) -> None:
        self._reactor = reactor
        self._static = static
        self._hosts_file = hosts_file
        self._cache: dict[str, Answer] = {}
        self._waiting: dict[str, list[Answered]] = {}
        self._queue: deque[str] = deque()
        self._queued = threading.Semaphore(0)
        self._asking: dict[str, int] = {}
        self._held_back: dict[str, deque[str]] = {}
        self._threads: list[threading.Thread] = []

    def resolve(self, host: Host, before_question: Callable[[Host, Proceed], None], done: Answered) -> None:
        """Call `done(addresses, error)`, at once when the answer is known.

        Args:
            host: A permitted name.
            before_question: Called with a continuation when a question has to leave the
                machine; it calls the continuation once the question is on record.
            done: Called with all answers, or with none and a short error word.
        """
        known = self._known(host.name)
        if known is not None:
            done(known.addresses, known.error)
            return
        if host.name in self._waiting:
            self._waiting[host.name].append(done)
            return
        self._waiting[host.name] = [done]
        before_question(host, lambda: self._ask(host.name))

    def _known(self, name: str) -> Answer | None:
        static = self._static.get(name)
        if static is not None:
            return Answer(static, None, 0.0)
        cached = self._cache.get(name)
        if cached is not None and cached.expires > self._reactor.now():
            return cached
        listed = addresses_in_hosts_file(self._hosts_file, name)
        return Answer(listed, None, 0.0) if listed else None

    def _ask(self, name: str) -> None:
        """Hand the name to a thread, or keep it until its zone may have one more."""
        zone = zone_of(name)
        if self._asking.get(zone, 0) >= THREADS_FOR_ZONE:
            self._held_back.setdefault(zone, deque()).append(name)
            return
        self._asking[zone] = self._asking.get(zone, 0) + 1
        if len(self._threads) < min(THREADS, len(self._waiting)):
            thread = threading.Thread(target=self._serve, name="stockade-resolve", daemon=True)
            self._threads.append(thread)
            thread.start()
        self._queue.append(name)
        self._queued.release()

    def _serve(self) -> None:
        """A thread's life: take a name, ask, hand the answer to the loop."""
        while True:
            self._queued.acquire()
            name = self._queue.popleft()
            answer = ask_upstream(name)
            self._reactor.call_threadsafe(partial(self._answered, name, *answer))

    def _give_back(self, zone: str) -> None:
        """A thread of this zone is free: the next name of the zone, if one waits, may use it."""
        self._asking[zone] -= 1
        if not self._asking[zone]:
            del self._asking[zone]
        waiting = self._held_back.get(zone)
        if waiting:
            name = waiting.popleft()
            if not waiting:
                del self._held_back[zone]
            self._ask(name)

    def _answered(self, name: str, addresses: tuple[IPAddress, ...], error: str | None, ttl_s: float) -> None:
        self._give_back(zone_of(name))
        if len(self._cache) >= CACHE_NAMES:
            self._cache.clear()
        lifetime_s = min(max(ttl_s, TTL_FLOOR_S), TTL_CEILING_S)
        self._cache[name] = Answer(addresses, error, self._reactor.now() + lifetime_s)
        for done in self._waiting.pop(name, []):
            done(addresses, error)


def zone_of(name: str) -> str:
    """The last two labels: near enough to "names that share a server" for sharing threads fairly."""
    return ".".join(name.rsplit(".", 2)[-2:])


def addresses_in_hosts_file(path: Path, name: str) -> tuple[IPAddress, ...]:
    """What the host's own table says of a name; nothing if it cannot be read."""
    try:
        text = path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ()
    found: list[IPAddress] = []
    for line in text.splitlines():
        words = line.partition("#")[0].split()
        if len(words) > 1 and name in (word.lower() for word in words[1:]):
            try:
                found.append(ip_address(words[0]))
            except ValueError:
                continue  # a line that is not ours to mend
    return tuple(found)


def ask_upstream(name: str) -> tuple[tuple[IPAddress, ...], str | None, float]:
    """Ask the host's resolvers for both families. Blocking; runs in a thread of its own.

    Returns:
        Addresses (IPv4 first), a short error word when there are none, and for how many
        seconds that holds.
    """
    import dns.exception
    import dns.resolver

    try:
        resolver = dns.resolver.Resolver()
    except dns.exception.DNSException:
        return (), "no-resolver-configured", FAILURE_TTL_S
    resolver.lifetime = LOOKUP_TIMEOUT_S
    # A name server's answers are cached here, judged, and bounded; the library's own cache stays off.
    resolver.cache = None
    addresses: list[IPAddress] = []
    error: str | None = None
    ttl_s = TTL_CEILING_S
    for record_type in ("A", "AAAA"):
        try:
            answer: Any = resolver.resolve(f"{name}.", record_type, search=False)
        except dns.resolver.NXDOMAIN:
            return tuple(addresses), "no-such-name", FAILURE_TTL_S
        except dns.resolver.NoAnswer:
            continue
        except dns.exception.Timeout:
            error = "resolver-timed-out"
            break
        except (dns.exception.DNSException, OSError):
            error = "resolver-failed"
            break
        addresses.extend(ip_address(record.address) for record in answer)
        ttl_s = min(ttl_s, float(answer.rrset.ttl))
    if error is not None:
        # Half an answer is none: the family that is missing might hold the address that must be refused.
        return (), error, FAILURE_TTL_S
    return tuple(addresses), None if addresses else "no-address", ttl_s
