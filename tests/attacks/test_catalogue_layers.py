"""Attacks of the catalogue as the lane tries them: blocked, and leaked without the one layer that stops them.

A few for each layer; the whole matrix is `stockade prove --ablate`.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from stockade.prove.judge import judge
from stockade.prove.lane import Lane
from stockade.prove.technique import load_catalogue
from stockade.prove.trial import Judgement, Order, Result

pytestmark = [pytest.mark.kernel, pytest.mark.needs("world", "userns", "bwrap", "room")]

TECHNIQUES = {technique.id: technique for technique in load_catalogue()}
STOPPED_ALONE_BY = {
    "commands-listed-overwritten": "mounts",
    "commands-native-module": "mounts",
    "commands-preload": "mounts",
    "code-file-mapped-twice": "mounts",
    "code-writable-executable": "memfd",
    "code-read-implies-exec": "memfd",
    "code-own-memory-file": "landlock",
    "roads-fifo": "landlock",
    "calls-ring": "seccomp",
    "calls-keyring": "seccomp",
    "calls-set-id-file": "seccomp",
}
BLOCKED = (
    "commands-plain", "commands-swapped-path", "calls-host-file", "calls-many-processes", "roads-udp",
    "roads-inherited-descriptor", "roads-self-connect", "tampering-ledger", "tampering-policy",
    "tampering-report-link", "tampering-git-hook", "tampering-planted-module", "tampering-planted-link",
    "tampering-control-socket", "tampering-supervisor-killed", "evaluation-kept-connection",
    "evaluation-looser-policy", "permitted-chunked-body", "permitted-upload-limit",
)  # fmt: skip


@pytest.fixture(scope="module")
def lane() -> Iterator[Lane]:
    lane = Lane()
    yield lane
    lane.close()


def tried(lane: Lane, folder: Path, name: str, *layers_off: str) -> Judgement:
    trial = lane.perform(Order(id=name, evidence=str(folder), layers_off=layers_off))
    judgement = judge(TECHNIQUES[name], trial)
    if judgement.result is Result.NOT_SUPPORTED and "root" in TECHNIQUES[name].needs and os.geteuid() != 0:
        pytest.skip(judgement.why)  # and no other: what this machine lacks has to be seen
    return judgement


@pytest.mark.parametrize("name", STOPPED_ALONE_BY)
def test_without_the_layer_that_stops_it_alone_it_arrives(lane: Lane, tmp_path: Path, name: str) -> None:
    assert tried(lane, tmp_path, name).result is Result.BLOCKED
    assert tried(lane, tmp_path, name, STOPPED_ALONE_BY[name]).result is Result.LEAKED


@pytest.mark.parametrize("name", BLOCKED)
def test_it_arrives_in_the_open_and_is_blocked_for_the_reason_that_its_page_names(
    lane: Lane, tmp_path: Path, name: str
) -> None:
    judgement = tried(lane, tmp_path, name)
    assert judgement.result is Result.BLOCKED, judgement.why
