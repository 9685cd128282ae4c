"""A technique of each network group, tried as `stockade prove` does: blocked, and leaked without the room."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec
import pytest

from stockade.prove.judge import judge
from stockade.prove.lane import READY
from stockade.prove.technique import load_catalogue
from stockade.prove.trial import Order, Result, Trial

pytestmark = [pytest.mark.kernel, pytest.mark.needs("world", "userns", "bwrap", "room")]

# Each is here because it stands on something of its own: the proxies without a policy, a zone, a page, the
# neighbour's room, a message by hand, TLS.
TRIED = (
    "metadata-percent",
    "internal-neighbour",
    "redirect-meta",
    "names-mixed",
    "names-nul",
    "dns-update",
    "http-pipelined",
    "tls-split-hello",
    "tls-second-hello",
)


Try = Callable[..., Trial]


@pytest.fixture(scope="module")
def try_it() -> Iterator[Try]:
    """One lane for all: a process, since its listeners end with it."""
    with (
        tempfile.TemporaryDirectory() as evidence,
        subprocess.Popen(
            [sys.executable, "-m", "stockade.prove.lane"], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        ) as lane,
    ):
        assert lane.stdin is not None
        assert lane.stdout is not None
        Path(evidence).chmod(0o777)
        assert lane.stdout.readline() == READY + b"\n"
        requests, answers = lane.stdin, lane.stdout

        def perform(name: str, *layers_off: str) -> Trial:
            order = Order(id=name, evidence=evidence, layers_off=layers_off)
            requests.write(msgspec.json.encode(order) + b"\n")
            requests.flush()
            return msgspec.json.decode(answers.readline(), type=Trial)

        yield perform


@pytest.mark.parametrize("name", TRIED)
def test_a_technique_is_blocked_and_leaks_without_the_room(try_it: Try, name: str) -> None:
    technique = next(one for one in load_catalogue() if one.id == name)
    contained = judge(technique, try_it(name))
    assert contained.result is Result.BLOCKED, contained.why
    loose = judge(technique, try_it(name, "room"))
    assert loose.result is Result.LEAKED, loose.why
