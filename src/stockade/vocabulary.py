"""The closed sets of words that every part of Stockade shares.

Pure: no I/O, no clock. The gateway enforces with these words, the ledger records
them, the proofs test them and the lab teaches them. The zero value of a verdict is
the safe one, so a forgotten assignment denies.
"""

from __future__ import annotations

from enum import Enum, IntEnum


class Verdict(IntEnum):
    """What may happen; comparing two of them compares how much they permit."""

    DENY = 0
    PROXY = 1
    ALLOW = 2

    @property
    def word(self) -> str:
        """The word in records and policies: ``deny``, ``proxy`` or ``allow``."""
        return self.name.lower()

    @property
    def shown(self) -> str:
        """The word in tables for people, where a proxied pass is ``proxy+log``."""
        return "proxy+log" if self is Verdict.PROXY else self.word


class Word(str, Enum):
    """A closed set of strings that print as themselves."""

    def __str__(self) -> str:
        return str(self.value)


class Risk(Word):
    BENIGN = "benign"
    EXFILTRATION = "exfiltration"
    SSRF = "ssrf"
    EVAL_CONTAMINATION = "eval-contamination"
    SUPPLY_CHAIN = "supply-chain"
    METADATA_CREDENTIALS = "metadata-credentials"
    BOUNDARY_TAMPERING = "boundary-tampering"


class PlaceClass(Word):
    """What kind of place a destination is."""

    DOCS = "docs"
    MODEL_PROVIDER = "model-provider"
    MIRROR = "mirror"
    REGISTRY = "registry"
    CODE_HOST = "code-host"
    DATASET_HUB = "dataset-hub"
    RUBRIC = "rubric"
    SEARCH = "search"
    INTERNAL = "internal"
    METADATA = "metadata"
    PASTE = "paste"
    MESSAGING = "messaging"
    OBJECT_STORE = "object-store"
    TELEMETRY = "telemetry"
    RESOLVER = "resolver"
    TUNNEL = "tunnel"
    APPROVED_TEST = "approved-test"
    LOCAL = "local"
    UNKNOWN = "unknown"


class Phase(Word):
    """Where the run stands. Phases go forward only, in this order."""

    SETUP = "setup"
    WORK = "work"
    SCORING = "scoring"


class Identity(Word):
    AGENT = "agent"
    GRADER = "grader"


class Entry(Word):
    """By which door an attempt came."""

    TRANSPARENT = "transparent"
    HTTP_PROXY = "http-proxy"
    SOCKS5 = "socks5"
    DNS = "dns"
    UDP = "udp"
    EXEC = "exec"
    SOCKET = "socket"


class Protocol(Word):
    """What is spoken to a destination; rules are written for one of the first four."""

    TLS = "tls"
    HTTP = "http"
    SSH = "ssh"
    TCP = "tcp"
    UDP = "udp"
    DNS = "dns"
    EXEC = "exec"
    SOCKET = "socket"


class Control(Word):
    """The protection that fits an attempt best."""

    ALLOWLIST_EXACT = "allowlist-exact"
    DEFAULT_DENY = "default-deny"
    OPERATION_SCOPE = "operation-scope"
    LOGGING_PROXY = "logging-proxy"
    CREDENTIAL_BROKER = "credential-broker"
    CANONICALISE_HOST = "canonicalise-host"
    CHECK_RESOLVED_ADDRESS = "check-resolved-address"
    DENY_LINK_LOCAL_METADATA = "deny-link-local-metadata"
    DENY_INTERNAL_RANGES = "deny-internal-ranges"
    RECHECK_REDIRECTS = "recheck-redirects"
    OWN_RESOLVER_ONLY = "own-resolver-only"
    VETTED_MIRROR_PINNED = "vetted-mirror-pinned"
    NO_INSTALL_TIME_CODE = "no-install-time-code"
    PHASE_POLICY = "phase-policy"
    SEPARATE_IDENTITY = "separate-identity"
    SIZE_RATE_QUOTA = "size-rate-quota"
    NAME_CONSISTENCY = "name-consistency"
    SCHEME_AND_PORT_SCOPE = "scheme-and-port-scope"
    NO_CONTROL_SOCKETS = "no-control-sockets"
    NAMESPACE_ISOLATION = "namespace-isolation"
    EXEC_DENY = "exec-deny"
    TELEMETRY_OFF = "telemetry-off"
    HOST_PROVIDED_SERVICE = "host-provided-service"
    BROWSER_HARDENING = "browser-hardening"


