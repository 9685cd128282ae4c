"""Each protection that `make prove-tests` switches off is still spelled as tests/mutations.toml has it."""

import tomllib
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
MUTATIONS = tomllib.loads((ROOT / "tests/mutations.toml").read_text())["mutation"]


@pytest.mark.parametrize("mutation", MUTATIONS, ids=[mutation["name"] for mutation in MUTATIONS])
def test_a_mutation_names_one_place_and_tests_that_exist(mutation: dict[str, Any]) -> None:
    assert (ROOT / mutation["file"]).read_text().count(mutation["old"]) == 1
    for test in mutation["tests"]:
        file, _, name = test.partition("::")
        assert not name or f"def {name.partition('[')[0]}(" in (ROOT / file).read_text(), test
