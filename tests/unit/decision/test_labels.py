"""Risk, control and class: the words of `vocabulary`, told apart one difference at a time."""

from __future__ import annotations

import pytest
from decision_texts import attempt_of, decide, engine_of

from stockade.decision.catalogue import Catalogue, load_builtin_entries
from stockade.decision.engine import Engine
from stockade.policy.model import DENY_ALL, CatalogueEntry, HostPattern
from stockade.vocabulary import Control, PlaceClass, Reason, Risk, Verdict

EMPTY = Engine(DENY_ALL)
NAMED = """
rules:
  - {allow: docs.test, class: docs}
  - {allow: docs.test, ports: [80], class: docs}
  - {proxy: mirror.test, class: mirror, methods: [GET], phases: [setup]}
  - {proxy: api.test, ports: [80], methods: [GET], risk: eval-contamination, control: separate-identity}
"""


@pytest.mark.parametrize(
    ("line", "risk"),
    [
        ("GET http://nobody.example/", Risk.BENIGN),  # a read that can be seen
        ("HEAD http://nobody.example/?q=a+few+words", Risk.BENIGN),
        (f"GET http://nobody.example/?{'x' * 1024}", Risk.BENIGN),
        (f"GET http://nobody.example/?{'x' * 1025}", Risk.EXFILTRATION),
        ("POST http://nobody.example/", Risk.EXFILTRATION),
        ("GET https://nobody.example/", Risk.EXFILTRATION),  # TLS hides the method
        ("tcp nobody.example 80", Risk.EXFILTRATION),
        ("udp nobody.example 80", Risk.EXFILTRATION),
        ("dns nobody.example", Risk.BENIGN),
    ],
)
def test_a_stranger_is_judged_by_what_can_be_seen(line: str, risk: Risk) -> None:
    decision = decide(EMPTY, line)
    assert (decision.verdict, decision.risk) == (Verdict.DENY, risk)


@pytest.mark.parametrize(
    ("line", "risk"),
    [
        ("GET http://api.test/", Risk.BENIGN),
        ("POST http://api.test/", Risk.EVAL_CONTAMINATION),  # the rule says so
        ("GET https://mirror.test/", Risk.SUPPLY_CHAIN),
        ("GET https://docs.test:8443/", Risk.BENIGN),
    ],
)
def test_a_listed_place_is_judged_by_its_rule_and_class(line: str, risk: Risk) -> None:
    assert decide(NAMED, line).risk is risk


def test_a_rule_may_name_the_control_of_its_passes_and_refusals() -> None:
    engine = engine_of(NAMED)
    assert decide(engine, "GET http://api.test/").control is Control.SEPARATE_IDENTITY
    assert decide(engine, "POST http://api.test/").control is Control.SEPARATE_IDENTITY


@pytest.mark.parametrize(
    ("line", "control"),
    [
        ("GET http://docs.test/", Control.ALLOWLIST_EXACT),
        ("GET http://DOCS.test/", Control.CANONICALISE_HOST),
        ("GET http://docs.test./", Control.CANONICALISE_HOST),
        ("dns DOCS.test", Control.OWN_RESOLVER_ONLY),
    ],
)
def test_a_pass_is_called_by_what_let_it_through(line: str, control: Control) -> None:
    decision = decide(NAMED, line)
    assert (decision.verdict, decision.control) == (Verdict.ALLOW, control)


def test_the_next_hop_of_an_answer_is_called_that_whether_it_passes_or_not() -> None:
    for line, verdict in (("GET http://docs.test/", Verdict.ALLOW), ("GET https://evil.test/", Verdict.DENY)):
        decision = decide(NAMED, line, came_from="http://docs.test/")
        assert (decision.verdict, decision.control) == (verdict, Control.RECHECK_REDIRECTS)


