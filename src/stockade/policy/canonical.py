"""The effective policy as a document of the language itself, and its digest.

The document has no includes, comments or line numbers; loading it again gives the same
digest. The digest is over its sets: what stands in which order or file changes nothing
that is enforced, so it changes no digest either.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from stockade.policy.model import (
    BodyRule,
    CatalogueEntry,
    ExecPolicy,
    InternalEntry,
    Policy,
    RubricEntry,
    Rule,
)
from stockade.policy.quantities import write_duration, write_rate, write_size
from stockade.vocabulary import Verdict

DIGEST_FORM = "stockade-policy-1"  # goes into the hash, so another form gives other digests


def canonical_document(policy: Policy) -> dict[str, Any]:
    """The policy as JSON-like values that the loader takes."""
    document: dict[str, Any] = {
        "version": 1,
        "rules": [rule_document(rule) for rule in policy.rules],
        "rubric": [rubric_document(entry) for entry in policy.rubric],
        "internal": [internal_document(entry) for entry in policy.internal],
        "unknown": policy.unknown,
        "hold": write_duration(policy.hold_s),
        "catalogue": [_catalogue_document(entry) for entry in policy.catalogue],
        "files": _without_empty(
            {
                "read": list(policy.files.read),
                "write": list(policy.files.write),
                "hide": list(policy.files.hide),
            }
        ),
        "limits": _limits_document(policy),
    }
    if policy.exec is not None:
        document["exec"] = _exec_document(policy.exec)
    return document


def digest_policy(policy: Policy) -> str:
    """sha256 hex over the canonical document with its lists sorted."""
    from hashlib import sha256

    import msgspec

    document = _sorted_lists(canonical_document(policy))
    return sha256(DIGEST_FORM.encode() + b"\n" + msgspec.json.encode(document, order="sorted")).hexdigest()


def rule_document(rule: Rule) -> dict[str, Any]:
    """One rule with every default written out."""
    is_deny = rule.level is Verdict.DENY
    document = {
        rule.level.word: rule.host.text,
        "class": _word(rule.place),
        "why": rule.why,
        "ports": list(rule.ports),
        "protocol": _word(rule.protocol),
        "methods": list(rule.methods),
        "paths": [path.text for path in rule.paths],
        "phases": [phase.value for phase in rule.phases],
        "identities": [identity.value for identity in rule.identities],
        "credential": rule.credential and {"header": rule.credential.header, "env": rule.credential.env},
        "max-body": _written(write_size, rule.max_body_bytes),
        "max-query": _written(write_size, rule.max_query_bytes),
        "rate": _written(write_rate, rule.rate_per_s),
        "body": rule.body and _body_document(rule.body),
        "risk": _word(rule.risk),
        "control": _word(rule.control),
    }
    assert is_deny or (rule.ports and rule.protocol)
    return _without_empty(document)


def rubric_document(entry: RubricEntry) -> dict[str, Any]:
    return _without_empty(
        {"host": entry.host.text, "paths": [path.text for path in entry.paths], "why": entry.why}
    )


def internal_document(entry: InternalEntry) -> dict[str, Any]:
    return {
        "host": entry.host,
        "networks": [str(network) for network in entry.networks],
        "ports": list(entry.ports),
    }


def _catalogue_document(entry: CatalogueEntry) -> dict[str, Any]:
    return _without_empty(
        {
            "class": entry.place.value,
            "risk": _word(entry.risk),
            "control": _word(entry.control),
            "hosts": [host.text for host in entry.hosts],
        }
    )


def _exec_document(policy: ExecPolicy) -> dict[str, Any]:
    lists = {"allow": list(policy.allow), "libraries": list(policy.libraries)}
    return {
        "mode": policy.mode,
        **(lists if policy.mode == "listed" else {}),
        "code": policy.code,
        "unix-sockets": policy.unix_sockets,
    }


def _limits_document(policy: Policy) -> dict[str, Any]:
    limits = policy.limits
    return _without_empty(
        {
            "memory": _written(write_size, limits.memory_bytes),
            "processes": limits.processes,
            "open-files": limits.open_files,
            "file-size": _written(write_size, limits.file_size_bytes),
            "time": _written(write_duration, limits.time_s),
            "connections": limits.connections,
            "upload": _written(write_size, limits.upload_bytes),
        }
    )


def _body_document(body: BodyRule) -> dict[str, Any]:
    return _without_empty({"forbid-tools": list(body.forbid_tools), "graphql": list(body.graphql)})


def _word(word: Any) -> str | None:
    return None if word is None else str(word.value)


def _written(write: Callable[[Any], str], amount: float | None) -> str | None:
    return None if amount is None else write(amount)


def _without_empty(document: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in document.items() if value not in (None, [], {})}


def _sorted_lists(value: Any) -> Any:
    """Every list is a set in this language: sorted, and equal things once."""
    if isinstance(value, dict):
        return {key: _sorted_lists(item) for key, item in value.items()}
    if not isinstance(value, list):
        return value
    import msgspec

    encode = msgspec.json.Encoder(order="sorted").encode
    return [item for _, item in sorted({encode(item): item for item in map(_sorted_lists, value)}.items())]
