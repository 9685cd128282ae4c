"""What is asked of the engine, and what it answers. Pure values.

An `Attempt` holds what was parsed from the worker's bytes. A `Decision` says what
may happen and why. Only `decision.engine` makes a `Permit`, and a permit holds
addresses that were judged: names cannot reach a socket call.
"""

from __future__ import annotations

from msgspec import Struct

from stockade.net.address import IPAddress
from stockade.net.host import Host, HostRefusal
from stockade.policy.model import BodyRule, Credential
from stockade.policy.programs import PROGRAM_FOLDERS
from stockade.vocabulary import Control, Entry, Identity, Phase, PlaceClass, Protocol, Reason, Risk, Verdict


class Attempt(Struct, frozen=True, kw_only=True):
    """One thing that a worker tried.

    Attributes:
        entry: The door by which it came.
        protocol: What is spoken (DNS, EXEC and SOCKET for attempts of those kinds).
        host: The destination as written, parsed or refused; None for exec and socket.
        port: TCP or UDP port, 0 where there is none.
        method: HTTP method in upper case; None where it cannot be seen.
        path: HTTP path without the query; None where it cannot be seen.
        query_bytes: Length of the query string.
        has_body: True if a body follows, False if not, None if it cannot be seen.
        body_bytes: Declared length of the body, None if not declared (chunked).
        upgrade: The protocol that a request wants to switch to, else None.
        sni: Name in the TLS hello, or its refusal, when a hello was read.
        authority: Host header or :authority, when a request head was read.
        credential_headers: Lower-case names of headers in the request that carry credentials.
        query_type: DNS question type, for example ``AAAA``.
        argv: The command and its arguments as they were given, for exec; they may say anything, the
            first word too.
        program: The path by which a command was called, as the kernel was given it; for a
            refused system call the file that made it.
        file: Real path of the file that would run, for exec, where it is known.
        is_script_of: That file is a script of this interpreter (`Script.text`), else None.
        call: A refused system call as text, for example ``memfd_create``, for exec and socket.
        socket: A path, ``@abstract``, ``icmp:ADDR`` or ``vsock:CID:PORT``, for socket.
        redirected: This host was named by the 3xx answer of a permitted request.
    """

    entry: Entry
    protocol: Protocol
    host: Host | HostRefusal | None = None
    port: int = 0
    method: str | None = None
    path: str | None = None
    query_bytes: int = 0
    has_body: bool | None = None
    body_bytes: int | None = None
    upgrade: str | None = None
    sni: Host | HostRefusal | None = None
    authority: Host | HostRefusal | None = None
    credential_headers: tuple[str, ...] = ()
    query_type: str | None = None
    argv: tuple[str, ...] = ()
    program: str | None = None
    file: str | None = None
    is_script_of: str | None = None
    call: str | None = None
    socket: str | None = None
    redirected: bool = False

    @property
    def program_name(self) -> str:
        """How a command was called, by its path; what was typed where nothing was started.

        The first argument says it shorter, and is believed where the path says the same: by its
        last part, in a folder that nobody inside can write.
        """
        typed = self.argv[0] if self.argv else ""
        folder, _, name = (self.program or "").rpartition("/")
        if not self.program or (typed == name and folder in PROGRAM_FOLDERS):
            return typed
        return self.program


class UpstreamProxy(Struct, frozen=True):
    """The only way out of some sites: the operator's own proxy, to which the gateway says CONNECT.

    It is exempt from the address table, since the operator named it; a worker cannot
    name it as a destination.

    Attributes:
        text: How records name it, without credentials.
        authorization: Value of the ``Proxy-Authorization`` field, None without credentials.
        exempt: Names that are reached directly all the same (those of ``--resolve``).
    """

    address: IPAddress
    port: int
    text: str
    authorization: str | None = None
    exempt: frozenset[str] = frozenset()


class Permit(Struct, frozen=True):
    """Leave to dial: every address in it was judged for this attempt.

    Attributes:
        name: The permitted name, for records; never for a look-up of ours.
        addresses: In the order of the answer; never empty.
        port: The permitted port.
        through: The proxy that is dialled instead, and asked for name and port. Address
            checks end there, so `addresses` holds the proxy's.
    """

    name: str
    addresses: tuple[IPAddress, ...]
    port: int
    through: UpstreamProxy | None = None


class Decision(Struct, frozen=True, kw_only=True):
    """The engine's answer to one attempt; every field goes into the ledger.

    Attributes:
        rule: ``policy.yaml:12``, or the name of a built-in such as ``builtin:metadata``.
        why: One plain sentence; for a denial it says how to allow it, if that can be.
        address: The address that decided or will be dialled; None if judged by name alone.
        permit: Leave to dial, present when an answer was judged and nothing denies it.
        limit_bytes: Largest body that the deciding rules permit, None without a limit.
        rate_per_s: Requests a second before the gateway slows down, None without a limit.
        credential: What the gateway puts into the request, None for nothing.
        body: What may stand in the request's body; the flow reads it before it records.
    """

    verdict: Verdict = Verdict.DENY
    risk: Risk
    control: Control
    reason: Reason
    rule: str
    place: PlaceClass
    phase: Phase
    identity: Identity
    why: str
    address: IPAddress | None = None
    permit: Permit | None = None
    limit_bytes: int | None = None
    rate_per_s: float | None = None
    credential: Credential | None = None
    body: BodyRule | None = None