class Reason(Word):
    """The stable word for why a decision fell. One table: `REASONS` says each in a sentence."""

    # let through
    RULE_ALLOWS = "rule-allows"
    RULE_PROXIES = "rule-proxies"
    # the list
    NOT_LISTED = "not-listed"
    LISTED_DENY = "listed-deny"
    LOOKALIKE = "lookalike"
    LITERAL_ADDRESS = "literal-address"
    RUBRIC_IN_SCORING = "rubric-in-scoring"
    WRONG_PHASE = "wrong-phase"
    OTHER_IDENTITY = "other-identity"
    WRONG_PORT = "wrong-port"
    WRONG_PROTOCOL = "wrong-protocol"
    # operations
    METHOD_NOT_PERMITTED = "method-not-permitted"
    PATH_NOT_PERMITTED = "path-not-permitted"
    QUERY_TOO_LONG = "query-too-long"
    BODY_TOO_LARGE = "body-too-large"
    UPGRADE_NOT_PERMITTED = "upgrade-not-permitted"
    FOREIGN_CREDENTIAL = "foreign-credential"
    FORBIDDEN_CONTENT = "forbidden-content"
    INSPECTION_NOT_AVAILABLE = "inspection-not-available"
    # addresses
    METADATA_ADDRESS = "metadata-address"
    METADATA_NAME = "metadata-name"
    LINK_LOCAL_ADDRESS = "link-local-address"
    PRIVATE_ADDRESS = "private-address"
    LOOPBACK_ADDRESS = "loopback-address"
    RESERVED_ADDRESS = "reserved-address"
    OWN_ADDRESS = "own-address"
    ADDRESS_NOT_JUDGED = "address-not-judged"
    # spelling and consistency
    MALFORMED_HOST = "malformed-host"
    NAME_MISMATCH = "name-mismatch"
    SNI_MISSING = "sni-missing"
    MALFORMED_TLS = "malformed-tls"
    MALFORMED_REQUEST = "malformed-request"
    MALFORMED_QUESTION = "malformed-question"
    NOT_THE_PROTOCOL = "not-the-protocol"
    # names
    QUERY_TYPE_REFUSED = "query-type-refused"
    TOO_MANY_NAMES = "too-many-names"
    RESOLUTION_FAILED = "resolution-failed"
    # amounts and time
    HEAD_TOO_LARGE = "head-too-large"
    FIRST_BYTE_TIMEOUT = "first-byte-timeout"
    TOO_MANY_CONNECTIONS = "too-many-connections"
    UPLOAD_LIMIT = "upload-limit"
    # other roads
    PROTOCOL_NOT_CARRIED = "protocol-not-carried"
    SOCKET_FAMILY_REFUSED = "socket-family-refused"
    CONTROL_SOCKET = "control-socket"
    PROGRAM_NOT_LISTED = "program-not-listed"
    PROGRAM_LISTED = "program-listed"
    SANDBOX_SWITCHED_OFF = "sandbox-switched-off"
    SYSTEM_CALL_REFUSED = "system-call-refused"
    CODE_IN_MEMORY = "code-in-memory"
    # a person, a change
    HELD = "held"
    HOLD_TIMED_OUT = "hold-timed-out"
    HOLD_REFUSED = "hold-refused"
    POLICY_CHANGED = "policy-changed"


