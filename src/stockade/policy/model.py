"""What a policy means, once it is parsed: values that nobody needs to check again.

Only `policy.load` makes a `Policy` from a file; the engine, the lint and the run
trust the types. Everything is frozen, every name is canonical (lower case, A-labels,
no final dot), every size is in bytes, and each part knows the line it came from.
"""

from __future__ import annotations

from ipaddress import IPv4Network, IPv6Network
from typing import Literal

from msgspec import Struct

from stockade.vocabulary import Control, Identity, Phase, PlaceClass, Protocol, Risk, Verdict

Network = IPv4Network | IPv6Network

EVERY_PHASE: tuple[Phase, ...] = (Phase.SETUP, Phase.WORK, Phase.SCORING)
DEFAULT_HOLD_S = 60.0
PRESET_ORIGIN = "preset:"  # how the origin of a preset's line begins


class HostPattern(Struct, frozen=True):
    """The names that a rule speaks of: one exact name, or all names below one.

    Attributes:
        name: Canonical name; for ``*.x`` it is ``x``; empty for ``*`` (deny rules only).
        is_wildcard: True for ``*.x`` (any depth below ``x``, never ``x`` itself) and ``*``.
    """

    name: str
    is_wildcard: bool = False

    @property
    def text(self) -> str:
        """As written in a policy: ``x``, ``*.x`` or ``*``."""
        if not self.is_wildcard:
            return self.name
        return f"*.{self.name}" if self.name else "*"

    def matches(self, name: str) -> bool:
        """Tell whether a canonical name is one of these. For an index, see the engine."""
        if not self.is_wildcard:
            return name == self.name
        return not self.name or name.endswith("." + self.name)


class PathPattern(Struct, frozen=True):
    """A path in a rule, for example ``/v1/**``.

    ``*`` stands for any text inside one segment, ``**`` (always a whole segment) for any
    number of segments; ``/a/**`` is everything below ``/a/``, not ``/a``. Matching
    is in `policy.match`, which reads a permission narrowly and a denial generously.
    """

    text: str


class Credential(Struct, frozen=True):
    """What the gateway puts in, so that the worker never holds it.

    Attributes:
        header: Lower-case header name.
        env: Variable of the *gateway's* environment that holds the whole header value.
    """

    header: str
    env: str


class BodyRule(Struct, frozen=True, kw_only=True):
    """What may stand in a body; empty tuples forbid and limit nothing.

    Attributes:
        forbid_tools: Names of server-side tools that a model request may not declare.
        graphql: Permitted operation kinds (``query``, ``mutation``, ``subscription``).
    """

    forbid_tools: tuple[str, ...] = ()
    graphql: tuple[str, ...] = ()


class Rule(Struct, frozen=True, kw_only=True):
    """One entry of ``rules:``.

    An ``allow`` or ``proxy`` rule always has ports and a definite protocol: the loader
    has put in 443/tls for a bare name and has split ``ports: [80, 443]`` into two rules
    with the same origin. In a ``deny`` rule, empty ports mean every port and no protocol
    means every protocol, and without ``identities`` it binds every identity.

    Attributes:
        level: DENY, PROXY or ALLOW; DENY > PROXY > ALLOW when several match.
        ports: Sorted; empty only in a deny rule.
        protocol: TLS, HTTP, SSH or TCP; None only in a deny rule.
        methods: Upper case; empty means every method. Never in an allow rule.
        paths: Empty means every path. Never in an allow rule.
        phases: Where the rule is in force, in order.
        identities: Whom it is for; without the key, the agent (deny: everyone).
        max_body_bytes: Largest request body (proxy only).
        max_query_bytes: Longest query string (proxy only).
        rate_per_s: Faster requests are slowed down, not refused (proxy only).
        risk: What a refusal by this rule is called, where the card lets a rule say it.
        control: What a pass or a refusal by this rule is called.
        why: The author's words, shown in decisions.
        origin: ``policy.yaml:12`` or ``preset:python-docs:4``.
    """

    level: Verdict = Verdict.DENY
    host: HostPattern
    ports: tuple[int, ...]
    protocol: Protocol | None
    place: PlaceClass | None = None
    why: str | None = None
    methods: tuple[str, ...] = ()
    paths: tuple[PathPattern, ...] = ()
    phases: tuple[Phase, ...] = EVERY_PHASE
    identities: tuple[Identity, ...] = (Identity.AGENT,)
    credential: Credential | None = None
    max_body_bytes: int | None = None
    max_query_bytes: int | None = None
    rate_per_s: float | None = None
    body: BodyRule | None = None
    risk: Risk | None = None
    control: Control | None = None
    origin: str

    @property
    def has_conditions(self) -> bool:
        """True if the rule looks inside a request (method, path, account, amount, content)."""
        amounts = (self.max_body_bytes, self.max_query_bytes, self.rate_per_s)
        return bool(
            self.methods
            or self.paths
            or self.credential
            or self.body
            or any(amount is not None for amount in amounts)
        )

    @property
    def needs_inspection(self) -> bool:
        """True if a proxy rule can hold only when the gateway opens TLS."""
        return self.level is Verdict.PROXY and self.protocol is Protocol.TLS and self.has_conditions

    def covers(self, port: int, protocol: Protocol | None = None) -> bool:
        """Tell whether the rule speaks of this port, and of this protocol if one is given."""
        if self.ports and port not in self.ports:
            return False
        return protocol is None or self.protocol is None or protocol is self.protocol


class RubricEntry(Struct, frozen=True, kw_only=True):
    """A host (or part of one) that is closed to the agent while scoring, on every port."""

    host: HostPattern
    paths: tuple[PathPattern, ...] = ()
    why: str | None = None
    origin: str


