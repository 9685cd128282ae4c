"""What lint says, and that it keeps quiet about an ordinary policy."""

from __future__ import annotations

import time

import pytest
from policy_texts import load

from stockade.policy.codes import LINT_CODES
from stockade.policy.lint import lint_policy
from stockade.policy.load import list_presets, load_preset
from stockade.policy.model import Finding


def lint(text: str) -> list[Finding]:
    """Findings about a text. It gets an empty `exec:` if it has none, which lint would remark."""
    rest = "" if "exec:" in text else "\nexec: {}\n"
    return lint_policy(load(f"version: 1\n{text}{rest}"))


def codes(text: str) -> list[str]:
    return [finding.code for finding in lint(text)]


def test_an_ordinary_policy_has_no_findings() -> None:
    assert (
        codes(
            """\
rules:
  - {allow: docs.python.org, class: docs}
  - {allow: "*.docs.test"}
  - {allow: app.test, ports: [8080], protocol: http}
  - {deny: paste.example}
rubric: [rubric.test]
internal: [{host: app.test, networks: [10.20.0.0/24], ports: [8080]}]
exec: {allow: [/usr/bin/ls]}
files: {write: [.]}
"""
        )
        == []
    )


_RULE = "rules: [{allow: a.example}]\n"
_INTERNAL = "internal: [{host: a.example, networks: [10.0.0.0/24], ports: [443]}]"


@pytest.mark.parametrize(
    ("text", "code", "line"),
    [
        ("rules: [{allow: bücher.example}]", "name-converted", 2),
        ('rules: [{allow: "*.corp"}]', "wildcard-whole-zone", 2),
        ("rules: [{allow: a.example}, {allow: a.example}]", "rule-redundant", 2),
        ('rules:\n  - allow: "*.internal"', "metadata-below", 3),
        ("rules: [{allow: a.example, protocol: http}]", "plain-http", 2),
        ("rules: []", "nothing-permitted", 0),
        ("rules: [{proxy: a.example, methods: [GET]}]", "inspection-needed", 2),
        ("rules: [{allow: a.example}]\nunknown: ask", "unknown-asks", 3),
        ("rules: [{allow: a.example}]\nhold: 5m", "hold-without-ask", 0),
        ("rules: [{allow: a.example}]\nexec: {mode: any}", "exec-any", 3),
        ("rules: [{allow: a.example}]\nfiles: {write: [/srv]}", "write-outside", 3),
        ("rules: [{allow: a.example, class: internal}]", "rule-without-internal", 2),
        (_INTERNAL, "internal-without-rule", 2),
        (
            _RULE + _INTERNAL.replace("443", "443, 80"),
            "internal-port-unused",
            3,
        ),
        (
            _RULE + _INTERNAL.replace("0/24", "0/8"),
            "network-broad",
            3,
        ),
        (
            _RULE + _INTERNAL.replace("10.0.0.0/24", "100.100.0.0/16"),
            "metadata-in-network",
            3,
        ),
        (
            _RULE + "catalogue: [{class: docs, hosts: [b.test]}, {class: paste, hosts: [b.test]}]",
            "catalogue-conflict",
            3,
        ),
        ("rules: [{allow: a.example, phases: [scoring]}]\nrubric: [a.example]", "rubric-hides-rule", 2),
    ],
)
def test_each_finding_has_its_code_and_line(text: str, code: str, line: int) -> None:
    found = [finding for finding in lint(text) if finding.code == code]
    assert found, codes(text)
    assert found[0].origin == (f"policy.yaml:{line}" if line else "policy.yaml")


def test_r005_a_name_and_its_parent_are_accepted_and_warned() -> None:
    found = lint('rules:\n  - allow: api.allowed.test\n  - allow: "*.allowed.test"')
    assert [(finding.code, finding.origin) for finding in found] == [("rule-redundant", "policy.yaml:3")]
    assert "policy.yaml:4" in found[0].message


def test_r005_rules_that_differ_in_port_phase_or_identity_are_not_redundant() -> None:
    rules = """\
rules:
  - {allow: api.allowed.test, ports: [443, 8443], protocol: tls}
  - {allow: a.allowed.test, identities: [grader]}
  - {allow: "*.allowed.test", phases: [work]}
"""
    assert codes(rules) == []


def test_r012_deny_star_hides_every_allow() -> None:
    found = lint('rules:\n  - allow: allowed.test\n  - deny: "*"')
    assert [(finding.code, finding.origin) for finding in found] == [("deny-hides-all", "policy.yaml:4")]
    assert "hides every allow" in found[0].message


def test_a_denial_hides_a_rule_whatever_the_order() -> None:
    for rules in ("[{deny: '*.x.test'}, {allow: a.x.test}]", "[{allow: a.x.test}, {deny: '*.x.test'}]"):
        assert codes(f"rules: {rules}") == ["deny-hides-rule"]
    assert codes("rules: [{deny: '*.x.test'}, {allow: x.test}]") == []
    assert codes("rules: [{deny: a.x.test, ports: [80]}, {allow: a.x.test}]") == []


