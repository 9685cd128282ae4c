"""Which folders may be named at all."""

from __future__ import annotations

import pytest

from stockade.errors import UserError
from stockade.sandbox.paths import probe_path


@pytest.mark.parametrize("path", ["/", "/proc", "/proc/1", "/sys", "/dev", "/boot"])
def test_the_machine_s_own_places_are_never_shown(path: str) -> None:
    with pytest.raises(UserError, match="path-not-shown"):
        probe_path(path, "files.write")
