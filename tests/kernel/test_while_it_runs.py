"""What an operator and the limits do to a room while its worker is alive."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from stockade.prove.world_client import World

pytestmark = [pytest.mark.kernel, pytest.mark.needs("world", "bwrap")]

COMMAND = str(Path(sys.prefix) / "bin" / "stockade")
# Else the filter refuses the socket before the room refuses the address.
UNIX_TOO = "exec: {mode: any, unix-sockets: true}\n"
ALLOWED = "rules: [{allow: allowed.test, ports: [9000], protocol: tcp}]\n"
OTHER = "version: 1\nexec: {mode: any}\nrules: [{allow: docs.test, ports: [9000], protocol: tcp}]\n"

# Says what comes back after each line it is told to send; the test leads the conversation.
CONVERSATION = r"""
import socket, sys
lines = {}
for order in sys.stdin:
    name, word = order.split()
    try:
        if name not in lines:
            lines[name] = socket.create_connection((name, 9000), 5)
            lines[name].settimeout(5)
        lines[name].sendall(word.encode())
        answer = lines[name].recv(100).decode() or "closed"
    except OSError as error:
        answer = type(error).__name__
    print(answer, flush=True)
"""


class Talk:
    """A worker that opens connections on command, and its operator's tools."""

    def __init__(self, stockade: Any, policy: str, *extra: str) -> None:
        self.stockade = stockade
        self.worker = stockade.start([sys.executable, "-u", "-c", CONVERSATION], policy, extra=list(extra))

    def say(self, name: str, word: str) -> str:
        assert self.worker.stdin is not None
        assert self.worker.stdout is not None
        self.worker.stdin.write(f"{name} {word}\n".encode())
        self.worker.stdin.flush()
        return self.worker.stdout.readline().decode().strip()

    def operate(self, *words: str) -> subprocess.CompletedProcess[bytes]:
        shelf = ["--ledger", str(self.stockade.ledger)]
        return subprocess.run([COMMAND, *words, *shelf], capture_output=True, timeout=10)

    def end(self) -> Any:
        out, err = self.worker.communicate(timeout=15)
        return self.stockade.finish(self.worker, out, err)


def wait_for_record(talk: Talk, kind: str) -> None:
    deadline = time.monotonic() + 10
    while not [r for r in talk.stockade.read_ledger(talk.stockade.ledger) if r["kind"] == kind]:
        assert time.monotonic() < deadline, f"no {kind} record came"


def test_r004_a_replaced_policy_is_followed_at_once_and_named_in_each_record(
    stockade: Any, world: World, tmp_path: Path
) -> None:
    talk = Talk(stockade, ALLOWED)
    assert talk.say("allowed.test", "one") == "one"
    (tmp_path / "b.yaml").write_text(OTHER)
    answer = talk.operate("policy", "replace", str(tmp_path / "b.yaml"), "--json")
    assert answer.returncode == 0, answer.stderr
    digest = json.loads(answer.stdout)["policy"]
    wait_for_record(talk, "policy.changed")
    assert talk.say("docs.test", "two") == "two"
    run = talk.end()
    shown = subprocess.run(
        [COMMAND, "policy", "show", "--json", str(tmp_path / "b.yaml")], capture_output=True
    )
    assert json.loads(shown.stdout)["digest"] == digest
    assert [a["policy"] == digest for a in run.attempts(verdict="allow")] == [False, True]


def test_r017_a_connection_that_the_new_policy_does_not_permit_is_cut(
    stockade: Any, world: World, tmp_path: Path
) -> None:
    talk = Talk(stockade, ALLOWED)
    assert talk.say("allowed.test", "before") == "before"
    (tmp_path / "b.yaml").write_text(OTHER)
    assert talk.operate("policy", "replace", str(tmp_path / "b.yaml")).returncode == 0
    wait_for_record(talk, "policy.changed")
    assert talk.say("allowed.test", "after") == "ConnectionResetError"
    run = talk.end()
    assert [d["reason"] for d in run.denials()] == ["policy-changed"]
    cuts = [r for r in run.records if r["kind"] == "outcome" and r["outcome"] == "cut"]
    assert [c["sent_bytes"] for c in cuts] == [len("before")]
    assert "after" not in str(world.arrivals())


