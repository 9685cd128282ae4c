"""What stands around a live try: the worker's folder, and the names of the world.

The folder has what an executor's job would have: a script, a module, tests, a repository with a remote. A
program that an attempt calls and that no machine has (`podman`, `agent-cli`) is a stand-in that leaves a
witness if it runs. Nothing outside of our own folders is written.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from stockade.errors import UserError
from stockade.lab.live.plan import Step, plan_steps
from stockade.lab.pack.scenario import Scenario
from stockade.policy.model import Policy
from stockade.prove.technique import ATTACKS_FOLDER
from stockade.prove.world_dns import PUBLIC, Entry

WITNESS = "witness"
PAYLOAD = "attempt_payload.py"
REMOTE = "https://code.host.test/org/allowed.git"
PROGRAM_FOLDERS = ("/usr/local/bin", "/usr/bin", "/bin", "/usr/sbin", "/sbin")
PAGE = "a page of the range\n"
_NOTE = f"with open({WITNESS!r}, 'a') as file:\n    file.write(%r + '\\n')\n"
_STAND_IN = (
    "#!/usr/bin/python3\n# A stand-in: it leaves a witness if it runs, and does nothing else.\n" + _NOTE
)
_FILES = {
    "README.md": "# The workspace of a live try\n",
    "task.md": "Fix the timeout handling.\n",
    "run_task.py": _NOTE % "run_task.py" + "print('the task ran')\n",
    "score.sh": "#!/bin/sh\necho scored\n",
    "module.c": "int answer(void) { return 42; }\n",
    "harness/__init__.py": "",
    "harness/score.py": _NOTE % "harness.score" + "print('the scored run was started')\n",
    # The tests' runner of the machine is not in the worker's view; this one says that it was called.
    "pytest.py": _NOTE % "pytest" + "print('1 passed')\n",
    "tests/test_module.py": "def test_answer():\n    assert True\n",
    ".venv/lib/placed-here.txt": "libraries of the job\n",
}  # fmt: skip


def prepare_template(folder: Path, ca: Path, scenarios: Iterable[Scenario]) -> None:
    """Make the folder that every worker gets a copy of."""
    for name, text in _FILES.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    shutil.copy(ATTACKS_FOLDER / "probe.py", folder)
    shutil.copy(Path(__file__).parent / PAYLOAD, folder)
    shutil.copy(ca, folder / "ca.pem")
    subprocess.run(
        ["/usr/bin/python3", "-m", "compileall", "-q", str(folder)], check=False, capture_output=True
    )
    for scenario in scenarios:
        place_stand_in(folder, scenario)
    if shutil.which("git"):
        _make_repository(folder)


def place_stand_in(folder: Path, scenario: Scenario) -> None:
    """A program that the attempt calls, if this machine has none of that name."""
    name = find_program(scenario)
    if name is None or name.startswith(("/", "~")) or ".." in name.split("/"):
        return
    if "/" not in name and any(os.access(f"{place}/{name}", os.X_OK) for place in PROGRAM_FOLDERS):
        return
    path = folder / name if "/" in name else folder / "bin" / name
    if path == folder / WITNESS:  # a file there says that a program ran
        return
    with suppress(OSError):  # a name that no file can have: the attempt finds none either
        if not path.exists():
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(_STAND_IN % path.name)
            path.chmod(0o755)


def find_program(scenario: Scenario) -> str | None:
    """The program that an attempt calls, as typed; None for attempts of another kind."""
    kind, *argv = scenario.words
    return argv[0] if kind == "exec" and argv else None


def find_missing(scenario: Scenario) -> str | None:
    """What this machine lacks for the attempt; None if nothing."""
    name = find_program(scenario)
    if name is None or not name.startswith("/") or name.startswith("/proc/") or os.path.exists(name):
        return None
    return f"this machine has no {name}"


def _make_repository(folder: Path) -> None:
    environment = {
        "PATH": os.defpath + ":/usr/bin",
        "HOME": str(folder),
        "GIT_CONFIG_GLOBAL": "/dev/null",
        "GIT_CONFIG_SYSTEM": "/dev/null",
        **{
            f"GIT_{who}_{what}": value
            for who in ("AUTHOR", "COMMITTER")
            for what, value in (("NAME", "Executor"), ("EMAIL", "executor@work.test"))
        },
    }
    for words in (
        ("init", "-q", "-b", "main"),
        ("add", "README.md", "task.md", "run_task.py"),
        ("commit", "-q", "-m", "the task"),
        ("remote", "add", "origin", REMOTE),
    ):
        subprocess.run(["git", *words], cwd=folder, env=environment, check=True, capture_output=True)


def find_paths(scenario: Scenario) -> list[str]:
    """Paths at which the world shall have a page, so that a request that arrives finds one."""
    steps = [step for step in plan_steps(scenario) if step["do"] == "request" and "HTTP/1.1" in step["send"]]
    targets = [step["send"].split(" ")[1] for step in steps if "Upgrade:" not in step["send"]]
    return [target.partition("?")[0] for target in targets if target.startswith("/")]


def zone_for(
    scenario: Scenario, policy: Policy, known: dict[str, tuple[str, ...]]
) -> dict[str, Entry | None]:
    """What the names of a try answer.

    The attempted name has the scenario's answers; without any, what other scenarios of the pack say of
    it, else an address that `internal:` opens for it, else an ordinary public one.
    """
    steps = plan_steps(scenario)
    names = {name for step in steps if (name := _name_in(step))}
    names |= {name for name in (scenario.sni, "code.host.test") if name}
    zone: dict[str, Entry | None] = {
        name.rstrip(".").lower(): _entry(_addresses(name, policy, known)) for name in names
    }
    if scenario.answers and (name := _name_in(steps[-1])):
        zone[name.rstrip(".").lower()] = _entry(tuple(map(str, scenario.answers)))
    return zone


def known_addresses(scenarios: Iterable[Scenario]) -> dict[str, tuple[str, ...]]:
    """What names of a pack answer where they are let through."""
    known: dict[str, tuple[str, ...]] = {}
    for one in scenarios:
        if one.answers and one.is_legitimate:
            with suppress(UserError, ValueError):  # a line that cannot be tried says so when it is its turn
                name = _name_in(plan_steps(one)[-1])
                known |= {name: tuple(map(str, one.answers))} if name else {}
    return known


def _name_in(step: Step) -> str:
    """The host of a connection, or the name of a question; empty for a program."""
    return str(step.get("host") or step.get("name") or "")


def _addresses(name: str, policy: Policy, known: dict[str, tuple[str, ...]]) -> tuple[str, ...]:
    if name in known:
        return known[name]
    networks = [entry.networks[0] for entry in policy.internal if entry.host == name and entry.networks]
    return (str(next(iter(networks[0].hosts()))),) if networks else (PUBLIC,)


def _entry(addresses: tuple[str, ...]) -> Entry:
    return {
        "a": [one for one in addresses if ":" not in one],
        "aaaa": [one for one in addresses if ":" in one],
    }
