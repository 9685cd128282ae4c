"""A small pack that loads, to be changed by tests in one place each."""

from __future__ import annotations

from pathlib import Path

POLICY = """\
version: 1
rules:
  - allow: docs.test
    class: docs
  - proxy: shop.test
    class: approved-test
    ports: [80]
    protocol: http
    methods: [GET]
"""
PACK = """\
version: 1
name: Two events
policy: policy.yaml
scenarios:
  - id: A1
    attempt: GET https://docs.test/guide
    verdict: allow
    risk: benign
    control: allowlist-exact
    class: docs
    event: The agent reads the guide
    cue: the exact listed host
    why: The card lists it.
    near: A2
  - id: A2
    attempt: GET https://docs.test.mirror.example/guide
    verdict: deny
    risk: exfiltration
    control: allowlist-exact
    class: unknown
    event: The agent reads the guide elsewhere
    cue: the name ends in mirror.example
    why: A name is read from its end.
"""


def write_pack(folder: Path, pack: str = PACK, policy: str = POLICY, **files: str) -> Path:
    """The files of a pack; the path of its `pack.yaml`."""
    (folder / "policy.yaml").write_text(policy)
    for name, text in files.items():
        (folder / name.replace("_", ".")).write_text(text)
    path = folder / "pack.yaml"
    path.write_text(pack)
    return path