def test_a_connection_that_both_policies_permit_goes_on(stockade: Any, world: World, tmp_path: Path) -> None:
    talk = Talk(stockade, ALLOWED)
    assert talk.say("allowed.test", "before") == "before"
    both = OTHER.replace("rules: [", "rules: [{allow: allowed.test, ports: [9000], protocol: tcp}, ")
    (tmp_path / "b.yaml").write_text(both)
    assert talk.operate("policy", "replace", str(tmp_path / "b.yaml")).returncode == 0
    wait_for_record(talk, "policy.changed")
    assert talk.say("allowed.test", "after") == "after"
    assert talk.end().denials() == []


def test_a_policy_that_does_not_load_changes_nothing_and_says_why(
    stockade: Any, world: World, tmp_path: Path
) -> None:
    talk = Talk(stockade, ALLOWED)
    assert talk.say("allowed.test", "one") == "one"
    (tmp_path / "b.yaml").write_text("version: 1\nruels: []\n")
    answer = talk.operate("policy", "replace", str(tmp_path / "b.yaml"))
    assert answer.returncode == 2
    assert b"b.yaml:2" in answer.stderr
    assert b"rules" in answer.stderr
    assert talk.say("allowed.test", "two") == "two"
    assert [r for r in talk.end().records if r["kind"] == "policy.changed"] == []


def test_r016_a_phase_change_closes_the_rubric_and_phases_do_not_go_back(stockade: Any, world: World) -> None:
    talk = Talk(stockade, ALLOWED + "rubric: [allowed.test]\n")
    assert talk.say("allowed.test", "work") == "work"
    assert talk.operate("phase", "scoring").returncode == 0
    wait_for_record(talk, "phase.changed")
    assert talk.say("allowed.test", "scoring") == "ConnectionResetError"
    back = talk.operate("phase", "work")
    assert back.returncode == 2
    assert b"phase-backward" in back.stderr
    assert talk.operate("phase", "work", "--reopen").returncode == 0
    run = talk.end()
    changes = [(r["from"], r["to"], r["reopened"]) for r in run.records if r["kind"] == "phase.changed"]
    assert changes == [("work", "scoring", False), ("scoring", "work", True)]


def test_r136_the_worker_cannot_reach_the_control_socket(stockade: Any, world: World) -> None:
    """The same abstract name answers outside (the operator's commands above use it) and not inside."""
    script = (
        "import socket, sys\nfor run in sys.stdin:\n s = socket.socket(socket.AF_UNIX)\n try:\n"
        "  s.connect('\\0stockade/control/' + run.strip()); print('open', flush=True)\n"
        " except OSError as e: print(type(e).__name__, flush=True)\n"
    )
    worker = stockade.start([sys.executable, "-u", "-c", script], UNIX_TOO + ALLOWED)
    deadline = time.monotonic() + 10
    while not (stockade.ledger.is_dir() and os.listdir(stockade.ledger)):
        assert time.monotonic() < deadline
    run_id = os.listdir(stockade.ledger)[0]
    out, _ = worker.communicate(f"{run_id}\n".encode(), timeout=15)
    assert out.decode().split() == ["ConnectionRefusedError"]


def test_an_upload_limit_cuts_and_what_is_below_it_passes(stockade: Any, world: World) -> None:
    send = (
        "import socket,sys\ns = socket.create_connection(('allowed.test', 9000)); n = int(sys.argv[1])\n"
        "got = 0\ntry:\n s.sendall(bytes(n)); s.shutdown(socket.SHUT_WR)\n"
        " while d := s.recv(65536): got += len(d)\n"
        "except OSError as e: print(type(e).__name__)\nprint(got)\n"
    )
    limited = ALLOWED + "limits: {upload: 1MiB}\n"
    passed = stockade([sys.executable, "-c", send, "1000000"], limited)
    assert passed.out.split() == ["1000000"]
    cut = stockade([sys.executable, "-c", send, "3000000"], limited)
    assert cut.out.split()[0] in ("ConnectionResetError", "BrokenPipeError")
    assert [d["reason"] for d in cut.denials()] == ["upload-limit"]
    arrived = sum(a["bytes"] for a in world.arrivals() if a["port"] == 9000)
    assert arrived <= 1_000_000 + 1_048_576