class InternalEntry(Struct, frozen=True, kw_only=True):
    """The only way to a private or loopback address: exact name, network and port.

    It opens nothing without a rule, and never an always-denied address: a metadata
    address inside one of the networks stays denied.
    """

    host: str
    networks: tuple[Network, ...]
    ports: tuple[int, ...]
    origin: str


class CatalogueEntry(Struct, frozen=True, kw_only=True):
    """Says what places are; opens nothing and closes nothing."""

    place: PlaceClass
    hosts: tuple[HostPattern, ...]
    risk: Risk | None = None
    control: Control | None = None
    origin: str


class ExecPolicy(Struct, frozen=True, kw_only=True):
    """Which programs may run besides the launched command.

    Attributes:
        mode: ``listed`` (only `allow`), or ``any`` (wide open, and recorded as such).
        allow: Names, paths and patterns; `policy.programs` says what each form means.
        libraries: Folders whose shared objects may be loaded, as written.
        code: ``closed`` (a permitted program makes no new native code), or ``jit``; always
            ``jit`` beside ``mode: any``.
        unix_sockets: Unix sockets may be made and connected inside.
        origin: The line of the key.
        origins: The line of each entry of `allow`, in its order; empty if it comes from no file.
        code_origin: The line that opened ``jit``, empty if none did.
        unix_sockets_origin: The line that permitted Unix sockets, empty if none did.
    """

    mode: Literal["listed", "any"] = "listed"
    allow: tuple[str, ...] = ()
    libraries: tuple[str, ...] = ()
    code: Literal["closed", "jit"] = "closed"
    unix_sockets: bool = False
    origin: str = ""
    origins: tuple[str, ...] = ()
    code_origin: str = ""
    unix_sockets_origin: str = ""

    def origin_of(self, entry: str) -> str:
        """The line on which an entry of `allow` stands, else the key's."""
        return dict(zip(self.allow, self.origins, strict=False)).get(entry, self.origin)

    def is_of_preset(self, entry: str) -> bool:
        """True if only presets name an entry: they name programs that a host need not have."""
        return self.origin_of(entry).startswith(PRESET_ORIGIN)


class FilesPolicy(Struct, frozen=True, kw_only=True):
    """Changes to the default view, as written: ``~`` and relative paths are the run's to resolve.

    Relative paths are below the workspace, not below the policy file.
    """

    read: tuple[str, ...] = ()
    write: tuple[str, ...] = ()
    hide: tuple[str, ...] = ()
    origin: str = ""


class Limits(Struct, frozen=True, kw_only=True):
    """Limits that the policy names; None where it names none (the defaults are the run's).

    A limit that is named and cannot be held stops the run.

    Attributes:
        open_files: Of each process.
        file_size_bytes: Of each file that is written.
        time_s: From the start of the command.
    """

    memory_bytes: int | None = None
    processes: int | None = None
    open_files: int | None = None
    file_size_bytes: int | None = None
    time_s: float | None = None
    connections: int | None = None
    upload_bytes: int | None = None
    origin: str = ""


class Finding(Struct, frozen=True, kw_only=True):
    """Something a reader of a policy should know.

    Attributes:
        code: Stable kebab word; `policy.codes` has the table.
        severity: ``error`` (the file does not load), ``warning`` or ``note``.
        origin: ``policy.yaml:12``.
        message: One sentence.
        better: A better spelling or what to do, or None.
    """

    code: str
    severity: Literal["error", "warning", "note"]
    origin: str
    message: str
    better: str | None = None

    @property
    def text(self) -> str:
        """One line: ``policy.yaml:12: wildcard-too-broad: …``."""
        return f"{self.origin}: {self.code}: {self.message}"


def make_finding(
    severity: Literal["warning", "note"], code: str, origin: str, message: str, better: str | None = None
) -> Finding:
    """A warning or a note; errors come out of the loader only."""
    return Finding(code=code, severity=severity, origin=origin, message=message, better=better)


class Policy(Struct, frozen=True, kw_only=True):
    """The effective policy: includes resolved, every part with its origin.

    Attributes:
        source: Name of the file it came from, for messages.
        paths: The files that it was read from, includes among them; no presets.
        rules: The file's own first, then those of its includes; order decides nothing.
        unknown: What happens to a destination that nothing lists.
        unknown_origin: The line that says so; empty where the default holds.
        hold_s: How long an ``ask`` waits before it is denied.
        exec: None if the file has no ``exec:`` key.
        digest: sha256 hex over the canonical effective policy; independent of comments,
            formatting, line numbers and of which file a rule stands in.
        notes: What the loader had to translate (IDNA names, unquoted words), for lint.
    """

    source: str
    paths: tuple[str, ...] = ()
    rules: tuple[Rule, ...] = ()
    rubric: tuple[RubricEntry, ...] = ()
    internal: tuple[InternalEntry, ...] = ()
    unknown: Literal["deny", "ask"] = "deny"
    unknown_origin: str = ""
    hold_s: float = DEFAULT_HOLD_S
    catalogue: tuple[CatalogueEntry, ...] = ()
    exec: ExecPolicy | None = None
    files: FilesPolicy = FilesPolicy()
    limits: Limits = Limits()
    digest: str
    notes: tuple[Finding, ...] = ()


# The digest is written out, not computed: a run without -p should hash nothing to know
# that it denies everything. A test holds it equal to the loader's digest of `version: 1`.
DENY_ALL = Policy(
    source="builtin:deny-all", digest="1437e9b2060a8df7a56aebccb6d645662f647b63446641a0eeb98c538c37989d"
)
