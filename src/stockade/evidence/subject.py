"""What a proof is about, by digest: the code, its lock file, the catalogue, the policy."""

from __future__ import annotations

import hashlib
import subprocess
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import stockade
from stockade.evidence.points import UnderTest
from stockade.prove.technique import ATTACKS_FOLDER

POLICY_NAME = "policy.yaml"
_PACKAGES = ("msgspec", "PyYAML", "idna", "dnspython", "cryptography", "Jinja2", "playwright")


def probe_subject(policy: bytes, techniques: int) -> UnderTest:
    """Measure what is running here.

    Args:
        policy: The policy that all techniques start from.
        techniques: How many were chosen.
    """
    from stockade.run.opening import software_digest

    root = Path(stockade.__file__).resolve().parents[2]
    lock = root / "requirements" / "runtime.txt"
    commit, is_changed = _probe_git(root)
    return UnderTest(
        version=stockade.__version__,
        code_sha256=software_digest(),
        policy_file=POLICY_NAME,
        policy_sha256=hashlib.sha256(policy).hexdigest(),
        catalogue_sha256=digest_catalogue(ATTACKS_FOLDER),
        techniques=techniques,
        lock_sha256=hashlib.sha256(lock.read_bytes()).hexdigest() if lock.is_file() else None,
        packages={name: found for name in _PACKAGES if (found := _version(name))},
        git_commit=commit,
        git_is_changed=is_changed,
    )


def digest_catalogue(folder: Path) -> str:
    """SHA-256 over the catalogue's files, names and contents in order."""
    digest = hashlib.sha256()
    for path in sorted(folder.glob("*.py")):
        digest.update(path.name.encode() + b"\0" + path.read_bytes() + b"\0")
    return digest.hexdigest()


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return ""


_TESTED = ("src", "requirements", "pyproject.toml")


def _probe_git(root: Path) -> tuple[str | None, bool | None]:
    """The commit, and whether what is tested differs from it; nothing if this is no clone or git is missing.

    Other files do not count: evidence in the clone, which is where the README puts it, is no change.
    """
    if not (root / ".git").exists():
        return None, None
    git = ["git", "-C", str(root), "-c", "core.fsmonitor=false", "-c", f"safe.directory={root}"]
    try:
        commit = subprocess.run(
            [*git, "rev-parse", "HEAD"], capture_output=True, text=True, timeout=10, check=True
        )
        status = subprocess.run(
            [*git, "status", "--porcelain", "--", *_TESTED],
            capture_output=True,
            text=True,
            timeout=10,
            check=True,
        )
    except (OSError, subprocess.SubprocessError):
        return None, None
    return commit.stdout.strip(), bool(status.stdout.strip())
