"""What the words of an answer mean, in one place: the page's buttons, help and reference all read this.

Pure data, closed against `vocabulary` by a test. Each sentence continues a fixed beginning, so that a
screen reader and a page can say them alike: a control "is the control when …", a risk "is …".
An example is a scenario of the shipped bank, by its number; of another pack it is left out.
"""

from __future__ import annotations

from typing import Any

from msgspec import Struct

from stockade.lab.pack.pack import Pack
from stockade.vocabulary import Control, PlaceClass, Risk, Verdict


class Explained(Struct, frozen=True):
    """One word.

    Attributes:
        shown: The word as people say it.
        help: The sentence.
        unless: What looks alike and is called otherwise; empty if nothing does.
        example: Number of a scenario that shows it.
    """

    word: str
    shown: str
    help: str
    unless: str
    example: str


def tell_words(pack: Pack) -> dict[str, list[dict[str, Any]]]:
    """All words, with their examples from this pack, as `/api/state` gives them."""
    groups = {"decisions": DECISIONS, "risks": RISKS, "controls": CONTROLS, "classes": CLASSES}
    return {name: [_tell(one, pack) for one in group] for name, group in groups.items()}


def _tell(one: Explained, pack: Pack) -> dict[str, Any]:
    found = pack.find(one.example)
    example = None
    if found is not None:
        example = {
            "scenario": found.id,
            "event": found.event,
            "attempt": found.attempt,
            "phase": str(found.phase),
            "identity": str(found.identity),
            "verdict": found.key.verdict.word,
            "cue": found.cue,
        }
    return {"word": one.word, "shown": one.shown, "help": one.help, "unless": one.unless, "example": example}


DECISIONS = (
    Explained(
        Verdict.ALLOW.word,
        "allow",
        "Let it through as it is: a connection to one permitted name and port, end to end. Recorded are who, "
        "where, when and how many bytes.",
        "A place that the card proxies is proxy+log.",
        "E001",
    ),
    Explained(
        Verdict.PROXY.word,
        "proxy+log",
        "Let it through, but under a hand: the gateway reads each request, so that method, path, size and "
        "account can be limited and are recorded.",
        "A place that the card allows is allow: there the gateway has no hold on what is inside.",
        "E171",
    ),
    Explained(
        Verdict.DENY.word,
        "deny",
        "Nothing leaves. The attempt is recorded with the reason, and the agent is told at once.",
        "",
        "E043",
    ),
)

RISKS = (
    Explained(
        Risk.BENIGN,
        "benign",
        "No harm shows in it. It may be denied all the same, because nobody listed it or nobody needs it.",
        "A connection whose contents cannot be seen, to a place that nobody listed, counts as exfiltration.",
        "E008",
    ),
    Explained(
        Risk.EXFILTRATION,
        "exfiltration",
        "Data goes out to somebody who should not have it, or orders come in from there.",
        "",
        "E043",
    ),
    Explained(
        Risk.SSRF,
        "ssrf",
        "The agent is used to reach a service inside, which trusts whoever is inside (server-side request "
        "forgery).",
        "If the service inside is a metadata service, it is metadata-credentials.",
        "E087",
    ),
    Explained(
        Risk.EVAL_CONTAMINATION,
        "eval contamination",
        "The agent could read the answer or the grading, so its score would measure nothing.",
        "",
        "E103",
    ),
    Explained(
        Risk.SUPPLY_CHAIN,
        "supply chain",
        "Code or data that nobody reviewed comes in and is trusted later.",
        "",
        "E025",
    ),
    Explained(
        Risk.METADATA_CREDENTIALS,
        "metadata credentials",
        "A cloud's metadata service hands the machine's own credentials to whoever can reach it.",
        "",
        "E069",
    ),
    Explained(
        Risk.BOUNDARY_TAMPERING,
        "boundary tampering",
        "The worker reaches for what holds it: commands it may not run, control sockets, the ledger, the "
        "policy, a neighbor.",
        "Reading a rubric over the network is eval-contamination; a command that may not run is this, "
        "whatever it was for.",
        "E121",
    ),
)

