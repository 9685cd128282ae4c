"""The command line of `run`."""

import pytest

from stockade.errors import UserError
from stockade.run.options import parse_resolve


def test_resolve_takes_names_and_addresses_of_both_families() -> None:
    found = parse_resolve(["App.Test=10.20.0.5", "app.test=[fd00::5]", "other.test=::1"])
    assert {name: [str(a) for a in addresses] for name, addresses in found.items()} == {
        "app.test": ["10.20.0.5", "fd00::5"],
        "other.test": ["::1"],
    }


@pytest.mark.parametrize(
    "word",
    [
        "app.test",
        "app.test=",
        "=10.0.0.1",
        "app.test=nonsense",
        "10.0.0.1=10.0.0.2",
        "a b=1.2.3.4",
        "app.test=0x7f.1",
    ],
)
def test_anything_else_is_an_error_that_shows_the_word(word: str) -> None:
    with pytest.raises(UserError, match="bad-resolve") as caught:
        parse_resolve([word])
    assert word in str(caught.value) or "not appear" in str(caught.value)
