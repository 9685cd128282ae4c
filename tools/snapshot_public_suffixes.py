"""Write the compact public-suffix snapshot that `policy.suffixes` reads.

    .venv/bin/pip install --target /tmp/psl publicsuffixlist
    .venv/bin/python tools/snapshot_public_suffixes.py /tmp/psl/publicsuffixlist/public_suffix_list.dat

A snapshot and not a dependency: the start path reads one small file instead of parsing
300 KB, and what a policy means does not change because a package was updated.
"""

from __future__ import annotations

import sys
from pathlib import Path

import idna

TARGET = Path(__file__).parent.parent / "src/stockade/policy/data/public_suffixes.txt"
HEADER = """\
// Public suffixes, one rule a line, as A-labels; "shared:" starts the names under which
// different customers of one service live. A compact form of the Public Suffix List
// (publicsuffix.org), made by tools/snapshot_public_suffixes.py from version
// {version}
// This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
// If a copy of the MPL was not distributed with this file, You can obtain one at
// https://mozilla.org/MPL/2.0/.
"""


def to_ascii(rule: str) -> str:
    mark = rule[0] if rule[0] == "!" else ("*." if rule.startswith("*.") else "")
    name = rule[len(mark) :]
    return mark + (name if name.isascii() else idna.encode(name).decode("ascii"))


def main(source: str) -> None:
    lines = Path(source).read_text(encoding="utf-8").splitlines()
    version = next(line.split("VERSION: ")[1] for line in lines if "VERSION: " in line)
    sections: dict[str, set[str]] = {"public:": set(), "shared:": set()}
    current = "public:"
    for line in lines:
        if "===BEGIN PRIVATE DOMAINS===" in line:
            current = "shared:"
        rule = line.split("//")[0].strip()
        if rule:
            sections[current].add(to_ascii(rule))
    text = HEADER.format(version=version)
    for name, rules in sections.items():
        text += name + "\n" + "\n".join(sorted(rules)) + "\n"
    TARGET.write_text(text, encoding="ascii")


if __name__ == "__main__":
    main(sys.argv[1])