def test_a_proxy_rule_hides_an_allow_for_the_same_name() -> None:
    assert codes("rules: [{proxy: a.test}, {allow: a.test}]") == ["proxy-hides-allow"]
    assert codes("rules: [{proxy: a.corp.test}, {allow: '*.corp.test'}]") == []


def test_a_path_in_a_denial_closes_a_tunnelled_host() -> None:
    found = lint("rules:\n  - allow: hub.test\nrubric:\n  - {host: hub.test, paths: [/a/**]}")
    assert [(finding.code, finding.origin) for finding in found] == [("path-closes-host", "policy.yaml:5")]
    assert codes("rules: [{deny: hub.test, paths: [/a/**]}, {allow: '*.test'}]")[-1] == "path-closes-host"
    visible = "rules: [{proxy: hub.test, protocol: http, methods: [GET]}, {deny: hub.test, paths: [/a/**]}]"
    assert "path-closes-host" not in codes(visible)


def test_r029_a_code_host_alone_is_warned_with_its_companions() -> None:
    found = [finding for finding in lint("rules: [{allow: github.com}]") if finding.code == "shared-place"]
    assert "raw files" in found[0].message


def test_r048_a_resolver_in_a_rule_is_warned() -> None:
    assert "resolver-allowed" in codes("rules: [{allow: doh.test}]")
    assert "resolver-allowed" in codes("rules: [{allow: dns.google}]")
    wide = "rules: [{allow: '*.provider.test'}]\ncatalogue: [{class: resolver, hosts: [names.provider.test]}]"
    assert "resolver-allowed" in codes(wide)
    assert "resolver-allowed" not in codes("rules: [{allow: names.test}]")


@pytest.mark.parametrize(
    "name", ["blob.shared.test", "usercontent.test", "github.io", "s3.amazonaws.com", "amazonaws.com"]
)
def test_r088_a_wildcard_over_a_shared_suffix_is_warned(name: str) -> None:
    assert codes(f'rules: [{{allow: "*.{name}"}}]') == ["wildcard-shared"]


@pytest.mark.parametrize("place", ["code-host", "object-store", "paste", "dataset-hub"])
def test_a_class_of_shared_things_is_a_way_out(place: str) -> None:
    assert "shared-place" in codes(f"rules: [{{allow: a.example, class: {place}}}]")
    narrow = f"rules: [{{proxy: a.example, class: {place}, paths: [/mine/**]}}]"
    assert "shared-place" not in codes(narrow)


def lint_exec(keys: str, rest: str = "") -> list[tuple[str, str, str]]:
    found = lint(f"rules: [{{allow: a.example}}]\nexec: {{{keys}}}\n{rest}")
    return [(finding.code, finding.severity, finding.message) for finding in found]


@pytest.mark.parametrize(
    "program",
    ["python3", "/usr/bin/python3.11", "/usr/bin/python3.*", "bash", "node", "perl", "gawk", "npm", "vi"],
)
def test_r144_an_interpreter_on_the_list_is_warned(program: str) -> None:
    ((code, severity, message),) = lint_exec(f'allow: [ls, "{program}"]')
    assert (code, severity) == ("exec-interpreter", "warning")
    assert program in message


@pytest.mark.parametrize(
    "program",
    [
        *("env", "/usr/bin/env", "xargs", "find", "git", "make", "timeout", "ssh", "nice"),
        *("gcc", "x86_64-linux-gnu-g++-12", "cc", "clang-14"),
    ],
)
def test_r144_a_program_that_starts_others_is_noted(program: str) -> None:
    """Not warned: each of the others is judged as well."""
    ((code, severity, message),) = lint_exec(f"allow: [ld, {program}]")
    assert (code, severity) == ("exec-starts-others", "note")
    assert program in message


@pytest.mark.parametrize("program", ["busybox", "/bin/busybox", "toybox-x86_64", "coreutils"])
def test_r144_a_file_that_is_many_programs_is_warned(program: str) -> None:
    assert [code for code, *_ in lint_exec(f"allow: [{program}]")] == ["exec-many-in-one"]


@pytest.mark.parametrize(
    "program",
    ["ld.so", "/lib64/ld-linux-x86-64.so.2", "/lib/ld-musl-x86_64.so.1", "/lib/ld-linux-aarch64.so.1"],
)
def test_r142_the_loader_on_the_list_is_warned(program: str) -> None:
    assert [code for code, *_ in lint_exec(f"allow: [{program}]")] == ["exec-loader"]


