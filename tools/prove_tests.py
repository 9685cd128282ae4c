"""Switch each protection off and demand that its tests fail: it tests the tests.

Usage: .venv/bin/python tools/prove_tests.py [WORD]...    (only mutations with a word in their name)

tests/mutations.toml says for each protection which line to change and which tests must then
fail. Everything happens in a copy of the checkout, and the tests run in the range: a
protection that is switched off cannot let a packet off this machine. First the same tests
run unchanged and must pass, so that a test that always fails proves nothing.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
import tempfile
import tomllib
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
COPIED = (
    "src", "tests", "tools", "docs", "examples", "pyproject.toml", "README.md", "Makefile", ".importlinter",
)  # fmt: skip


@dataclass(frozen=True)
class Mutation:
    """One protection switched off: in `file`, `old` becomes `new`; then `tests` must fail."""

    name: str
    guarantee: str
    file: str
    old: str
    new: str
    tests: list[str]


def load_mutations(words: list[str]) -> list[Mutation]:
    data = tomllib.loads((ROOT / "tests" / "mutations.toml").read_text())
    found = [Mutation(**entry) for entry in data["mutation"]]
    return [m for m in found if not words or any(w in m.name or w == m.guarantee for w in words)]


def copy_checkout(to: Path) -> None:
    for name in COPIED:
        source = ROOT / name
        if source.is_dir():
            shutil.copytree(source, to / name, ignore=shutil.ignore_patterns("__pycache__"))
        elif source.exists():
            shutil.copy(source, to / name)
    (to / ".venv").symlink_to(ROOT / ".venv")


def run_tests(checkout: Path, tests: list[str]) -> subprocess.CompletedProcess[str]:
    command = [
        str(checkout / "tools" / "sealed"),
        str(checkout / ".venv/bin/python"),
        "-m",
        "pytest",
        "-x",
        *tests,
    ]
    return subprocess.run(command, cwd=checkout, capture_output=True, text=True, stdin=subprocess.DEVNULL)


def prove(checkout: Path, mutation: Mutation) -> str | None:
    """Say what is wrong with the tests of this protection; None if they fail as they must."""
    path = checkout / mutation.file
    text = path.read_text()
    if text.count(mutation.old) != 1:
        return f"{mutation.file} has the line {text.count(mutation.old)} times; mend tests/mutations.toml"
    path.write_text(text.replace(mutation.old, mutation.new))
    try:
        done = run_tests(checkout, mutation.tests)
    finally:
        path.write_text(text)
    if done.returncode == 0:
        return "its tests pass without it"
    if done.returncode != 1:
        return f"pytest could not run (exit {done.returncode}): {done.stdout[-800:]}{done.stderr[-800:]}"
    return None


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument(
        "word", nargs="*", help="only mutations with this word in their name, or this guarantee"
    )
    mutations = load_mutations(parser.parse_args().word)
    unproved = 0
    with tempfile.TemporaryDirectory(prefix="prove-tests-") as folder:
        checkout = Path(folder)
        checkout.chmod(0o755)
        copy_checkout(checkout)
        unchanged = run_tests(checkout, sorted({test for m in mutations for test in m.tests}))
        if unchanged.returncode != 0:
            print(unchanged.stdout[-3000:], unchanged.stderr[-1000:], sep="\n")
            print("prove-tests: the tests do not pass unchanged", file=sys.stderr)
            return 1
        for mutation in mutations:
            problem = prove(checkout, mutation)
            unproved += problem is not None
            print(
                f"{'NOT PROVED' if problem else 'proved':11}{mutation.guarantee:5}{mutation.name}", flush=True
            )
            if problem:
                print(f"           {problem}")
    print(f"prove-tests: {len(mutations) - unproved} of {len(mutations)} protections have tests that notice")
    return 1 if unproved or not mutations else 0


if __name__ == "__main__":
    sys.exit(main())
