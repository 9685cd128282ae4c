"""Chromium under `exec/browser`: pages, pictures, its debugging pipe; and no program besides it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from doubles.png import read_png
from stockade.prove.world_client import World

pytestmark = [
    pytest.mark.kernel,
    pytest.mark.clients,
    pytest.mark.slow,
    pytest.mark.timeout(90),
    pytest.mark.needs("world", "userns", "bwrap", "room", "chromium"),
]

CHROMIUM = "/usr/lib/chromium/chromium"
FLAGS = ["--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--user-data-dir=/tmp/profile"]
LOCAL = "<body style='background: #00f; margin: 0'><p style='background: #f00; margin: 0'>local</p></body>"
WEB = "rules:\n  - {allow: docs.test, ports: [80]}\n"
RED, BLUE = (255, 0, 0), (0, 0, 255)


LAUNCHED_BY_A_SHELL = """#!/bin/sh
echo started >&2
exec "$@"
"""
# An agent beside its browser: the browser's debugging pipe is on its descriptors 3 and 4.
AGENT = """
import json, os, subprocess, sys
theirs_in, ours_out = os.pipe()
ours_in, theirs_out = os.pipe()

def become() -> None:
    os.dup2(theirs_in, 13), os.dup2(theirs_out, 14)
    os.dup2(13, 3), os.dup2(14, 4)

browser = subprocess.Popen(sys.argv[1:], preexec_fn=become, close_fds=False)
os.close(theirs_out)
to, back = os.fdopen(ours_out, "wb"), os.fdopen(ours_in, "rb")
"""
TALK = """
def call(number, method, **params):
    session = params.pop("session", None)
    message = {"id": number, "method": method, "params": params} | ({"sessionId": session} if session else {})
    to.write(json.dumps(message).encode() + b"\\0")
    to.flush()
    while True:
        text = b""
        while (byte := back.read(1)) != b"\\0":
            assert byte, "the browser hung up"
            text += byte
        answer = json.loads(text)
        if answer.get("id") == number:
            return answer["result"]

page = call(1, "Target.createTarget", url="about:blank")["targetId"]
session = call(2, "Target.attachToTarget", targetId=page, flatten=True)["sessionId"]
print(call(3, "Runtime.evaluate", expression="6 * 7", session=session)["result"]["value"])
call(4, "Browser.close")
browser.wait()
"""


def commands(run: Any) -> list[tuple[str, str]]:
    return [
        (record["program"], record["verdict"])
        for record in run.attempts(entry="exec")
        if "call" not in record
    ]


@pytest.mark.parametrize("workspace", ["", "/tmp"], indirect=True, ids=["elsewhere", "below-tmp"])
def test_f21_pictures_of_a_page_of_the_world_and_of_a_local_file(
    under: Any, world: World, workspace: Path
) -> None:
    (workspace / "local.html").write_text(LOCAL)
    size = "--window-size=400,300"
    local = under(
        "exec/browser",
        [CHROMIUM, *FLAGS, size, "--screenshot=local.png", f"file://{workspace}/local.html"],
        timeout_s=40,
    )
    assert local.code == 0, local.err
    picture = read_png((workspace / "local.png").read_bytes())
    assert (picture.width, picture.height) == (400, 300)
    assert (picture.pixel(399, 1), picture.pixel(399, 299)) == (RED, BLUE)

    page = under(
        "exec/browser",
        [CHROMIUM, *FLAGS, size, "--screenshot=page.png", "http://docs.test/"],
        WEB,
        timeout_s=40,
    )
    assert page.code == 0, page.err
    picture = read_png((workspace / "page.png").read_bytes())
    assert (picture.width, picture.height) == (400, 300)
    assert len(picture.colors()) > 2  # text, smoothed: a blank page or an error page of one color is none
    assert "/" in {request["path"] for request in world.requests()}
    assert set(commands(local) + commands(page)) <= {
        (CHROMIUM, "allow"),
        ("/usr/lib/chromium/chrome_crashpad_handler", "allow"),
        ("/proc/self/exe", "allow"),
    }


def test_a_shell_that_chromium_is_told_to_start_does_not_run(
    under: Any, stockade: Any, workspace: Path
) -> None:
    script = workspace / "wrapper"
    script.write_text(LAUNCHED_BY_A_SHELL)
    command = [CHROMIUM, *FLAGS, "--no-zygote", f"--renderer-cmd-prefix=/bin/sh {script}", "--dump-dom",
               "data:text/html,<p>shown"]  # fmt: skip
    # Without a renderer Chromium waits for one as long as it may.
    run = under("exec/browser", command, "limits: {time: 8s}\n", timeout_s=40)
    assert "started" not in run.err
    assert "shown" not in run.out
    denied = [record for record in run.denials(entry="exec") if "call" not in record]
    assert {(record["program"], record["file"]) for record in denied} == {
        ("/bin/sh", os.path.realpath("/bin/sh"))
    }
    control = stockade(command, "exec: {mode: any, unix-sockets: true}", timeout_s=60)
    assert "started" in control.err
    assert "<p>shown" in control.out


def test_an_agent_drives_the_browser_beside_it_through_a_pipe(under: Any, workspace: Path) -> None:
    """As Playwright does: the pipe is on descriptors 3 and 4 of the browser, and no port is opened."""
    (workspace / "agent.py").write_text(AGENT + TALK)
    command = ["/usr/bin/python3", "agent.py", CHROMIUM, *FLAGS, "--remote-debugging-pipe"]
    run = under("exec/browser, exec/python", command, timeout_s=40)
    assert run.out == "42\n", run.err
    assert {verdict for _program, verdict in commands(run)} == {"allow"}


def test_a_browser_is_driven_from_outside_through_a_launcher(policy_file: Any, workspace: Path) -> None:
    """As Playwright starts it: descriptors 3 and 4 are the debugging pipe, no program stands between."""
    policy = policy_file("include: [exec/browser]\n")
    launcher = workspace.parent / "launcher"
    stockade = Path(sys.prefix) / "bin" / "stockade"
    launcher.write_text(
        f"#!/bin/sh\nexec {stockade} run -q --debugging-pipe -p {policy} --ledger {workspace.parent}/ledger"
        f""" -- {CHROMIUM} "$@" <&3 >&4\n"""
    )
    launcher.chmod(0o755)
    done = subprocess.run(
        [sys.executable, "-c", AGENT + TALK, str(launcher), *FLAGS, "--remote-debugging-pipe"],
        capture_output=True,
        cwd=workspace,
        text=True,
        timeout=60,
    )
    assert done.stdout == "42\n", done.stderr
