"""What a run pays for policies that it does not use."""

from __future__ import annotations

import subprocess
import sys

import pytest

CODE = """
import sys
{statement}
print([name for name in ("yaml", "idna", "difflib", "stockade.policy.parse") if name in sys.modules])
"""


@pytest.mark.parametrize(
    ("statement", "loaded"),
    [
        ("from stockade.policy.model import DENY_ALL", "[]"),
        ("from stockade.policy.load import load_policy", "['stockade.policy.parse']"),
    ],
)
def test_a_run_without_a_file_never_imports_a_yaml_parser(statement: str, loaded: str) -> None:
    command = [sys.executable, "-c", CODE.format(statement=statement)]
    assert subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip() == loaded