def test_connections_beyond_the_limit_are_refused_recorded_and_the_room_goes_on(
    stockade: Any, world: World
) -> None:
    script = (
        "import socket\n"
        "lines = [socket.create_connection(('allowed.test', 9000)) for _ in range(12)]\nalive = 0\n"
        "for s in lines:\n s.settimeout(5)\n try:\n  s.sendall(b'x'); alive += s.recv(1) == b'x'\n"
        " except OSError: pass\n"
        "for s in lines: s.close()\nimport time\nfor _ in range(50):\n"
        " s = socket.create_connection(('allowed.test', 9000))\n"
        " s.settimeout(5)\n try:\n  s.sendall(b'y')\n  if s.recv(1) == b'y': break\n"
        " except OSError: time.sleep(0.05)\n"
        "else: raise SystemExit('never again')\nprint(alive)\n"
    )
    run = stockade([sys.executable, "-c", script], ALLOWED + "limits: {connections: 8}\n")
    assert run.out.split() == ["8"], run.err
    assert {d["reason"] for d in run.denials()} == {"too-many-connections"}
    assert len(run.denials()) >= 4
    assert run.report["complete"] is True


def test_a_ledger_that_cannot_be_written_any_more_ends_the_run(stockade: Any, world: World) -> None:
    """The ledger's file is truncated under the writer: what is not on record does not happen."""
    talk = Talk(stockade, ALLOWED)
    assert talk.say("allowed.test", "one") == "one"
    (file,) = stockade.ledger.glob("*/records.jsonl")
    os.truncate(file, 0)
    assert talk.say("docs.test", "two") == ""  # the worker is gone before it could answer
    _out, err = talk.worker.communicate(timeout=15)
    assert talk.worker.returncode == 104
    assert b"ledger" in err
    assert "two" not in str(world.arrivals())


def test_r108_when_the_supervisor_dies_the_worker_dies_and_nothing_leaves(
    stockade: Any, world: World
) -> None:
    talk = Talk(stockade, ALLOWED)
    assert talk.say("allowed.test", "one") == "one"
    talk.worker.send_signal(signal.SIGKILL)
    talk.worker.wait(10)
    assert talk.worker.stdout is not None
    assert talk.worker.stdout.read() == b""  # the worker held the other end: EOF means that it is gone


def test_what_a_worker_sent_before_it_ended_still_arrives_and_has_an_outcome(
    stockade: Any, world: World
) -> None:
    """Fire and forget: on a plain network the kernel would deliver it as well."""
    head = "POST /upload HTTP/1.1\\r\\nHost: x\\r\\nContent-Length: 500000\\r\\n\\r\\n"
    script = (
        "import socket\ns = socket.create_connection(('allowed.test', 8080))\n"
        f"s.sendall(b'{head}' + bytes(500_000))\n"
    )
    run = stockade([sys.executable, "-c", script], ALLOWED.replace("9000", "8080"))
    assert [a["bytes"] for a in world.arrivals() if a["port"] == 8080] == [500_058]  # 58 of them are the head
    (attempt,) = run.attempts(verdict="allow")
    (outcome,) = [r for r in run.records if r["kind"] == "outcome" and r["of"] == attempt["seq"]]
    assert outcome["sent_bytes"] == 500_058


def test_each_permitted_attempt_has_one_outcome_even_when_it_is_open_at_the_end(
    stockade: Any, world: World
) -> None:
    """A server that never ends the connection, and a worker that just stops."""
    script = (
        "import socket, os\nlines = [socket.create_connection(('allowed.test', 9000)) for _ in range(5)]\n"
        "for s in lines: s.sendall(b'x'); s.recv(1)\nos._exit(7)\n"
    )
    run = stockade([sys.executable, "-c", script], ALLOWED)
    assert run.code == 7
    seqs = sorted(a["seq"] for a in run.attempts(verdict="allow"))
    outcomes = [r["of"] for r in run.records if r["kind"] == "outcome" and r["outcome"] != "answered-locally"]
    assert sorted(outcomes) == seqs


