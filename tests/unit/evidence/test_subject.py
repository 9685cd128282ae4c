"""What a proof is about: the commit, and whether the code that was tested is the commit's."""

from __future__ import annotations

import subprocess
from pathlib import Path

from stockade.evidence.subject import _probe_git


def git(root: Path, *words: str) -> None:
    identity = ("-c", "user.name=a", "-c", "user.email=a@a.test")
    subprocess.run(["git", "-C", str(root), *identity, *words], check=True, capture_output=True)


def test_evidence_in_the_clone_is_no_change_and_a_new_attack_is(tmp_path: Path) -> None:
    assert _probe_git(tmp_path) == (None, None)
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "code.py").write_text("one")
    git(tmp_path, "init", "-q")
    git(tmp_path, "add", "-A")
    git(tmp_path, "commit", "-qm", "first")
    (tmp_path / "evidence").mkdir()
    (tmp_path / "evidence" / "junit.xml").write_text("<testsuites/>")
    commit, is_changed = _probe_git(tmp_path)
    assert len(commit or "") == 40
    assert is_changed is False
    (tmp_path / "src" / "attack.py").write_text("two")
    assert _probe_git(tmp_path) == (commit, True)