@pytest.mark.parametrize(
    ("host", "reason", "risk", "control", "place"),
    [
        (
            "169.254.169.254",
            "metadata-address",
            "metadata-credentials",
            "deny-link-local-metadata",
            "metadata",
        ),
        ("169.254.1.1", "link-local-address", "metadata-credentials", "deny-link-local-metadata", "metadata"),
        ("[fe80::1]", "link-local-address", "ssrf", "deny-link-local-metadata", "internal"),
        ("10.0.0.1", "private-address", "ssrf", "deny-internal-ranges", "internal"),
        ("100.64.0.1", "private-address", "ssrf", "deny-internal-ranges", "internal"),
        ("127.0.0.1", "loopback-address", "ssrf", "deny-internal-ranges", "internal"),
        ("0.0.0.0", "reserved-address", "ssrf", "deny-internal-ranges", "internal"),
        ("224.0.0.251", "reserved-address", "ssrf", "deny-internal-ranges", "internal"),
        ("203.0.113.7", "literal-address", "benign", "default-deny", "unknown"),
        ("93.184.216.34", "literal-address", "benign", "default-deny", "unknown"),
        ("[::ffff:10.0.0.1]", "private-address", "ssrf", "canonicalise-host", "internal"),
        ("[::ffff:93.184.216.34]", "literal-address", "benign", "canonicalise-host", "unknown"),
        ("0x7f000001", "malformed-host", "ssrf", "canonicalise-host", "internal"),
        ("2852039166", "malformed-host", "metadata-credentials", "canonicalise-host", "metadata"),
        ("evil.test%00.docs.test", "malformed-host", "benign", "canonicalise-host", "unknown"),
        ("x@pastebin.com", "malformed-host", "exfiltration", "canonicalise-host", "paste"),
    ],
)
def test_addresses_and_spellings_are_named_for_where_they_lead(
    host: str, reason: str, risk: str, control: str, place: str
) -> None:
    decision = decide(EMPTY, f"GET http://{host}/")
    called = (decision.reason, decision.risk, decision.control, decision.place)
    assert tuple(map(str, called)) == (reason, risk, control, place)


# --- the catalogue ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "place", "risk", "control"),
    [
        ("pastebin.com", "paste", "exfiltration", "default-deny"),
        ("abc.ngrok.io", "tunnel", "exfiltration", "default-deny"),
        ("dns.google", "resolver", "exfiltration", "own-resolver-only"),
        ("huggingface.co", "dataset-hub", "supply-chain", "default-deny"),
        ("api.openai.com", "model-provider", "exfiltration", "default-deny"),
        ("metadata.google.internal", "metadata", "metadata-credentials", "deny-link-local-metadata"),
        ("host.docker.internal", "internal", "ssrf", "default-deny"),
        ("kubernetes.default.svc", "internal", "ssrf", "default-deny"),
        ("localhost", "internal", "ssrf", "default-deny"),
        ("0.pool.ntp.org", "unknown", "benign", "host-provided-service"),
    ],
)
def test_a_denial_is_named_for_what_the_place_is(name: str, place: str, risk: str, control: str) -> None:
    decision = decide(EMPTY, f"GET https://{name}/")
    assert (str(decision.place), str(decision.risk), str(decision.control)) == (place, risk, control)
    assert decision.verdict is Verdict.DENY


def test_the_policys_own_entries_come_first_then_the_machines_then_ours() -> None:
    text = "catalogue: [{class: docs, risk: benign, hosts: [pastebin.com]}]"
    machine = CatalogueEntry(
        place=PlaceClass.REGISTRY,
        hosts=(HostPattern("index.corp.test"), HostPattern("pastebin.com")),
        origin="pip",
    )
    engine = engine_of(text, places=[machine])
    assert decide(engine, "GET https://pastebin.com/").place is PlaceClass.DOCS
    registry = decide(engine, "GET https://index.corp.test/")
    assert (registry.place, registry.risk, registry.control) == (
        PlaceClass.REGISTRY,
        Risk.SUPPLY_CHAIN,
        Control.VETTED_MIRROR_PINNED,
    )
    assert decide(engine, "GET https://dpaste.com/").place is PlaceClass.PASTE


def test_the_catalogue_opens_and_closes_nothing() -> None:
    opened = "rules: [{allow: pastebin.com}]\ncatalogue: [{class: docs, hosts: [nobody.example]}]"
    assert decide(opened, "GET https://pastebin.com/").verdict is Verdict.ALLOW
    assert decide(opened, "GET https://nobody.example/").verdict is Verdict.DENY


def test_a_known_answer_host_contaminates_while_scoring_only() -> None:
    text = "catalogue: [{class: rubric, hosts: [writeups.example]}]"
    assert decide(engine_of(text, "scoring"), "GET http://writeups.example/").risk is Risk.EVAL_CONTAMINATION
    assert decide(engine_of(text, "work"), "GET http://writeups.example/").risk is Risk.BENIGN


def test_every_entry_of_the_data_file_has_a_source_and_no_host_stands_twice() -> None:
    import json

    from stockade.decision.catalogue import DATA_FILE

    entries = json.loads(DATA_FILE.read_text())
    assert all(entry["source"].startswith(("https://", "http://", "RFC ", "ICANN ")) for entry in entries)
    hosts = [host for entry in entries for host in entry["hosts"]]
    assert len(set(hosts)) == len(hosts)