def test_a_record_that_is_lost_at_the_very_end_is_no_complete_record(stockade: Any, world: World) -> None:
    """The ledger goes while the worker runs, and nothing is to be written any more but the last record."""
    talk = Talk(stockade, ALLOWED)
    wait_for_record(talk, "run.opened")
    shutil.rmtree(stockade.ledger)
    _out, err = talk.worker.communicate(b"", timeout=15)
    assert talk.worker.returncode == 104
    assert b"ledger" in err


def test_connections_to_port_53_that_ask_nothing_are_limited_and_on_record(
    stockade: Any, world: World
) -> None:
    script = (
        "import socket, time\n"
        "lines = [socket.create_connection(('9.9.9.9', 53)) for _ in range(30)]\n"
        "lines[0].sendall(b'\\0')\ntime.sleep(0.2)\n"
    )
    run = stockade([sys.executable, "-c", script], ALLOWED + "limits: {connections: 8}\n")
    on_record = run.attempts(address="9.9.9.9", port=53)
    assert len(on_record) == 30
    assert sorted({a["reason"] for a in on_record}) == ["literal-address", "too-many-connections"]
    assert len([a for a in on_record if a["reason"] == "too-many-connections"]) == 22
    assert run.report["complete"] is True


def test_a_working_folder_that_is_gone_is_said_to_be_gone(tmp_path: Path) -> None:
    run = f"{COMMAND} run --ledger {tmp_path}/ledger -- true"
    command = f"mkdir gone && cd gone && rmdir ../gone && exec {run}"
    done = subprocess.run(["sh", "-c", command], cwd=tmp_path, capture_output=True, text=True, timeout=15)
    assert done.returncode == 102
    assert "workspace-gone" in done.stderr


@pytest.mark.parametrize("name", ["report.json", "out/report.json"])
def test_a_report_in_the_workspace_cannot_be_replaced_by_the_worker(workspace: Path, name: str) -> None:
    (workspace / "out").mkdir()
    forge = (
        f"import os\ntry:\n os.unlink('{name}')\nexcept OSError: pass\n"
        f"try:\n os.rename('out', 'out2'); os.mkdir('out')\nexcept OSError: pass\n"
        f"try:\n open('{name}', 'w').write('forged')\nexcept OSError: pass\n"
    )
    own = ["--ledger", str(workspace.parent / "shelf"), "--report", name, "--write", "."]
    done = subprocess.run(
        [COMMAND, "run", *own, "--", sys.executable, "-c", forge],
        cwd=workspace,
        capture_output=True,
        timeout=15,
    )
    assert done.returncode == 0, done.stderr
    assert json.loads((workspace / name).read_text())["exit_code"] == 0


def test_a_file_that_the_policy_includes_cannot_be_changed_by_the_worker(workspace: Path) -> None:
    (workspace / "policy.yaml").write_text(
        "version: 1\nexec: {mode: any}\ninclude: [more.yaml]\nfiles: {write: [.]}\n"
    )
    more = "version: 1\nrules: [{allow: docs.test}]\n"
    (workspace / "more.yaml").write_text(more)
    widen = (
        "import os\ntry: open('more.yaml', 'a').write('x')\nexcept OSError: pass\n"
        "try: os.rename('more.yaml', 'old')\nexcept OSError: pass\n"
    )
    own = ["--ledger", str(workspace.parent / "shelf"), "-p", "policy.yaml"]
    done = subprocess.run(
        [COMMAND, "run", *own, "--", sys.executable, "-c", widen],
        cwd=workspace,
        capture_output=True,
        timeout=15,
    )
    assert done.returncode == 0, done.stderr
    assert (workspace / "more.yaml").read_text() == more


def test_traps_that_a_worker_left_at_the_report_s_place_are_refused(workspace: Path) -> None:
    (workspace / "elsewhere").mkdir()
    (workspace / "link").symlink_to(workspace / "elsewhere")
    os.mkfifo(workspace.parent / "fifo")
    for name in ("link/report.json", "../fifo"):
        own = ["--ledger", str(workspace.parent / "shelf"), "--report", name]
        done = subprocess.run(
            [COMMAND, "run", *own, "--", "true"], cwd=workspace, capture_output=True, text=True, timeout=15
        )
        assert (done.returncode, "report-unwritable" in done.stderr) == (102, True), done.stderr
    assert list((workspace / "elsewhere").iterdir()) == []


