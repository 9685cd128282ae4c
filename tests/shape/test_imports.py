"""Which folder uses which, and what starting a command costs in imports."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


def test_import_directions_hold() -> None:
    """The contracts of .importlinter: layers, pure core, the ledger alone."""
    lint = Path(sys.executable).with_name("lint-imports")
    done = subprocess.run([lint, "--no-cache", "--no-logo"], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout


def test_a_breach_of_the_import_directions_is_found(tmp_path: Path) -> None:
    """The same contracts say no when a pure module opens a socket."""
    package = tmp_path / "stockade"
    subprocess.run(["cp", "-r", str(ROOT / "src" / "stockade"), str(package)], check=True)
    with open(package / "net" / "host.py", "a") as module:
        module.write("\nimport socket\n")
    (tmp_path / ".importlinter").write_text((ROOT / ".importlinter").read_text())
    lint = Path(sys.executable).with_name("lint-imports")
    done = subprocess.run(
        [lint, "--no-cache", "--no-logo"],
        cwd=tmp_path,
        env={"PYTHONPATH": str(tmp_path), "PATH": ""},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 1
    assert "stockade.net.host -> socket" in done.stdout


def imported_by(statement: str) -> set[str]:
    """Names of all modules that a fresh interpreter has after the statement."""
    script = f"{statement}\nimport sys\nprint(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    return set(done.stdout.split())


# Each costs more than a tenth of the whole start, or has no business on the way to a worker.
HEAVY = {
    "asyncio",
    "rich",
    "dns",
    "yaml",
    "cryptography",
    "requests",
    "hypothesis",
    "pytest",
    "logging",
    "email",
}


@pytest.mark.parametrize("command", ["run", "decide", "log"])
def test_a_command_starts_without_heavy_imports(command: str) -> None:
    found = imported_by(f"import stockade.cli.main, stockade.cli.{command}")
    assert HEAVY & found == set()


def test_running_without_a_policy_imports_nothing_heavy_either() -> None:
    """Not the command's module alone, but what it loads on the way to the worker."""
    modules = ["stockade.run.session", "stockade.gateway.server", "stockade.sandbox.supervise"]
    assert HEAVY & imported_by("import " + ", ".join(modules)) == set()


def test_sandbox_stage_imports_the_standard_library_alone() -> None:
    """The stage runs with `python3 -I -S` inside the sandbox, where nothing of ours is in view."""
    tree = ast.parse((ROOT / "src" / "stockade" / "sandbox" / "stage.py").read_text())
    names = [alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names]
    names += [node.module or "." for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
    assert names
    assert {name.partition(".")[0] for name in names} <= sys.stdlib_module_names


def test_no_module_is_called_by_a_word_that_says_nothing() -> None:
    empty_words = {"utils", "util", "helpers", "helper", "misc", "common", "manager", "core", "base"}
    assert {path.stem for path in ROOT.glob("src/stockade/**/*.py")} & empty_words == set()
