"""`stockade prove` as a whole: an attack is blocked, arrives without the layer, and nothing stays behind."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest

from stockade.prove.sealed import SEALED_VARIABLE

pytestmark = pytest.mark.needs("world")

COMMAND = str(Path(sys.prefix) / "bin" / "stockade")
LIMIT_S = 15.0


def prove(*words: str) -> tuple[int, dict[str, dict[str, str]]]:
    done = subprocess.run(
        [COMMAND, "prove", "--json", *words], capture_output=True, text=True, timeout=LIMIT_S
    )
    report = json.loads(done.stdout)
    assert report["exit_code"] == done.returncode
    return done.returncode, {one["id"]: one for one in report["attacks"]}


def test_an_attack_is_blocked_and_arrives_when_the_layer_that_stops_it_is_given_up() -> None:
    code, attacks = prove("--only", "metadata-decimal")
    assert (code, attacks["metadata-decimal"]["result"]) == (0, "blocked")
    assert attacks["metadata-decimal"]["stopped_by"].startswith("gateway: ")
    code, attacks = prove("--only", "metadata-decimal", "--without-layer", "room")
    assert (code, attacks["metadata-decimal"]["result"]) == (4, "leaked")


def test_ablation_says_which_layer_alone_stops_an_attack() -> None:
    done = subprocess.run(
        [COMMAND, "prove", "--json", "--ablate", "--only", "metadata-decimal"],
        capture_output=True,
        text=True,
        timeout=LIMIT_S,
    )
    matrix = json.loads(done.stdout)["matrix"]
    assert matrix["held_alone_by"]["room"] == ["metadata-decimal"]
    [row] = matrix["rows"]
    assert (row["open"], row["full"], row["without"]["room"]) == ("arrived", "blocked", "arrived")
    others = {cell for layer, cell in row["without"].items() if layer != "room"}
    assert others == {"blocked"}


def test_nothing_is_imported_from_the_folder_in_which_prove_is_started(tmp_path: Path) -> None:
    planted = tmp_path / "stockade"
    planted.mkdir()
    (planted / "__init__.py").write_text("raise SystemExit('planted')\n")
    control = subprocess.run(
        [sys.executable, "-m", "stockade"], cwd=tmp_path, capture_output=True, text=True, timeout=LIMIT_S
    )
    assert control.stderr == "planted\n"
    done = subprocess.run(
        [COMMAND, "prove", "--only", "metadata-decimal"],
        cwd=tmp_path, capture_output=True, text=True, timeout=LIMIT_S,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr


# --- the seal ------------------------------------------------------------------------------------

LINK = "ip link add out type veth peer name beside && ip link set out up"


@pytest.mark.parametrize(
    ("before", "code", "said"),
    [
        (LINK, 4, "not-sealed: this process is not sealed off the network: out is up"),
        (f"{LINK} && ip link set beside up", 4, "not-sealed: this process is not sealed off the network: "),
        ("true", 3, "no-range: "),
    ],
)
def test_a_lane_attacks_nothing_where_a_link_leads_out_nor_where_no_world_is(
    before: str, code: int, said: str
) -> None:
    script = f"{before} && exec {sys.executable} -m stockade.prove.lane"
    environment = {key: value for key, value in os.environ.items() if key != SEALED_VARIABLE}
    done = subprocess.run(
        ["unshare", "-Urn", "sh", "-c", script],
        input='{"id": "metadata-decimal", "evidence": "/nowhere"}\n',
        capture_output=True,
        text=True,
        env=environment,
        timeout=LIMIT_S,
    )
    assert (done.returncode, done.stdout) == (code, "")
    assert done.stderr.startswith(f"lane: {said}")
    assert "Traceback" not in done.stderr


@pytest.mark.needs("root")
def test_a_lane_in_a_range_that_has_lost_its_addresses_says_so() -> None:
    lane = f"ip addr flush dev range0 && exec {sys.executable} -m stockade.prove.lane"
    done = subprocess.run(
        [sys.executable, "-m", "stockade.prove.range", "--", "sh", "-c", lane],
        capture_output=True, text=True, timeout=LIMIT_S, stdin=subprocess.DEVNULL,
    )  # fmt: skip
    assert (done.returncode, done.stdout) == (3, "")
    assert done.stderr.startswith("lane: range-broken: the range is not whole: ")
    assert "Traceback" not in done.stderr


def test_a_lane_in_its_range_answers() -> None:
    with tempfile.TemporaryDirectory() as evidence:
        order = json.dumps({"id": "metadata-decimal", "evidence": evidence})
        done = subprocess.run(
            [sys.executable, "-m", "stockade.prove.lane"],
            input=order + "\n",
            capture_output=True,
            text=True,
            timeout=LIMIT_S,
        )
    ready, trial = map(json.loads, done.stdout.splitlines())
    assert ready == {"ready": True}
    assert trial["control"]["arrived"][0]["address"] == "169.254.169.254"
    assert trial["attempt"]["arrived"] == []


# --- the end ---------------------------------------------------------------------------------------


def marked(mark: str) -> dict[int, str]:
    """All processes that have the word in their environment, and their command lines."""
    found = {}
    for pid in filter(str.isdecimal, os.listdir("/proc")):
        try:
            if mark.encode() in Path("/proc", pid, "environ").read_bytes():
                found[int(pid)] = Path("/proc", pid, "cmdline").read_bytes().decode(errors="replace")
        except OSError:
            continue
    return found


def begun_runs(scratch: Path) -> set[str]:
    return {path.parent.name for path in scratch.glob("stockade-prove-*/ledger/*/records.jsonl")}


def control_groups(runs: set[str]) -> list[str]:
    names = [path.name for path in Path("/sys/fs/cgroup").glob("**/stockade-*")]
    return [name for name in names if name.removeprefix("stockade-") in runs]


def wait_for(what: object, limit_s: float = LIMIT_S) -> None:
    assert callable(what)
    deadline = time.monotonic() + limit_s
    while not what():
        assert time.monotonic() < deadline
        time.sleep(0.01)


@pytest.mark.slow
@pytest.mark.parametrize("ending", [None, signal.SIGINT, signal.SIGTERM])
def test_nothing_is_left_behind_by_an_interrupt_nor_by_a_normal_end(
    ending: signal.Signals | None, tmp_path: Path
) -> None:
    mark = f"PROVE_TEST_MARK={os.urandom(8).hex()}"
    name, _, value = mark.partition("=")
    chosen = ["metadata-decimal"] if ending is None else ["metadata"]
    process = subprocess.Popen(
        [COMMAND, "prove", *(word for one in chosen for word in ("--only", one))],
        env={**os.environ, name: value, "TMPDIR": str(tmp_path)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    wait_for(lambda: begun_runs(tmp_path))  # the first attack is tried, contained
    runs = begun_runs(tmp_path)
    assert marked(mark)
    if ending is not None:
        process.send_signal(ending)
    out, err = process.communicate(timeout=LIMIT_S)
    assert process.returncode == (0 if ending is None else 128 + ending), (out, err)
    assert (b"ended before the proof was complete" in err) is (ending is not None)
    assert marked(mark) == {}
    assert list(tmp_path.iterdir()) == []
    assert control_groups(runs) == []