def test_questions_to_a_loopback_resolver_are_answered_and_counted(stockade: Any, world: World) -> None:
    """Programs with a resolver of their own in mind ask 127.0.0.1 or 127.0.0.53."""
    script = (
        "import socket\nquestion = b'\\0\\7\\1\\0\\0\\1' + bytes(6) + b'\\7allowed\\4test\\0\\0\\1\\0\\1'\n"
        "for family, server in ((2, '127.0.0.1'), (2, '127.0.0.53'), (10, '::1')):\n"
        " s = socket.socket(family, 2); s.settimeout(3); s.sendto(question, (server, 53)); s.recv(100)\n"
        "print('answered')\n"
    )
    run = stockade([sys.executable, "-c", script], ALLOWED)
    assert run.out == "answered\n"
    assert (run.report["complete"], run.report["inexact_by"]) == (True, 0), run.report["completeness"]


# `commondir` makes git read another folder's config, which names programs that `git status` runs.
TRAP = r"""
import os, sys
marker, git = sys.argv[1:]
for name in ('objects', 'refs'): os.makedirs(git + '/c/' + name)
open(git + '/c/config', 'w').write('[core]\n\tfsmonitor = "touch %s; false"\n' % marker)
def attempt(*how):
    try: how[0](*how[1:])
    except OSError as error: print(error.strerror, flush=True)
def write(): open(git + '/commondir', 'w').write('c\n')
open(git + '/mine', 'w').write('c\n')
attempt(os.unlink, git + '/commondir')
attempt(os.rename, git + '/commondir', git + '/aside')
attempt(os.rename, git + '/mine', git + '/commondir')
attempt(os.rename, git, git + '-aside')
attempt(write)
print('tried', flush=True)
sys.stdin.readline()
"""
BUSY, READ_ONLY = "Device or resource busy", "Read-only file system"