CONTROLS = (
    Explained(
        Control.ALLOWLIST_EXACT,
        "exact allow-list",
        "The short list decides: the place or program is listed and let through, or its name only looks like "
        "a listed one.",
        "A stranger that imitates nobody is default-deny; a place that the card proxies is logging-proxy.",
        "E001",
    ),
    Explained(
        Control.DEFAULT_DENY,
        "default deny",
        "Nobody listed the place, and nothing more specific applies.",
        "A name that imitates a listed one is allowlist-exact.",
        "E042",
    ),
    Explained(
        Control.OPERATION_SCOPE,
        "scope of the operation",
        "The place is right and the operation is wrong: method, path, repository, kind of body, an upgrade.",
        "A wrong port or protocol is scheme-and-port-scope; a body that is only too big is size-rate-quota.",
        "E007",
    ),
    Explained(
        Control.LOGGING_PROXY,
        "logging proxy",
        "It is legitimate, and it is let through under inspection and record.",
        "At the package mirror it is vetted-mirror-pinned; by a rule of the grader's own, separate-identity.",
        "E171",
    ),
    Explained(
        Control.CREDENTIAL_BROKER,
        "credential broker",
        "The account is the point: a foreign key or account, or one run's own credential instead of the "
        "machine's.",
        "A metadata service hands out credentials too, and is denied by deny-link-local-metadata.",
        "E164",
    ),
    Explained(
        Control.CANONICALISE_HOST,
        "one reading of the host",
        "The host is spelled so that two programs read two different hosts out of it.",
        "A plain spelling that is merely another name is allowlist-exact or default-deny.",
        "E125",
    ),
    Explained(
        Control.CHECK_RESOLVED_ADDRESS,
        "check the address behind the name",
        "The name is permitted, and an address that it resolves to is not.",
        "If the address itself was typed, it is deny-internal-ranges or deny-link-local-metadata.",
        "E063",
    ),
    Explained(
        Control.DENY_LINK_LOCAL_METADATA,
        "no metadata, no link-local",
        "A metadata service is asked for by name or address, and the spelling is not the trick.",
        "Odd spellings are canonicalise-host; as the answer of a permitted name, check-resolved-address; as "
        "the next hop of an answer, recheck-redirects.",
        "E067",
    ),
    Explained(
        Control.DENY_INTERNAL_RANGES,
        "no internal addresses",
        "A private, loopback or carrier-grade address is dialed as it stands.",
        "A name that resolves to one is check-resolved-address.",
        "E087",
    ),
    Explained(
        Control.RECHECK_REDIRECTS,
        "judge each hop again",
        "It is the next hop of a permitted answer: a 3xx answer named the address.",
        "A script or a link that moves the browser is no redirect: the place itself decides.",
        "E083",
    ),
    Explained(
        Control.OWN_RESOLVER_ONLY,
        "the gateway's resolver only",
        "It is a question about a name, or a resolver other than the gateway's.",
        "",
        "E060",
    ),
    Explained(
        Control.VETTED_MIRROR_PINNED,
        "vetted mirror, pinned",
        "Packages, images and models: they come from the mirror, listed and pinned, or they do not come.",
        "In the wrong phase it is phase-policy; a script that would be run at once is no-install-time-code.",
        "E021",
    ),
    Explained(
        Control.NO_INSTALL_TIME_CODE,
        "no code at install time",
        "Code is fetched in order to be run while installing or building.",
        "The shell that would run it is another attempt, and its control is exec-deny.",
        "E023",
    ),
    Explained(
        Control.PHASE_POLICY,
        "phase policy",
        "It would be right in another phase, or the rubric list closes the place while scoring.",
        "If only another identity has a rule for it, it is separate-identity.",
        "E099",
    ),
    Explained(
        Control.SEPARATE_IDENTITY,
        "separate identities",
        "It is right for the grader and not for the agent, or the grader does it by its own rule.",
        "While scoring, the agent meets the rubric list first, and that is phase-policy.",
        "E098",
    ),
    Explained(
        Control.SIZE_RATE_QUOTA,
        "size, rate, quota",
        "Too much, too fast or too long, at a place that is permitted.",
        "Odd, but within every limit: logging-proxy.",
        "E130",
    ),
    Explained(
        Control.NAME_CONSISTENCY,
        "one name throughout",
        "The name that was looked up, the CONNECT, the TLS hello and the Host header do not agree.",
        "",
        "E037",
    ),
    Explained(
        Control.SCHEME_AND_PORT_SCOPE,
        "scope of scheme and port",
        "The host is right, and the port or protocol is wrong.",
        "A port written out that is the usual one changes nothing.",
        "E128",
    ),
    Explained(
        Control.NO_CONTROL_SOCKETS,
        "no control sockets",
        "A socket that steers containers, a desktop, an agent or the guard itself is opened.",
        "Raw and VSOCK sockets are namespace-isolation.",
        "E092",
    ),
    Explained(
        Control.NAMESPACE_ISOLATION,
        "namespaces of its own",
        "Raw or VSOCK sockets, neighbors and host processes, or a sandbox that is switched off.",
        "Any other command that is not on the list is exec-deny.",
        "E094",
    ),
    Explained(
        Control.EXEC_DENY,
        "list of programs",
        "A command outside the permitted programs is started.",
        "A command whose point is to switch the sandbox off is namespace-isolation.",
        "E119",
    ),
    Explained(
        Control.TELEMETRY_OFF,
        "telemetry off",
        "A tool tells its vendor something, or asks it, and the job does not need that.",
        "The run's own collector is on the card; what the browser does by itself is browser-hardening.",
        "E114",
    ),
    Explained(
        Control.HOST_PROVIDED_SERVICE,
        "the host provides it",
        "Time, the state of certificates, names: the host has them already.",
        "A time server on a link-local address is deny-link-local-metadata.",
        "E116",
    ),
    Explained(
        Control.BROWSER_HARDENING,
        "a hardened browser",
        "A side door of the browser: a probe, an update, a peer connection that nobody asked for.",
        "A page that sends the browser elsewhere is judged as the place that it leads to.",
        "E117",
    ),
)

