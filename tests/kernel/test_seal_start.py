"""A layer of the seal that cannot be put up stops the start by name, or is given up by name: never half.

Each is taken away as a container would do it: by a filter of somebody else's around Stockade
(refusing.py). As an ordinary user, since root needs some of these calls for other things too.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from kernel_steps import ORDINARY, PYTHON, Contained

REFUSING = Path(__file__).with_name("refusing.py")
LISTED = ("--exec", "listed")
# What is taken away -> what the message calls it, and what has to be given up to run all the same.
MISSING: dict[str, tuple[tuple[str, ...], str, tuple[str, ...]]] = {
    "mounts": (("mount_setattr:38",), "layer mounts (noexec)", ("mounts",)),
    "landlock not built in": (("landlock_create_ruleset:38",), "layer landlock", ("landlock",)),
    "landlock not started": (("landlock_create_ruleset:95",), "layer landlock", ("landlock",)),
    "landlock refused": (("landlock_create_ruleset:1",), "layer landlock", ("landlock",)),
    "landlock half refused": (("landlock_restrict_self:1",), "layer landlock", ("landlock",)),
    "landlock rule refused": (("landlock_add_rule:1",), "layer landlock", ("landlock",)),
    "filter": (("seccomp:1",), "layer seccomp", ("seccomp", "memfd", "notify")),
    "new code": (("prctl/65:1",), "layer memfd", ("memfd",)),  # PR_SET_MDWE
    "another listener": (("--listener",), "layer notify (the eye)", ("notify",)),
    "reading": (("process_vm_readv:1",), "layer notify (the eye", ("notify",)),
}


def refusing(*rules: str) -> tuple[str, ...]:
    return (*ORDINARY, PYTHON, "-I", str(REFUSING), *rules, "--")


def without(layers: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(word for layer in layers for word in ("--without-layer", layer))


@pytest.fixture(autouse=True)
def everybody_s_folder(contained: Contained) -> None:
    contained.work.parent.chmod(0o777)


@pytest.mark.parametrize("name", MISSING)
def test_r148_r154_a_layer_that_is_missing_stops_the_start_by_name(contained: Contained, name: str) -> None:
    rules, said, layers = MISSING[name]
    result = contained("echo", "ran", options=LISTED, prefix=refusing(*rules))
    assert (result.code, result.out) == (103, ""), result.err
    assert said in result.err
    assert "errno " in result.err
    hint = result.err.partition("hint: ")[2]
    assert all(f"--without-layer={layer}" in hint for layer in layers), hint


@pytest.mark.parametrize("name", MISSING)
def test_r148_a_missing_layer_can_be_given_up_on_record(contained: Contained, name: str) -> None:
    rules, _said, layers = MISSING[name]
    result = contained("echo", "ran", options=(*LISTED, *without(layers)), prefix=refusing(*rules))
    assert (result.code, result.out) == (0, "ran\n"), result.err
    facts = contained.facts["facts"]
    assert facts["layers_off"] == sorted(layers)


def test_r148_a_filter_that_takes_nothing_needed_away_changes_nothing(contained: Contained) -> None:
    """The control of all of them: the same road with another call refused."""
    result = contained("echo", "ran", options=LISTED, prefix=refusing("quotactl:1"))
    assert (result.code, result.out) == (0, "ran\n"), result.err
    assert contained.facts["facts"]["layers_off"] == []


@pytest.mark.parametrize("given_up", [("notify",), ("seccomp", "notify"), ("memfd", "notify"), ("landlock",)])
def test_r148_giving_up_another_layer_or_a_part_does_not_open_the_start(
    contained: Contained, given_up: tuple[str, ...]
) -> None:
    # What is left of the filter would still have to be loaded.
    result = contained("echo", "ran", options=(*LISTED, *without(given_up)), prefix=refusing("seccomp:1"))
    assert (result.code, result.out) == (103, "")
    assert "layer seccomp" in result.err


def test_r148_an_older_kernel_without_mdwe_is_held_by_the_filter(contained: Contained) -> None:
    # EINVAL is what a kernel before 6.3 says (prctl(2)); the filter refuses the same calls.
    result = contained("echo", "ran", options=LISTED, prefix=refusing("prctl/65:22"))
    assert (result.code, result.out) == (0, "ran\n"), result.err
    assert contained.facts["facts"]["new_code_forbidden_by_kernel"] is False
    contained("true", options=LISTED, prefix=ORDINARY)
    assert contained.facts["facts"]["new_code_forbidden_by_kernel"] is True


def test_r128_the_whole_seal_works_inside_a_user_namespace_of_another(contained: Contained) -> None:
    result = contained("echo", "ran", options=LISTED, prefix=(*ORDINARY, "unshare", "-Ur"))
    assert (result.code, result.out) == (0, "ran\n"), result.err
    facts = contained.facts["facts"]
    assert (facts["layers_off"], facts["commands"], facts["code"]) == ([], "listed, seen", "closed")
    assert facts["landlock_abi"] > 0


# --- doctor ------------------------------------------------------------------------------------

TRIALS = {
    "mounts": "mounts",
    "landlock not built in": "landlock",
    "landlock refused": "landlock",
    "landlock half refused": "landlock",
    "filter": "seccomp",
    "another listener": "eye",
    "reading": "eye-reads",
}


def doctor(*prefix: str) -> tuple[int, dict[str, dict[str, Any]]]:
    command = [*prefix, sys.executable, "-m", "stockade", "doctor", "--json"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=18, cwd="/", env=os.environ)
    return done.returncode, {trial["name"]: trial for trial in json.loads(done.stdout)["trials"]}


@pytest.mark.parametrize("name", TRIALS)
def test_r154_doctor_says_what_is_missing_what_is_lost_and_how_to_do_without(name: str) -> None:
    rules, _said, layers = MISSING[name]
    code, trials = doctor(*refusing(*rules))
    trial = trials[TRIALS[name]]
    assert (code, trial["works"], trial["is_needed"]) == (3, False, True)
    assert trial["lost"]
    assert all(f"--without-layer={layer}" in trial["remedy"] for layer in layers)
    assert trials["whole-start"]["works"] is False
    # The others are not blamed: what works without it is said to work.
    assert trials["bwrap"]["works"]
    assert trials["room-rules"]["works"]


def test_r154_doctor_finds_nothing_missing_under_a_filter_that_takes_nothing_needed_away() -> None:
    code, trials = doctor(*refusing("quotactl:1"))
    assert (code, [name for name, trial in trials.items() if not trial["works"] and trial["is_needed"]]) == (
        0,
        [],
    )


def test_r154_doctor_tells_a_second_lock_from_a_needed_one() -> None:
    code, trials = doctor(*refusing("prctl/65:22"))
    trial = trials["code-in-memory"]
    assert (code, trial["works"], trial["is_needed"]) == (0, False, False)
    assert "PR_SET_MDWE" in trial["detail"]