def test_every_host_of_the_data_file_is_a_canonical_name() -> None:
    from stockade.net.host import Host, parse_host

    for entry in load_builtin_entries():
        for pattern in entry.hosts:
            assert parse_host(pattern.name) == Host(pattern.name)


def test_the_most_specific_entry_answers() -> None:
    catalogue = Catalogue()
    found = catalogue.find("gist.github.com"), catalogue.find("metadata.google.internal")
    assert [entry and entry.place for entry in found] == [PlaceClass.PASTE, PlaceClass.INTERNAL]
    assert decide(EMPTY, "GET http://metadata.google.internal/").reason is Reason.METADATA_NAME


# --- programs and sockets -------------------------------------------------------------------

EXEC = """
exec:
  allow: [python3, /usr/bin/gcc, /opt/tool/run, /usr/lib/git-core/*, /usr/bin/clang-*, ./tools/check]
"""


@pytest.mark.parametrize(
    "program",
    [
        "python3",
        "/usr/bin/python3",
        "/bin/python3",
        "/usr/bin/gcc",
        "gcc",
        "/opt/tool/run",
        "/usr/lib/git-core/git-stash",
        "clang-19",
        "./tools/check",
    ],
)
def test_listed_programs_run_by_their_name_or_their_place(program: str) -> None:
    decision = decide(EXEC, f"exec {program} --anything")
    assert (decision.verdict, decision.reason) == (Verdict.ALLOW, Reason.PROGRAM_LISTED)


@pytest.mark.parametrize(
    "program",
    [
        "./python3",
        "/tmp/python3",
        "/home/u/gcc",
        "run",
        "python3.11",
        "sh",
        "/proc/self/fd/7",
        "''",
        "PYTHON3",
        "git-stash",
        "/usr/lib/git-core/../../bin/sh",
        "/usr/bin/sub/clang-19",
        "check",
    ],
)
def test_a_copy_elsewhere_and_another_name_do_not_run(program: str) -> None:
    decision = decide(EXEC, f"exec {program} --anything")
    assert (decision.risk, decision.control) == (Risk.BOUNDARY_TAMPERING, Control.EXEC_DENY)


def test_without_exec_nothing_is_listed_and_any_lists_everything() -> None:
    assert decide("rules: []", "exec true").verdict is Verdict.DENY
    assert decide("exec: {mode: any}", "exec true").verdict is Verdict.ALLOW


@pytest.mark.parametrize(
    "line",
    [
        "exec podman run --network=host image",
        "exec docker run --net host image",
        "exec docker run --privileged image",
        "exec docker run --pid=host image",
        "exec agent --dangerously-bypass-approvals-and-sandbox",
        "exec agent --dangerously-skip-permissions",
        "exec agent --no-sandbox",
        "exec agent --sandbox danger-full-access",
        "exec agent --sandbox=off",
    ],
)
def test_an_option_that_leaves_the_sandbox_names_the_denial(line: str) -> None:
    decision = decide(EXEC, line)
    assert (decision.verdict, decision.control) == (Verdict.DENY, Control.NAMESPACE_ISOLATION)
    assert decision.reason is Reason.SANDBOX_SWITCHED_OFF


@pytest.mark.parametrize(
    "line", ["exec x --network none", "exec x --sandbox on", "exec x network=host", "exec x --host"]
)
def test_other_options_do_not(line: str) -> None:
    assert decide(EXEC, line).control is Control.EXEC_DENY


def test_arguments_never_change_the_verdict_of_a_listed_program() -> None:
    assert decide(EXEC, "exec python3 --no-sandbox").verdict is Verdict.ALLOW


@pytest.mark.parametrize(
    ("text", "risk", "control", "place"),
    [
        ("/var/run/docker.sock", "boundary-tampering", "no-control-sockets", "local"),
        ("@/containerd-shim/x.sock", "boundary-tampering", "no-control-sockets", "local"),
        ("icmp:93.184.216.34", "exfiltration", "namespace-isolation", "unknown"),
        ("icmp:169.254.169.254", "metadata-credentials", "namespace-isolation", "metadata"),
        ("icmp:10.0.0.1", "ssrf", "namespace-isolation", "internal"),
        ("icmp:nonsense", "exfiltration", "namespace-isolation", "unknown"),
        ("vsock:2:1024", "boundary-tampering", "namespace-isolation", "local"),
    ],
)
def test_sockets_are_refused_and_named(text: str, risk: str, control: str, place: str) -> None:
    decision = engine_of("exec: {mode: any}").decide(attempt_of(f"socket {text}"))
    assert decision.verdict is Verdict.DENY
    assert (str(decision.risk), str(decision.control), str(decision.place)) == (risk, control, place)