@pytest.mark.parametrize(
    "program", ["as", "/usr/bin/ls", "pythonic", "ld", "cmp", "/usr/lib/git-core/*", "shuf"]
)
def test_r144_an_ordinary_program_is_not_warned(program: str) -> None:
    assert lint_exec(f'allow: ["{program}"]') == []


def test_each_kind_of_program_is_warned_of_once_and_shortly() -> None:
    ((code, _, message),) = lint_exec("allow: [sh, bash, dash, zsh, ksh, python3]")
    assert code == "exec-interpreter"
    assert "sh, bash, dash, zsh and 2 more" in message


def test_a_listed_script_brings_its_interpreter() -> None:
    found = lint_exec("allow: [/opt/x/deploy.sh, /opt/x/tool]")
    assert [code for code, *_ in found] == ["exec-script"]
    assert "interpreter" in found[0][2]


def test_a_file_of_the_workspace_counts_as_it_stands() -> None:
    assert [code for code, *_ in lint_exec("allow: [./tools/check]")] == ["exec-from-workspace"]


@pytest.mark.parametrize("pattern", ["/usr/bin/*", "/usr/local/bin/*"])
def test_a_pattern_over_a_whole_folder_of_programs_is_warned(pattern: str) -> None:
    assert [code for code, *_ in lint_exec(f'allow: ["{pattern}"]')] == ["exec-pattern-broad"]


def test_the_levels_that_open_something_are_told_with_their_line() -> None:
    found = lint("rules: [{allow: a.example}]\nexec:\n  code: jit\n  unix-sockets: true")
    assert [(finding.code, finding.severity, finding.origin) for finding in found] == [
        ("exec-jit", "warning", "policy.yaml:4"),
        ("exec-unix-sockets", "note", "policy.yaml:5"),
    ]
    assert lint_exec("code: closed, unix-sockets: false") == []


def test_the_include_that_opened_a_level_is_named() -> None:
    found = {finding.code: finding for finding in lint("include: [exec/node]\nexec: {allow: [gcc]}")}
    assert found["exec-jit"].origin.startswith("preset:exec/node:")
    assert found["exec-jit"].better is not None
    assert "exec/node" in found["exec-jit"].better


@pytest.mark.parametrize(
    ("library", "written", "severity"),
    [
        (".venv", ".venv", "warning"),
        ("./.venv/", ".venv", "warning"),
        (".venv", ".venv/cache", "warning"),
        ("/opt/x", "/opt/x", "warning"),
        (".venv", ".", "note"),
        ("a/b", "./a", "note"),
        ("~/x/y", "~/x", "note"),
    ],
)
def test_writable_xor_executable_is_told(library: str, written: str, severity: str) -> None:
    found = lint_exec(f'libraries: ["{library}"]', f'files: {{write: ["{written}"]}}')
    assert [(code, level) for code, level, _ in found if code == "library-writable"] == [
        ("library-writable", severity)
    ]


@pytest.mark.parametrize(
    ("library", "written"), [(".venv", "out"), ("/a", "a"), (".venv", ".venv2"), ("~/a", "a")]
)
def test_other_folders_may_be_written(library: str, written: str) -> None:
    found = lint_exec(f'libraries: ["{library}"]', f'files: {{write: ["{written}"]}}')
    assert "library-writable" not in [code for code, *_ in found]


def test_without_the_key_lint_says_what_that_means_and_what_to_include() -> None:
    found = lint_policy(load("version: 1\nrules: [{allow: a.example}]"))
    assert [finding.code for finding in found] == ["exec-launched-only"]
    assert "only the launched command" in found[0].message
    assert found[0].better is not None
    for preset in (name for name in list_presets() if name.startswith("exec/")):
        assert preset in found[0].better


def test_the_most_serious_findings_come_first_and_have_known_codes() -> None:
    found = lint("rules:\n  - {allow: bücher.example, protocol: http}\n  - {allow: '*.github.io'}")
    assert [finding.severity for finding in found] == ["warning", "note", "note"]
    assert {finding.code for finding in found} <= set(LINT_CODES)


@pytest.mark.parametrize("name", list_presets())
def test_presets_hide_nothing_and_repeat_nothing(name: str) -> None:
    faults = {"rule-redundant", "deny-hides-rule", "proxy-hides-allow", "word-unquoted", "name-converted"}
    faults |= {"listed-twice", "exec-pattern-broad", "exec-from-workspace", "exec-loader", "exec-many-in-one"}
    assert not faults & {finding.code for finding in lint_policy(load_preset(name))}


def test_ten_thousand_rules_are_linted_without_looking_at_all_pairs() -> None:
    rules = "\n".join(f"  - allow: h{number}.example" for number in range(10_000))
    policy = load(f"version: 1\nrules:\n{rules}\n  - {{deny: '*.example', paths: [/a]}}")
    started = time.process_time()
    lint_policy(policy)
    assert time.process_time() - started < 10  # all pairs would be 10^8 comparisons, minutes
