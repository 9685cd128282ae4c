"""Stockade's own files beside a worker: no link leads them elsewhere, no command changes them."""

from __future__ import annotations

import os
import random
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from kernel_steps import Contained, Result, words

COMMAND = str(Path(sys.prefix) / "bin" / "stockade")
POLICY = "version: 1\nexec: {mode: any}\n"


@pytest.fixture
def call(contained: Contained) -> Callable[..., Result]:
    """`stockade run` as an operator calls it, its ledger kept outside unless told otherwise."""

    def run(*extra: str, command: tuple[str, ...] = ("true",)) -> Result:
        (contained.work.parent / "policy.yaml").write_text(POLICY)
        options = list(extra)
        if "-p" not in extra:
            options += ["-p", str(contained.work.parent / "policy.yaml")]
        if "--ledger" not in extra:
            options += ["--ledger", str(contained.work.parent / "shelf")]
        return words(
            subprocess.run(
                [COMMAND, "run", *options, "--", *command],
                cwd=contained.work,
                capture_output=True,
                stdin=subprocess.DEVNULL,
                env={**os.environ, "HOME": str(contained.home), "PWD": str(contained.work)},
                timeout=18,
            )
        )

    return run


@pytest.mark.parametrize("what", ["--ledger", "--report", "-p"])
def test_r134_r138_a_link_that_a_command_may_have_planted_is_not_followed_to_our_own_files(
    contained: Contained, call: Callable[..., Result], what: str
) -> None:
    outside = contained.work.parent / "outside"
    outside.mkdir()
    (outside / "file").write_text(POLICY)
    (contained.work / "way").symlink_to(outside)
    path = "way/file" if what != "--ledger" else "way/shelf"
    before = sorted(os.listdir(outside))
    refused = call(what, path, "--write", ".")
    assert refused.code == 102, refused.err
    assert f"{contained.work}/way is a link" in refused.err
    assert sorted(os.listdir(outside)) == before
    assert (outside / "file").read_text() == POLICY
    # The control: the same place by its own path, and a link that no command can reach.
    link = contained.work.parent / "link"
    link.symlink_to(outside)
    for direct in (outside / Path(path).name, link / Path(path).name):
        allowed = call(what, str(direct), "--write", ".")
        assert allowed.code == 0, allowed.err


def swapping(folder: Path, link_to: Path) -> Iterator[None]:
    """Swap a folder for a link and back, as a worker of another run would, until asked to end."""
    aside = folder.with_name("aside")
    chance = random.Random(7)
    while True:
        folder.rename(aside)
        folder.symlink_to(link_to)
        time.sleep(chance.choice((0, 0.0002, 0.003)))
        folder.unlink()
        aside.rename(folder)
        time.sleep(chance.choice((0.001, 0.01, 0.04)))
        yield


def test_r134_a_folder_swapped_for_a_link_in_a_loop_gets_nothing_written_outside(
    contained: Contained, call: Callable[..., Result]
) -> None:
    outside, state = contained.work.parent / "outside", contained.work / "state"
    outside.mkdir()
    state.mkdir()
    is_over = threading.Event()

    def swap() -> None:
        for _ in swapping(state, outside):
            if is_over.is_set():
                return

    swapper = threading.Thread(target=swap)
    swapper.start()
    codes = []
    try:
        for number in range(8):
            options = ("--ledger", "state/shelf", "--report", f"state/report{number}", "--write", ".")
            codes.append(call(*options).code)
    finally:
        is_over.set()
        swapper.join()
    assert os.listdir(outside) == []
    assert set(codes) <= {0, 102, 103, 104}
    # The control: left alone, the same call works.
    assert call("--ledger", "state/shelf", "--report", "state/report", "--write", ".").code == 0
    assert (state / "report").stat().st_size > 0
    assert os.listdir(state / "shelf")


TAMPER = """
for f in $(find . -name records.jsonl); do echo x >> $f && echo changed; done
rm -rf old/shelf 2>/dev/null; mv old aside 2>/dev/null && echo moved
ls old
"""


def test_r138_records_of_other_runs_in_the_workspace_cannot_be_changed(
    contained: Contained, call: Callable[..., Result]
) -> None:
    (contained.work / "old").mkdir()
    assert call("--ledger", "old/shelf").code == 0
    assert call("--ledger", "old/shelf").code == 0
    records = {path: path.read_bytes() for path in contained.work.rglob("records.jsonl")}
    assert len(records) == 2
    result = call("--write", ".", command=("sh", "-c", TAMPER))
    assert result.out == "shelf\n", result.out
    assert {path: path.read_bytes() for path in contained.work.rglob("records.jsonl")} == records


def test_r138_our_own_code_cannot_be_changed_by_a_command(contained: Contained) -> None:
    # An environment in the workspace, with Stockade in it: what is written there runs with the next `run`.
    environment = contained.work / ".venv"
    source = Path(sys.modules["stockade"].__file__ or "").parent
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(environment)], check=True)
    library = next((environment / "lib").glob("python3*")) / "site-packages"
    shutil.copytree(source, library / "stockade", ignore=shutil.ignore_patterns("__pycache__"))
    (library / "others.pth").write_text("\n".join(p for p in sys.path if p.endswith("site-packages")))
    script = Path(__file__).with_name("contained.py")

    def run(*options: str, cwd: Path = contained.work) -> Result:
        program = (
            f"for f in {library}/stockade/errors.py {library}/sitecustomize.py {environment}/bin/x; do"
            " echo '# x' >> $f && echo written $f; done; mv .venv aside && echo moved; echo tried"
        )
        command = [f"{environment}/bin/python", str(script), *options, "--", "sh", "-c", program]
        return words(
            subprocess.run(
                command,
                cwd=cwd,
                capture_output=True,
                env={**os.environ, "PWD": str(cwd), "HOME": str(contained.home), "PYTHONPATH": str(library)},
                timeout=18,
            )
        )

    assert run("--write", str(contained.work)).out == "tried\n"
    refused = run("--write", str(environment), cwd=environment)
    assert (refused.code, "path-not-written" in refused.err) == (102, True), refused.err


def test_a_fifo_where_settings_of_the_machine_are_looked_for_does_not_hold_us_up(
    contained: Contained, call: Callable[..., Result]
) -> None:
    contained.home.mkdir()
    os.mkfifo(contained.home / ".npmrc")
    os.mkfifo(contained.home / ".gitconfig")
    assert call("--write", ".", command=("echo", "ran")).out == "ran\n"
