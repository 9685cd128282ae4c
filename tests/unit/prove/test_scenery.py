"""What stands around an attack: each state is found when it has changed, and only then."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from stockade.prove.scenery import PIECES, Scenery, foreign_program

Said = list[dict[str, Any]]
WORD = "0123456789ab"


@pytest.fixture
def put_up(tmp_path: Path) -> Iterator[Callable[..., Scenery]]:
    """`put_up("git", "secret")` in a fresh folder, in the open unless `is_open=False`."""
    made = []

    def make(*names: str, is_open: bool = True) -> Scenery:
        for folder in ("work", "shelf"):
            (tmp_path / folder).mkdir()
        scenery = Scenery(tmp_path, tmp_path / "work", tmp_path / "shelf", WORD, is_open)
        made.append(scenery)
        scenery.put_up(names)
        (tmp_path / "work" / "payload.py").touch()
        return scenery

    yield make
    for scenery in made:
        scenery.take_down()


def states(scenery: Scenery, said: Said | None = None) -> list[str]:
    seen = scenery.look(said or [])
    assert {one["what"] for one in seen} <= {"state"}
    return [one["name"] for one in seen]


def overwrite(path: str) -> None:
    Path(path).write_text(f"planted-{WORD}")


def plant_in_ledger(scenery: Scenery) -> None:
    (record,) = Path(scenery.facts["ledger"]).glob("*/*")
    with record.open("a") as file:
        file.write(f"planted-{WORD}\n")


def end_victim(scenery: Scenery) -> None:
    os.kill(scenery.facts["victim"], signal.SIGKILL)
    os.waitid(os.P_PID, scenery.facts["victim"], os.WEXITED | os.WNOWAIT)


CHANGES: dict[str, tuple[str, Callable[[Scenery], Any]]] = {
    "victim": ("victim-ended", end_victim),
    "settings": ("settings-changed", lambda s: overwrite(f"{work(s)}/.claude/settings.json")),
    "precious": ("file-overwritten", lambda s: overwrite(s.facts["precious"])),
    "ledger": ("ledger-changed", plant_in_ledger),
    "shared": ("fifo-read", lambda s: overwrite(f"{Path(s.facts['shared']).parent}/fifo.txt")),
}


def work(scenery: Scenery) -> Path:
    return Path(scenery._workspace)


@pytest.mark.parametrize("piece", CHANGES)
def test_a_change_is_seen_and_the_piece_as_it_was_is_not(put_up: Callable[..., Scenery], piece: str) -> None:
    state, change = CHANGES[piece]
    scenery = put_up(piece)
    assert states(scenery) == []
    change(scenery)
    assert states(scenery) == [state]


@pytest.mark.parametrize("piece", ["secret", "answers"])
def test_a_secret_counts_as_read_when_it_is_said_and_another_text_does_not(
    put_up: Callable[..., Scenery], piece: str
) -> None:
    scenery = put_up(piece)
    secret = Path(scenery.facts["secret"]).read_text()
    assert states(scenery, [{"result": "secret-0000"}]) == []
    assert states(scenery, [{"result": secret}]) == ["secret-read"]


@pytest.mark.parametrize("change", ["append", "remove"])
def test_a_policy_that_is_written_to_or_gone_is_changed(put_up: Callable[..., Scenery], change: str) -> None:
    scenery = put_up("policy-inside")
    policy = scenery.policy
    assert policy == work(scenery) / "policy.yaml"
    policy.write_text("version: 1\n")
    assert states(scenery) == []
    if change == "append":
        policy.write_text(f"version: 1\n# planted-{WORD}\n")
    else:
        policy.unlink()
    assert states(scenery) == ["policy-changed"]


def test_a_ledger_that_was_moved_away_is_changed(put_up: Callable[..., Scenery]) -> None:
    scenery = put_up("ledger")
    os.rename(scenery.facts["ledger"], f"{scenery.facts['ledger']}.away")
    assert states(scenery) == ["ledger-changed"]


def test_contained_the_ledger_is_the_run_s_own(put_up: Callable[..., Scenery], tmp_path: Path) -> None:
    scenery = put_up("ledger", is_open=False)
    assert "ledger" not in scenery.facts
    (tmp_path / "shelf" / "records").write_text("{}\n")
    assert states(scenery) == []
    overwrite(str(tmp_path / "shelf" / "records"))
    assert states(scenery) == ["ledger-changed"]


@pytest.mark.parametrize(
    ("mode", "found"), [(0o755, []), (0o4755, ["set-id-file"]), (0o2755, ["set-id-file"])]
)
def test_set_id_bits_are_seen_without_any_piece(
    put_up: Callable[..., Scenery], mode: int, found: list[str]
) -> None:
    scenery = put_up()
    (work(scenery) / "payload.py").chmod(mode)
    assert states(scenery) == found


@pytest.mark.parametrize(("size", "found"), [((12 << 20) - 1, []), (12 << 20, ["endless-file"])])
def test_a_file_of_twelve_mebibytes_is_endless(
    put_up: Callable[..., Scenery], size: int, found: list[str]
) -> None:
    scenery = put_up()
    os.truncate(work(scenery) / "payload.py", size)
    assert states(scenery) == found


def test_an_effect_that_the_payload_vouches_for_is_a_state(put_up: Callable[..., Scenery]) -> None:
    assert states(put_up(), [{"do": "x"}, {"effect": "memory-read"}]) == ["memory-read"]


def test_each_piece_that_a_technique_names_exists() -> None:
    from stockade.prove.stages import STAGES
    from stockade.prove.technique import load_catalogue

    for technique in load_catalogue():
        assert set(technique.before) <= set(PIECES), technique.id
        assert set(technique.stages) <= set(STAGES), technique.id


@pytest.mark.parametrize("convention", ["int80", "x32"])
def test_the_foreign_program_is_an_elf_file_that_lies_below_four_gigabytes(convention: str) -> None:
    """elf(5): entry point at byte 24, one program header whose address is at byte 64 + 16."""
    image = foreign_program(convention, "true")
    assert image[:5] == b"\x7fELF\x02"
    entry, address = (int.from_bytes(image[at : at + 8], "little") for at in (24, 80))
    assert address <= entry < address + len(image) < 1 << 32
    assert b"/bin/sh\0-c\0true\0" in image