REASONS: dict[Reason, str] = {
    Reason.RULE_ALLOWS: "an allow rule names this destination",
    Reason.RULE_PROXIES: "a proxy rule names this destination and permits this operation",
    Reason.NOT_LISTED: "no rule names this destination",
    Reason.LISTED_DENY: "a deny rule names this destination",
    Reason.LOOKALIKE: "the name imitates a listed one and is not the listed one",
    Reason.LITERAL_ADDRESS: "an address instead of a name; only names can be permitted",
    Reason.RUBRIC_IN_SCORING: "the rubric list is closed to the agent while scoring",
    Reason.WRONG_PHASE: "a rule names this destination, in another phase",
    Reason.OTHER_IDENTITY: "a rule names this destination, for another identity",
    Reason.WRONG_PORT: "a rule names this host, on other ports",
    Reason.WRONG_PROTOCOL: "a rule names this host and port, for another protocol",
    Reason.METHOD_NOT_PERMITTED: "the rules for this host do not permit the method",
    Reason.PATH_NOT_PERMITTED: "the rules for this host do not permit the path",
    Reason.QUERY_TOO_LONG: "the query is longer than the rule permits",
    Reason.BODY_TOO_LARGE: "the body is larger than the rule permits",
    Reason.UPGRADE_NOT_PERMITTED: "the rules for this host do not permit a protocol upgrade",
    Reason.FOREIGN_CREDENTIAL: "the request brings a credential or account that is not the gateway's",
    Reason.FORBIDDEN_CONTENT: "the body asks for something that the rule forbids",
    Reason.INSPECTION_NOT_AVAILABLE: "the rule needs TLS to be opened, which this version cannot do",
    Reason.METADATA_ADDRESS: "a cloud metadata address, which no rule can open",
    Reason.METADATA_NAME: "a name of a cloud metadata service, which no rule can open",
    Reason.LINK_LOCAL_ADDRESS: "a link-local address, which no rule can open",
    Reason.PRIVATE_ADDRESS: "a private address that no `internal:` entry opens",
    Reason.LOOPBACK_ADDRESS: "a loopback address that no `internal:` entry opens",
    Reason.RESERVED_ADDRESS: "a reserved, multicast or unspecified address, which no rule can open",
    Reason.OWN_ADDRESS: "an address of the gateway itself, which no rule can open",
    Reason.ADDRESS_NOT_JUDGED: "the name was judged alone, without an address",
    Reason.MALFORMED_HOST: "the host is spelled so that two readers could read it differently",
    Reason.NAME_MISMATCH: "the names in DNS, CONNECT, SNI and Host do not agree",
    Reason.SNI_MISSING: "the TLS hello names no host",
    Reason.MALFORMED_TLS: "the bytes are not a TLS ClientHello that can be read",
    Reason.MALFORMED_REQUEST: "the bytes are not an HTTP request that can be read in one way only",
    Reason.MALFORMED_QUESTION: "the bytes are not one well-formed DNS question",
    Reason.NOT_THE_PROTOCOL: "the first bytes are not of the protocol that the rule names",
    Reason.QUERY_TYPE_REFUSED: "a type of DNS question that the gateway does not answer",
    Reason.TOO_MANY_NAMES: "the room has used up its names",
    Reason.RESOLUTION_FAILED: "the permitted name could not be resolved",
    Reason.HEAD_TOO_LARGE: "the head of the request is larger than the limit",
    Reason.FIRST_BYTE_TIMEOUT: "the client did not finish its first bytes in time",
    Reason.TOO_MANY_CONNECTIONS: "the room has as many connections open as it may",
    Reason.UPLOAD_LIMIT: "the run has sent as much as the policy's upload limit permits",
    Reason.PROTOCOL_NOT_CARRIED: "the gateway carries TCP and answers DNS; everything else is refused",
    Reason.SOCKET_FAMILY_REFUSED: "a kind of socket that goes round the room",
    Reason.CONTROL_SOCKET: "a socket of the machine, which the worker may not reach",
    Reason.PROGRAM_NOT_LISTED: "the program is not among the permitted ones",
    Reason.PROGRAM_LISTED: "the program is among the permitted ones",
    Reason.SANDBOX_SWITCHED_OFF: "the command would leave the sandbox or switch it off",
    Reason.SYSTEM_CALL_REFUSED: "a system call that leaves the sandbox or changes the host",
    Reason.CODE_IN_MEMORY: "code made in memory, which no list of programs covers",
    Reason.HELD: "nothing lists it, and the policy asks a person",
    Reason.HOLD_TIMED_OUT: "nobody answered in time",
    Reason.HOLD_REFUSED: "a person was asked and said no",
    Reason.POLICY_CHANGED: "the policy was replaced and no longer permits this connection",
}