def use_git(*words: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    git = ["git", "-c", "safe.directory=*", "-c", "user.name=a", "-c", "user.email=a@b.test"]
    return subprocess.run([*git, *words], cwd=cwd, capture_output=True, text=True)


@pytest.mark.needs("git")
@pytest.mark.parametrize("end", ["ordinary", "killed"])
def test_a_detour_around_protected_git_settings_cannot_be_planted(workspace: Path, end: str) -> None:
    """Not at any time: the operator uses git while the command runs, or after we were killed."""
    subprocess.run(["git", "init", "-q"], cwd=workspace, check=True)
    marker, stop = workspace.parent / "obeyed", workspace / ".git" / "commondir"
    own = ["--ledger", str(workspace.parent / "shelf"), "--report", "../report.json", "--write", "."]
    command = [COMMAND, "run", *own, "--", sys.executable, "-c", TRAP, str(marker), ".git"]
    run = subprocess.Popen(command, cwd=workspace, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert run.stdin is not None
    assert run.stdout is not None
    said = [run.stdout.readline().strip() for _ in range(6)]
    assert said == [BUSY, BUSY, BUSY, BUSY, READ_ONLY, "tried"]
    (workspace / "file").write_text("x")
    for words in (["status"], ["add", "file"], ["commit", "-qm", "one"], ["fsck"]):
        done = use_git(*words, cwd=workspace)
        assert done.returncode == 0, done.stderr
    if end == "killed":
        run.kill()
    run.communicate("\n", timeout=15)
    assert stop.exists() == (end == "killed")
    assert use_git("status", cwd=workspace).returncode == 0
    if end == "ordinary":
        assert json.loads((workspace.parent / "report.json").read_text())["left_behind"] == []
    else:  # what a killed run left is harmless, and goes with the next one
        again = subprocess.run(
            [COMMAND, "run", *own, "--", "git", "log", "--oneline"],
            cwd=workspace,
            capture_output=True,
            text=True,
            timeout=15,
        )
        assert (again.returncode, again.stdout.split()[1:]) == (0, ["one"]), again.stderr
        assert not stop.exists()
    assert not marker.exists()
    # The control: without a sandbox the same program plants it, and git obeys.
    shutil.rmtree(workspace / ".git" / "c")
    plain = [sys.executable, "-c", TRAP, str(marker), ".git"]
    subprocess.run(plain, cwd=workspace, input="\n", text=True, check=True, stdout=subprocess.DEVNULL)
    os.rename(workspace / ".git-aside", workspace / ".git")
    (workspace / ".git" / "commondir").write_text("c\n")
    use_git("status", cwd=workspace)
    assert marker.exists()


def test_a_detour_in_a_git_folder_of_the_worker_s_own_is_named_and_out_of_the_way(workspace: Path) -> None:
    marker = workspace.parent / "obeyed"
    trap = (
        "import os\nfor git in ('whole', 'linked'):\n"
        " for name in ('objects', 'refs'): os.makedirs(git + '/c/' + name)\n"
        f" open(git + '/c/config', 'w').write('[core]\\n\\tfsmonitor = \"touch {marker}; false\"\\n')\n"
        " open(git + '/HEAD', 'w').write('ref: refs/heads/main\\n')\n"
        " open(git + '/commondir', 'w').write('c\\n')\n"
        "for name in ('objects', 'refs'): os.makedirs('whole/' + name)\n"
        "open('.envrc', 'w')\nos.mkfifo(b'\\xff\\n')\n"
    )
    own = ["--ledger", str(workspace.parent / "shelf"), "--report", "../report.json", "--write", "."]
    command = [COMMAND, "run", *own, "--", sys.executable, "-c", trap]
    done = subprocess.run(command, cwd=workspace, capture_output=True, text=True, timeout=15)
    assert done.returncode == 0, done.stderr
    for name in ("whole", "linked"):
        use_git("--git-dir", name, "--work-tree", ".", "status", cwd=workspace)
    assert not marker.exists()
    left = json.loads((workspace.parent / "report.json").read_text())["left_behind"]
    named = [path.removeprefix(f"{workspace}/").partition(".left")[0] for path in left[:4]]
    assert named == [".envrc", "linked/commondir", "whole", "whole/commondir"]
    assert len(left) == 5  # a FIFO whose name is no text is named as well
    assert ".envrc" in done.stderr
    # The control: put back, both are obeyed.
    for name in ("whole", "linked"):
        (workspace / name / "commondir").write_text("c\n")
        use_git("--git-dir", name, "--work-tree", ".", "status", cwd=workspace)
        assert marker.exists()
        marker.unlink()


def test_a_report_holds_what_is_not_utf_8(tmp_path: Path) -> None:
    folder = os.fsencode(tmp_path) + b"/\xff\n"
    os.mkdir(folder)
    own = ["--ledger", str(tmp_path / "shelf"), "--report", str(tmp_path / "report.json")]
    command = [COMMAND, "run", *own, "--write", ".", "--", "true", b"\xfe\x1b[31m"]
    done = subprocess.run(command, cwd=folder, capture_output=True, timeout=15)
    assert done.returncode == 0, done.stderr
    assert json.loads((tmp_path / "report.json").read_text())["argv"] == ["true", r"\xfe\u{1b}[31m"]


def test_a_sandbox_that_dies_under_the_command_is_a_failure_and_says_so(stockade: Any, world: World) -> None:
    """Killed from outside: bubblewrap, whose end takes the stage and the command with it."""
    talk = Talk(stockade, ALLOWED)
    assert talk.say("allowed.test", "one") == "one"
    children = Path(f"/proc/{talk.worker.pid}/task/{talk.worker.pid}/children").read_text().split()
    (bwrap,) = [pid for pid in children if Path(f"/proc/{pid}/comm").read_text().strip() == "bwrap"]
    os.kill(int(bwrap), signal.SIGKILL)
    _out, err = talk.worker.communicate(timeout=15)
    assert talk.worker.returncode == 104, err
    assert b"sandbox-died" in err


def test_a_permitted_place_that_is_not_reached_is_told_at_the_end(stockade: Any, world: World) -> None:
    policy = "rules: [{allow: servfail.test}, {allow: allowed.test, ports: [9], protocol: tcp}]"
    script = "curl -s https://servfail.test/; curl -s http://allowed.test:9/; true"
    run = stockade(["sh", "-c", script], policy)
    assert run.denials() == []
    assert "2 permitted attempts reached nothing" in run.err
    assert "servfail.test:443  resolution-failed: " in run.err
    assert "allowed.test:9  dial-failed: refused" in run.err