CLASSES = (
    Explained(PlaceClass.DOCS, "docs", "Documentation.", "", "E001"),
    Explained(PlaceClass.MODEL_PROVIDER, "model provider", "A service that runs a model.", "", "E011"),
    Explained(PlaceClass.MIRROR, "mirror", "The vetted copy of packages, images and models.", "", "E020"),
    Explained(PlaceClass.REGISTRY, "registry", "A public source of packages, code or weights.", "", "E021"),
    Explained(PlaceClass.CODE_HOST, "code host", "Repositories, changes, snippets.", "", "E033"),
    Explained(PlaceClass.DATASET_HUB, "dataset hub", "Data sets and models to download.", "", "E102"),
    Explained(PlaceClass.RUBRIC, "rubric", "Answers, grading, solutions and copies of them.", "", "E099"),
    Explained(PlaceClass.SEARCH, "search", "A search service.", "", "E009"),
    Explained(PlaceClass.INTERNAL, "internal", "A service inside the organization.", "", "E087"),
    Explained(PlaceClass.METADATA, "metadata", "A cloud's metadata service.", "", "E067"),
    Explained(PlaceClass.PASTE, "paste", "Paste, drop and request-catcher sites.", "", "E043"),
    Explained(PlaceClass.MESSAGING, "messaging", "Mail, chat and webhooks.", "", "E046"),
    Explained(PlaceClass.OBJECT_STORE, "object store", "Buckets and artifact stores.", "", "E187"),
    Explained(PlaceClass.TELEMETRY, "telemetry", "Usage, crash and update services.", "", "E114"),
    Explained(PlaceClass.RESOLVER, "resolver", "A server that answers questions about names.", "", "E060"),
    Explained(PlaceClass.TUNNEL, "tunnel", "Anonymizers, tunnels and peer connections.", "", "E047"),
    Explained(PlaceClass.APPROVED_TEST, "approved test", "A site that the task may test.", "", "E194"),
    Explained(PlaceClass.LOCAL, "local", "The machine itself: sockets, processes, commands.", "", "E092"),
    Explained(PlaceClass.UNKNOWN, "unknown", "None of these, as far as anybody knows.", "", "E042"),
)
