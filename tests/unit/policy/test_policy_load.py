"""Files to policies: what is meant is what loads, and everything else is refused with its line."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from policy_texts import load, load_rules, refused

from stockade.policy.load import load_policy, load_policy_text, load_preset
from stockade.policy.model import DENY_ALL, Credential, ExecPolicy, HostPattern
from stockade.policy.problems import PolicyError
from stockade.vocabulary import Control, Identity, Phase, PlaceClass, Protocol, Risk, Verdict

# what is meant is what loads


def test_a_bare_name_is_that_host_on_443_with_tls_for_the_agent() -> None:
    (rule,) = load_rules("- allow: docs.example")
    assert rule.level is Verdict.ALLOW
    assert rule.host == HostPattern("docs.example")
    assert (rule.ports, rule.protocol) == ((443,), Protocol.TLS)
    assert rule.phases == (Phase.SETUP, Phase.WORK, Phase.SCORING)
    assert rule.identities == (Identity.AGENT,)
    assert rule.origin == "policy.yaml:3"


def test_every_key_of_a_rule_reaches_the_model() -> None:
    (rule,) = load_rules(
        """\
- proxy: api.example
  class: model-provider
  why: the model
  ports: [8443, 443]
  protocol: tls
  methods: [POST, GET]
  paths: [/v1/messages, /v1/files/**]
  phases: [scoring, setup]
  identities: [grader, agent]
  credential: {header: X-Api-Key, env: PROVIDER_KEY}
  max-body: 1MiB
  max-query: 1KiB
  rate: 30/m
  body: {forbid-tools: [web_search], graphql: [query]}
  risk: exfiltration
  control: credential-broker
"""
    )
    assert rule.level is Verdict.PROXY
    assert rule.place is PlaceClass.MODEL_PROVIDER
    assert rule.why == "the model"
    assert (rule.ports, rule.protocol) == ((443, 8443), Protocol.TLS)
    assert rule.methods == ("GET", "POST")
    assert [path.text for path in rule.paths] == ["/v1/messages", "/v1/files/**"]
    assert rule.phases == (Phase.SETUP, Phase.SCORING)
    assert rule.identities == (Identity.AGENT, Identity.GRADER)
    assert rule.credential == Credential("x-api-key", "PROVIDER_KEY")
    assert (rule.max_body_bytes, rule.max_query_bytes, rule.rate_per_s) == (1_048_576, 1024, 0.5)
    assert rule.body is not None
    assert (rule.body.forbid_tools, rule.body.graphql) == (("web_search",), ("query",))
    assert (rule.risk, rule.control) == (Risk.EXFILTRATION, Control.CREDENTIAL_BROKER)
    assert rule.needs_inspection


@pytest.mark.parametrize(
    ("keys", "services"),
    [
        ("", [((443,), Protocol.TLS)]),
        ("protocol: tls", [((443,), Protocol.TLS)]),
        ("protocol: http", [((80,), Protocol.HTTP)]),
        ("ports: [80]", [((80,), Protocol.HTTP)]),
        ("ports: [80, 443]", [((80,), Protocol.HTTP), ((443,), Protocol.TLS)]),
        ("ports: [8080], protocol: http", [((8080,), Protocol.HTTP)]),
        ("ports: [22], protocol: ssh", [((22,), Protocol.SSH)]),
        ("ports: [5432], protocol: tcp", [((5432,), Protocol.TCP)]),
    ],
)
def test_ports_and_protocols_complete_each_other(keys: str, services: list[object]) -> None:
    rules = load_rules(f"- {{allow: a.example, {keys}}}")
    assert [(rule.ports, rule.protocol) for rule in rules] == services


@pytest.mark.parametrize(
    ("keys", "code"),
    [
        ("ports: [8080]", "protocol-missing"),
        ("ports: [443, 8080]", "protocol-missing"),
        ("protocol: ssh", "ports-missing"),
        ("protocol: tcp", "ports-missing"),
        ("protocol: udp, ports: [53]", "unknown-word"),
        ("ports: [0]", "port-unclear"),
        ("ports: [65536]", "port-unclear"),
        ("ports: [080]", "port-unclear"),  # octal 64 to one reader, 80 to another
        ("ports: [0x50]", "port-unclear"),
        ("ports: [1e3]", "port-unclear"),
        ("ports: [8_0]", "port-unclear"),
        ("ports: [22:22]", "port-unclear"),  # YAML 1.1 reads base 60
        ("ports: [-1]", "port-unclear"),
        ("ports: []", "empty-list"),
        ("ports: 443", "not-a-list"),
    ],
)
def test_a_port_that_two_readers_read_differently_is_refused(keys: str, code: str) -> None:
    assert refused(f"- {{allow: a.example, {keys}}}").code == code


def test_port_65535_is_a_port() -> None:
    assert load_rules("- {allow: a.example, ports: [65535], protocol: tls}")[0].ports == (65535,)


def test_a_denial_binds_everyone_on_every_port() -> None:
    (rule,) = load_rules("- deny: paste.example")
    assert (rule.ports, rule.protocol) == ((), None)
    assert rule.identities == (Identity.AGENT, Identity.GRADER)
    assert rule.covers(25)
    assert rule.covers(443, Protocol.TLS)


def test_the_other_sections_reach_the_model() -> None:
    policy = load(
        """\
version: 1
rubric:
  - rubric.example
  - {host: hub.example, paths: [/answers/**]}
internal:
  - {host: app.example, networks: [10.20.0.0/24, "fd00:1::/64", 127.0.0.1], ports: [8080]}
unknown: ask
hold: 5m
catalogue:
  - {class: paste, risk: exfiltration, control: telemetry-off, hosts: [drop.example, "*.drop.example"]}
exec: {allow: [git, /usr/bin/gcc], libraries: [.venv]}
files: {read: ["~/models"], write: [.], hide: [tests/answers]}
limits:
  {memory: 2GiB, processes: 256, open-files: 64, file-size: 1GiB, time: 2h, connections: 512, upload: 100MiB}
"""
    )
    assert [entry.host.text for entry in policy.rubric] == ["rubric.example", "hub.example"]
    assert [str(network) for network in policy.internal[0].networks] == [
        "10.20.0.0/24",
        "fd00:1::/64",
        "127.0.0.1/32",
    ]
    assert (policy.unknown, policy.hold_s, policy.unknown_origin) == ("ask", 300.0, "policy.yaml:7")
    assert [host.text for host in policy.catalogue[0].hosts] == ["drop.example", "*.drop.example"]
    assert policy.exec == ExecPolicy(
        allow=("git", "/usr/bin/gcc"),
        libraries=(".venv",),
        origin="policy.yaml:11",
        origins=("policy.yaml:11", "policy.yaml:11"),
    )
    assert (policy.files.read, policy.files.write, policy.files.hide) == (
        ("~/models",),
        (".",),
        ("tests/answers",),
    )
    limits = policy.limits
    assert (limits.memory_bytes, limits.processes) == (2_147_483_648, 256)
    assert (limits.open_files, limits.file_size_bytes, limits.time_s) == (64, 1_073_741_824, 7200.0)
    assert (limits.connections, limits.upload_bytes) == (512, 104_857_600)


def test_no_exec_key_an_empty_one_and_any_are_three_things() -> None:
    assert load("version: 1").exec is None
    empty = load("version: 1\nexec: {}").exec
    assert empty is not None
    assert (empty.mode, empty.allow) == ("listed", ())
    everything = load("version: 1\nexec: {mode: any}").exec
    assert everything is not None
    assert everything.mode == "any"


@pytest.mark.parametrize(
    ("keys", "code", "unix_sockets"),
    [
        ("{}", "closed", False),
        ("{code: closed}", "closed", False),
        ("{code: jit, unix-sockets: true}", "jit", True),
        ("{unix-sockets: false}", "closed", False),
        ("{mode: any}", "jit", False),
        ("{mode: any, code: jit}", "jit", False),
        ("{mode: any, unix-sockets: true}", "jit", True),
    ],
)
def test_levels_of_exec_are_closed_unless_they_are_opened(keys: str, code: str, unix_sockets: bool) -> None:
    policy = load(f"version: 1\nexec: {keys}")
    assert policy.exec is not None
    assert (policy.exec.code, policy.exec.unix_sockets) == (code, unix_sockets)
    assert policy.notes == ()


@pytest.mark.parametrize(
    ("keys", "error"),
    [
        ("{mode: any, code: closed}", "exec-conflict"),
        ("{mode: any, allow: [git]}", "exec-conflict"),
        ("{mode: any, libraries: [.venv]}", "exec-conflict"),
        ("{code: open}", "unknown-word"),
        ("{code: }", "empty-value"),
        ("{unix-sockets: yes}", "unknown-word"),
        ("{unix-sockets: True}", "unknown-word"),
        ("{unix-sockets: 1}", "unknown-word"),
        ("{unix_sockets: true}", "unknown-key"),
    ],
)
def test_levels_of_exec_are_one_of_their_words(keys: str, error: str) -> None:
    with pytest.raises(PolicyError) as caught:
        load(f"version: 1\nexec: {keys}")
    assert caught.value.code == error


def test_each_level_and_each_entry_changes_the_digest() -> None:
    keys = ["{}", "{code: jit}", "{unix-sockets: true}", "{allow: [a]}", "{allow: [./a]}", "{libraries: [a]}"]
    keys += ["{mode: any}", "{mode: any, unix-sockets: true}"]
    digests = {load(f"version: 1\nexec: {text}").digest for text in keys}
    assert len(digests | {load("version: 1").digest}) == len(keys) + 1
    assert (
        load("version: 1\nexec: {allow: [a/b]}").digest == load("version: 1\nexec: {allow: [./a/b]}").digest
    )


def test_an_entry_knows_its_line_and_whether_only_a_preset_names_it(tmp_path: Path) -> None:
    (tmp_path / "team.yaml").write_text("version: 1\nexec:\n  allow:\n    - pip\n    - own\n")
    main = tmp_path / "policy.yaml"
    main.write_text("version: 1\ninclude: [exec/python, team.yaml]\nexec: {allow: [git]}\n")
    policy = load_policy(main).exec
    assert policy is not None
    assert policy.allow == ("git", "python3", "python", "pip3", "pip", "uname", "own")
    assert [policy.origin_of(entry) for entry in ("git", "pip", "own")] == [
        "policy.yaml:3",
        "team.yaml:4",
        "team.yaml:5",
    ]
    assert [entry for entry in policy.allow if policy.is_of_preset(entry)] == [
        "python3",
        "python",
        "pip3",
        "uname",
    ]


def test_includes_open_levels_and_the_line_that_did_is_kept(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text("version: 1\nexec:\n  code: jit\n")
    (tmp_path / "b.yaml").write_text("version: 1\nexec:\n  allow: [x]\n  unix-sockets: true\n")
    main = tmp_path / "policy.yaml"
    main.write_text(
        "version: 1\ninclude: [a.yaml, b.yaml]\nexec: {code: closed, unix-sockets: false, allow: [y]}\n"
    )
    policy = load_policy(main).exec
    assert policy is not None
    assert (policy.code, policy.code_origin) == ("jit", "a.yaml:3")
    assert (policy.unix_sockets, policy.unix_sockets_origin) == (True, "b.yaml:4")
    assert policy.allow == ("y", "x")


def test_a_list_narrows_mode_any_and_takes_its_native_code_with_it(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text("version: 1\nexec: {mode: any, unix-sockets: true}\n")
    main = tmp_path / "policy.yaml"
    main.write_text("version: 1\ninclude: [a.yaml]\nexec: {allow: [y]}\n")
    policy = load_policy(main).exec
    assert policy is not None
    assert (policy.mode, policy.code, policy.unix_sockets) == ("listed", "closed", True)


def test_the_policy_without_a_file_is_the_one_that_says_nothing() -> None:
    loaded = load("version: 1")
    assert (loaded.rules, loaded.internal, loaded.unknown, loaded.exec) == ((), (), "deny", None)
    assert loaded.digest == DENY_ALL.digest


def test_words_that_yaml_takes_for_truth_values_are_programs_here() -> None:
    policy = load("version: 1\nexec: {allow: [yes, true, no]}")
    assert policy.exec is not None
    assert policy.exec.allow == ("yes", "true", "no")
    assert [note.code for note in policy.notes] == ["word-unquoted"] * 3


# the YAML


@pytest.mark.parametrize(
    ("text", "code", "line"),
    [
        ("", "empty-file", 1),
        ("# only a comment\n", "empty-file", 1),
        ("~\n", "empty-file", 1),
        ("rules: []\n", "version-missing", 1),
        ("version: 2\n", "version-unknown", 1),
        ("version: 1.0\n", "version-unknown", 1),
        ("version:\n", "empty-value", 1),
        ("- allow: a.example\n", "not-a-mapping", 1),
        ("just text\n", "not-a-mapping", 1),
        ("version: 1\nversion: 1\n", "duplicate-key", 2),
        ("version: 1\nrules:\n  allow: a.example\n", "not-a-list", 3),
        ("version: 1\nrules:\n", "empty-value", 2),
        ("version: 1\nrules: &all []\n", "yaml-anchor", 2),
        ("version: 1\nrules: *all\n", "yaml-alias", 2),
        ("version: !!int 1\n", "yaml-tag", 1),
        ("version: 1\nunknown: !!python/name:os.system ''\n", "yaml-tag", 2),
        ("version: 1\n<<: {unknown: ask}\n", "yaml-merge-key", 2),
        ("version: 1\n---\nversion: 1\n", "yaml-many-documents", 2),
        ("version: 1\n? [a]\n: b\n", "not-one-value", 2),
        ("version: 1\nrules: " + "[" * 40 + "]" * 40, "yaml-too-deep", 2),
        ("version: 1\nrules:\n\t- allow: a.example\n", "yaml-syntax", 3),
        ("version: 1\nrules: [\n", "yaml-syntax", 3),
        ("version: 1\nwhy: \x07\n", "yaml-syntax", 1),
        ("version: 1\nrules: [] # all closed\u2028unknown: ask\n", "yaml-syntax", 2),
        ("version: 1\nrules: [] # all closed\x85unknown: ask\n", "yaml-syntax", 2),
        ("version: 1\nrules: [] # all closed\runknown: ask\n", "yaml-syntax", 2),
        ("version: 1\nrules: []\n# \u202eksa :nwonknu\n", "yaml-syntax", 3),
    ],
)
def test_text_with_an_unclear_meaning_is_refused_with_its_line(text: str, code: str, line: int) -> None:
    with pytest.raises(PolicyError) as caught:
        load_policy_text(text, "policy.yaml")
    assert caught.value.code == code
    assert caught.value.problems[0].origin == f"policy.yaml:{line}"


@pytest.mark.parametrize("written", ["*.docs.example", "*", "*.a.example # why"])
def test_an_unquoted_wildcard_gets_a_hint(written: str) -> None:
    with pytest.raises(PolicyError) as caught:
        load_policy_text(f"version: 1\nrules:\n  - allow: {written}\n", "policy.yaml")
    assert caught.value.code == "yaml-wildcard-unquoted"
    assert caught.value.problems[0].origin == "policy.yaml:3"
    word = written.partition(" ")[0]
    assert f'"{word}"' in str(caught.value.hint)


def test_the_same_wildcard_in_quotes_loads() -> None:
    assert load_rules('- allow: "*.docs.example"')[0].host == HostPattern("docs.example", True)


def test_all_faults_of_a_file_are_told_at_once() -> None:
    problems = refused(
        """\
- alow: a.example
- allow: https://b.example/
- {allow: c.example, methods: [GET]}
- {proxy: d.example, max-body: 1MB}
"""
    ).problems
    assert [problem.code for problem in problems] == [
        "unknown-key",
        "verdict-missing",
        "host-with-scheme",
        "condition-in-allow",
        "size-unclear",
    ]
    assert [problem.origin for problem in problems] == [f"policy.yaml:{line}" for line in (3, 3, 4, 5, 6)]


def test_a_fault_reads_file_line_code_sentence() -> None:
    error = refused('- allow: "*.com"')
    assert str(error).startswith('policy.yaml:3: wildcard-too-broad: "*.com" covers every name')
    assert error.hint == "write *.example.com"
    assert error.exit_code == 2


# keys


@pytest.mark.parametrize(
    ("text", "nearest"),
    [
        ("version: 1\nrulse: []", "rules"),
        ("version: 1\nnetwork.allow: [a.example]", "rules"),
        ("version: 1\nadditionalAllowedHosts: [a.example]", "rules"),
        ("version: 1\nallowed_domain: a.example", "rules"),
        ("version: 1\nallow: [a.example]", "rules"),
        ("version: 1\ninternals: []", "internal"),
        ("version: 1\nlimit: {}", "limits"),
        ("version: 1\nlimits: {max_processes: 3}", "processes"),
        ("version: 1\nexec: {allowed: [git]}", "allow"),
        ("version: 1\nrules: [{proxy: a.example, max_body: 1KiB}]", "max-body"),
        ("version: 1\nrules: [{proxy: a.example, path: [/]}]", "paths"),
        ("version: 1\nrules: [{proxy: a.example, port: [1]}]", "ports"),
    ],
)
def test_r003_a_misspelt_key_stops_the_load_and_names_the_nearest(text: str, nearest: str) -> None:
    with pytest.raises(PolicyError) as caught:
        load_policy_text(text, "policy.yaml")
    assert caught.value.code == "unknown-key"
    assert f"`{nearest}`" in str(caught.value.hint) or f"write {nearest}:" in str(caught.value.hint)


@pytest.mark.parametrize(
    ("rule", "code"),
    [
        ("{allow: a.example, deny: b.example}", "verdict-twice"),
        ("{class: docs}", "verdict-missing"),
        ("{allow: a.example, class: doc}", "unknown-word"),
        ("{allow: a.example, phases: [wrok]}", "unknown-word"),
        ("{allow: a.example, phases: []}", "empty-list"),
        ("{allow: a.example, paths: [/a]}", "condition-in-allow"),
        ("{allow: a.example, max-query: 1KiB}", "condition-in-allow"),
        ("{deny: a.example, max-body: 1KiB}", "condition-in-deny"),
        ("{deny: a.example, credential: {header: a, env: B}}", "condition-in-deny"),
        ("{proxy: a.example, protocol: ssh, ports: [22]}", "proxy-without-requests"),
        ("{proxy: a.example, methods: [get]}", "method-unclear"),
        ("{proxy: a.example, paths: [v1]}", "path-unclear"),
        ("{proxy: a.example, paths: [/a/../b]}", "path-unclear"),
        ('{proxy: a.example, paths: ["/a?b=c"]}', "path-unclear"),
        ("{proxy: a.example, paths: [/a**]}", "path-unclear"),
        ("{proxy: a.example, rate: 20}", "rate-unclear"),
        ("{proxy: a.example, rate: 0/s}", "rate-unclear"),
        ("{proxy: a.example, max-body: 1kb}", "size-unclear"),
        ("{proxy: a.example, max-body: 1.5MiB}", "size-unclear"),
        ("{proxy: a.example, credential: {header: x-key}}", "missing-key"),
        ("{proxy: a.example, credential: {header: 'x key', env: A}}", "text-unclear"),
        ("{proxy: a.example, body: {}}", "empty-value"),
        ("{proxy: a.example, body: {graphql: [mutate]}}", "unknown-word"),
        ("{allow: [a.example, b.example]}", "not-one-value"),
        ("a.example", "not-a-mapping"),
        ("allow:a.example", "not-a-mapping"),
        ("{allow: }", "empty-value"),
        ('{allow: a.example, why: "\\e[31m"}', "text-unclear"),
    ],
)
def test_a_rule_that_could_not_hold_as_written_is_refused(rule: str, code: str) -> None:
    assert refused(f"- {rule}").code == code


def test_closed_sets_are_closed_and_name_the_nearest_word() -> None:
    error = refused("- {allow: a.example, class: model-provder}")
    assert "`model-provider`" in str(error.hint)


# sizes


@pytest.mark.parametrize(
    ("written", "size"),
    [("0", 0), ("512", 512), ("1KiB", 1024), ("32MiB", 33_554_432), ("4GiB", 4_294_967_296)],
)
def test_sizes_are_binary_and_exact(written: str, size: int) -> None:
    assert load_rules(f"- {{proxy: a.example, max-body: {written}}}")[0].max_body_bytes == size


# internal


@pytest.mark.parametrize(
    ("entry", "code"),
    [
        ("{host: app.example, networks: [8.8.8.0/24], ports: [80]}", "network-public"),
        ("{host: app.example, networks: [0.0.0.0/0], ports: [80]}", "network-public"),
        ('{host: app.example, networks: ["::/0"], ports: [80]}', "network-never"),
        ("{host: app.example, networks: [169.254.169.254/32], ports: [80]}", "network-never"),
        ("{host: app.example, networks: [169.254.0.0/16], ports: [80]}", "network-never"),
        ('{host: app.example, networks: ["fd00:ec2::254/128"], ports: [80]}', "network-never"),
        ('{host: app.example, networks: ["::ffff:10.0.0.0/104"], ports: [80]}', "network-never"),
        ("{host: app.example, networks: [100.63.255.255/32], ports: [80]}", "network-public"),
        ("{host: app.example, networks: [10.20.0.5/24], ports: [80]}", "network-unclear"),
        ("{host: app.example, networks: [10.20.0], ports: [80]}", "network-unclear"),
        ("{host: app.example, networks: [], ports: [80]}", "empty-list"),
        ("{host: app.example, networks: [10.20.0.0/24]}", "missing-key"),
        ("{host: app.example, ports: [80]}", "missing-key"),
        ('{host: "*.example.com", networks: [10.20.0.0/24], ports: [80]}', "wildcard-not-here"),
        ("{host: metadata.google.internal, networks: [10.20.0.0/24], ports: [80]}", "metadata-name"),
        ("{host: 10.0.0.5, networks: [10.20.0.0/24], ports: [80]}", "address-in-rule"),
        ("app.example", "not-a-mapping"),
    ],
)
def test_an_internal_entry_cannot_lift_a_fixed_denial(entry: str, code: str) -> None:
    with pytest.raises(PolicyError) as caught:
        load_policy_text(f"version: 1\ninternal:\n  - {entry}\n", "policy.yaml")
    assert caught.value.code == code


@pytest.mark.parametrize("network", ["100.64.0.0/24", "10.0.0.0/8", "127.0.0.1/32", "fd12::/64", "::1/128"])
def test_an_internal_entry_can_open_private_shared_and_loopback_networks(network: str) -> None:
    text = f'version: 1\ninternal:\n  - {{host: app.example, networks: ["{network}"], ports: [80]}}\n'
    assert str(load(text).internal[0].networks[0]) == network


def test_r153_networks_of_both_families_load_and_bad_lists_are_refused() -> None:
    networks = "[10.1.0.0/16, 'fd00:1::/48', 10.1.0.0/16]"
    policy = load(f"version: 1\ninternal:\n  - {{host: a.example, networks: {networks}, ports: [443]}}")
    assert [network.version for network in policy.internal[0].networks] == [4, 6]
    assert [note.code for note in policy.notes] == ["listed-twice"]
    for broken in ("networks: []", "networks: <html>", "networks: {v4: []}", "ports: [443]"):
        with pytest.raises(PolicyError):
            load(f"version: 1\ninternal:\n  - {{host: a.example, {broken}}}")


# includes


def test_include_joins_presets_and_files_beside_and_keeps_origins(tmp_path: Path) -> None:
    (tmp_path / "team.yaml").write_text("version: 1\nrules:\n  - deny: evil.example\n")
    main = tmp_path / "policy.yaml"
    main.write_text("version: 1\ninclude: [python-docs, team.yaml]\nrules:\n  - allow: evil.example\n")
    rules = load_policy(main).rules
    origins = {rule.host.text: rule.origin for rule in rules if rule.level is Verdict.ALLOW}
    assert origins["evil.example"] == "policy.yaml:4"
    assert origins["docs.python.org"].startswith("preset:python-docs:")
    assert [(rule.origin, rule.level) for rule in rules if rule.level is Verdict.DENY] == [
        ("team.yaml:3", Verdict.DENY)
    ]


def test_r010_a_layer_shows_in_the_origin_and_its_denial_is_not_lost(tmp_path: Path) -> None:
    (tmp_path / "user.yaml").write_text("version: 1\nrules:\n  - allow: evil.test\n  - deny: deny.test\n")
    main = tmp_path / "policy.yaml"
    main.write_text(
        "version: 1\ninclude: [user.yaml]\nrules:\n  - allow: allowed.test\n  - allow: deny.test\n"
    )
    rules = load_policy(main).rules
    assert ("deny.test", Verdict.DENY, "user.yaml:4") in [(r.host.text, r.level, r.origin) for r in rules]
    assert ("evil.test", "user.yaml:3") in [(r.host.text, r.origin) for r in rules]


def test_a_diamond_of_includes_counts_each_file_once(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text("version: 1\ninclude: [c.yaml]\n")
    (tmp_path / "b.yaml").write_text("version: 1\ninclude: [c.yaml]\n")
    (tmp_path / "c.yaml").write_text("version: 1\nrules: [{allow: c.example}]\n")
    main = tmp_path / "policy.yaml"
    main.write_text("version: 1\ninclude: [a.yaml, b.yaml]\n")
    assert len(load_policy(main).rules) == 1


def test_the_stricter_word_of_two_files_holds(tmp_path: Path) -> None:
    (tmp_path / "base.yaml").write_text(
        "version: 1\nunknown: ask\nhold: 10s\nlimits: {memory: 1GiB, processes: 9}\nexec: {allow: [git]}\n"
    )
    main = tmp_path / "policy.yaml"
    main.write_text(
        "version: 1\ninclude: [base.yaml]\nunknown: deny\nlimits: {memory: 2GiB}\nexec: {mode: any}\n"
    )
    policy = load_policy(main)
    assert (policy.unknown, policy.hold_s) == ("deny", 10.0)
    assert (policy.limits.memory_bytes, policy.limits.processes) == (1 << 30, 9)
    assert policy.exec is not None
    assert (policy.exec.mode, policy.exec.allow) == ("listed", ("git",))


def test_the_smallest_of_each_limit_holds_whichever_file_it_stands_in(tmp_path: Path) -> None:
    (tmp_path / "base.yaml").write_text(
        "version: 1\nlimits: {open-files: 100, file-size: 1GiB, time: 1h, upload: 3}\n"
    )
    main = tmp_path / "policy.yaml"
    main.write_text(
        "version: 1\ninclude: [base.yaml]\n"
        "limits: {open-files: 200, file-size: 1MiB, time: 90s, connections: 4}\n"
    )
    limits = load_policy(main).limits
    assert (limits.open_files, limits.file_size_bytes, limits.time_s) == (100, 1 << 20, 90.0)
    assert (limits.connections, limits.upload_bytes, limits.memory_bytes) == (4, 3, None)


def _include_error(tmp_path: Path, name: str) -> PolicyError:
    main = tmp_path / "policy.yaml"
    main.write_text(f"version: 1\ninclude:\n  - {name}\n")
    with pytest.raises(PolicyError) as caught:
        load_policy(main)
    assert caught.value.problems[0].origin.endswith(":3")
    return caught.value


@pytest.mark.parametrize(
    "name", ["../outside.yaml", "sub/../../outside.yaml", "link.yaml", "linked/outside.yaml"]
)
def test_an_include_does_not_leave_the_folder(tmp_path: Path, name: str) -> None:
    inner = tmp_path / "inner"
    (inner / "sub").mkdir(parents=True)
    (tmp_path / "outside.yaml").write_text("version: 1\nrules: [{allow: evil.example}]\n")
    (inner / "link.yaml").symlink_to(tmp_path / "outside.yaml")
    (inner / "linked").symlink_to(tmp_path)
    assert _include_error(inner, name).code == "include-outside"


def test_an_absolute_include_is_refused(tmp_path: Path) -> None:
    (tmp_path / "outside.yaml").write_text("version: 1\n")
    inner = tmp_path / "inner"
    inner.mkdir()
    assert _include_error(inner, str(tmp_path / "outside.yaml")).code in (
        "include-outside",
        "include-unknown",
    )


def test_an_include_may_be_in_a_folder_below(tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "team.yaml").write_text("version: 1\nrules: [{allow: a.example}]\n")
    main = tmp_path / "policy.yaml"
    main.write_text("version: 1\ninclude: [sub/team.yaml]\n")
    assert load_policy(main).rules[0].origin == "sub/team.yaml:2"


def test_an_include_may_be_a_link_that_stays_inside(tmp_path: Path) -> None:
    """A Kubernetes ConfigMap mounts every file as a link into a folder beside it."""
    (tmp_path / "..data").mkdir()
    (tmp_path / "..data" / "team.yaml").write_text("version: 1\nrules: [{allow: a.example}]\n")
    (tmp_path / "team.yaml").symlink_to("..data/team.yaml")
    main = tmp_path / "policy.yaml"
    main.write_text("version: 1\ninclude: [team.yaml]\n")
    assert len(load_policy(main).rules) == 1


def test_a_preset_that_does_not_exist_is_refused_with_the_nearest(tmp_path: Path) -> None:
    error = _include_error(tmp_path, "pyton-docs")
    assert error.code == "include-unknown"
    assert "python-docs" in str(error.hint)


def test_a_cycle_of_includes_is_refused(tmp_path: Path) -> None:
    (tmp_path / "b.yaml").write_text("version: 1\ninclude:\n  - policy.yaml\n")
    assert _include_error(tmp_path, "b.yaml").code == "include-cycle"


def test_includes_nest_eight_deep_and_no_deeper(tmp_path: Path) -> None:
    for depth in range(12):
        (tmp_path / f"f{depth}.yaml").write_text(f"version: 1\ninclude:\n  - f{depth + 1}.yaml\n")
    (tmp_path / "f12.yaml").write_text("version: 1\n")
    assert _include_error(tmp_path, "f0.yaml").code == "include-too-many"
    main = tmp_path / "policy.yaml"
    main.write_text("version: 1\ninclude: [f6.yaml]\n")
    load_policy(main)


def test_a_fault_in_an_include_names_the_include(tmp_path: Path) -> None:
    (tmp_path / "team.yaml").write_text("version: 1\nrulse: []\n")
    main = tmp_path / "policy.yaml"
    main.write_text("version: 1\ninclude: [team.yaml]\n")
    with pytest.raises(PolicyError) as caught:
        load_policy(main)
    assert caught.value.problems[0].origin == "team.yaml:2"


def test_text_without_a_file_takes_presets_only() -> None:
    assert load_policy_text("version: 1\ninclude: [python-docs]").rules
    with pytest.raises(PolicyError, match="include-not-possible"):
        load_policy_text("version: 1\ninclude: [team.yaml]")


# files


def test_a_pipe_a_folder_and_a_missing_file_are_refused_without_waiting(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.yaml")
    codes = {}
    for name in ("pipe.yaml", ".", "missing.yaml"):
        with pytest.raises(PolicyError) as caught:
            load_policy(tmp_path / name)
        codes[name] = caught.value.code
    assert codes == {
        "pipe.yaml": "file-not-regular",
        ".": "file-not-regular",
        "missing.yaml": "file-not-found",
    }


def test_a_huge_file_is_refused_without_reading_it(tmp_path: Path) -> None:
    huge = tmp_path / "policy.yaml"
    with huge.open("wb") as file:
        file.truncate(1 << 40)  # sparse
    with pytest.raises(PolicyError, match="file-too-large"):
        load_policy(huge)


def test_bytes_that_are_no_utf8_are_refused_with_their_line(tmp_path: Path) -> None:
    path = tmp_path / "policy.yaml"
    path.write_bytes(b"version: 1\nunknown: d\xffny\n")
    with pytest.raises(PolicyError) as caught:
        load_policy(path)
    assert (caught.value.code, caught.value.problems[0].origin) == ("file-not-utf8", "policy.yaml:2")


def test_a_byte_order_mark_changes_nothing(tmp_path: Path) -> None:
    path = tmp_path / "policy.yaml"
    path.write_bytes(b"\xef\xbb\xbfversion: 1\n")
    assert load_policy(path).digest == DENY_ALL.digest


def test_json_is_a_policy_too() -> None:
    assert load('{"version": 1, "rules": [{"allow": "a.example"}]}').rules[0].host.name == "a.example"


# the digest


def test_the_digest_ignores_comments_order_formatting_and_where_a_rule_stands(tmp_path: Path) -> None:
    (tmp_path / "part.yaml").write_text("version: 1\nrules: [{allow: b.example}]\n")
    main = tmp_path / "policy.yaml"
    main.write_text(
        "# a comment\nversion: 1\ninclude: [part.yaml]\nrules:\n\n  - allow: A.example\n    ports: [443]\n"
    )
    flat = load('version: 1\nrules: [{"allow": "b.example"}, {allow: a.example, protocol: tls}]')
    assert load_policy(main).digest == flat.digest


@pytest.mark.parametrize(
    "change",
    [
        "rules: [{allow: b.example}]",
        "rules: [{proxy: a.example}]",
        "rules: [{allow: a.example, ports: [80]}]",
        "rules: [{allow: a.example, phases: [work]}]",
        "rules: [{allow: a.example}]\nrubric: [b.example]",
        "rules: [{allow: a.example}]\nunknown: ask",
        "rules: [{allow: a.example}]\nexec: {}",
        "rules: [{allow: a.example}]\nlimits: {processes: 3}",
        "rules: [{allow: a.example}]\nfiles: {write: [.]}",
    ],
)
def test_the_digest_follows_every_change_of_meaning(change: str) -> None:
    assert load(f"version: 1\n{change}").digest != load("version: 1\nrules: [{allow: a.example}]").digest


def test_every_preset_loads() -> None:
    assert load_preset("rubric/harness2").rubric[2].host == HostPattern("hf.co", True)
    hosts = {entry.host.text for entry in load_preset("rubric/harness2").rubric}
    # google-research/harness2, docs/EXPERIMENTS.md
    assert hosts == {"huggingface.co", "hf.co", "*.hf.co", "github.com", "raw.githubusercontent.com"}
