"""The others: where they come from, and how each is started for a measurement.

Everything is installed through ordinary clients (npm, pip, apt) into one folder outside the
repository. What cannot be installed is named with the reason and stays in every table.
Configurations are each peer's default plus the one destination that the load goes to.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

HOME = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "stockade-bench"
MODULES = HOME / "node_modules"
MACHINE = {"x86_64": ("linux-x64", "x86_64"), "aarch64": ("linux-arm64", "aarch64")}[os.uname().machine]
CODEX = MODULES / f"@openai/codex-{MACHINE[0]}/vendor/{MACHINE[1]}-unknown-linux-musl/bin/codex"
CODEX_SHIM = MODULES / "@openai/codex/bin/codex.js"
SRT = MODULES / "@anthropic-ai/sandbox-runtime/dist/cli.js"
SANDLOCK = HOME / "python/bin/python"
FAILURES = HOME / "failures.json"
NODE_WANTED = (22, 12)
"""srt 0.0.83 asks for it."""

DEBIAN_PACKAGES = {
    "tinyproxy": "tinyproxy",
    "squid": "squid",
    "socat": "socat",
    "rg": "ripgrep",
    "bwrap": "bubblewrap",
}
"""Program -> package; srt needs socat and ripgrep."""

failures: dict[str, str] = {}
"""Installer -> last line of what it said."""
missing: dict[str, str] = {}
"""Peer -> why it is not there."""


# --- installing -----------------------------------------------------------------------------------


def install_all() -> None:
    """Fetch what is not there yet."""
    HOME.mkdir(parents=True, exist_ok=True)
    packages = {"codex": "@openai/codex", "srt": "@anthropic-ai/sandbox-runtime"}
    if system_node_version() < NODE_WANTED:
        packages["node"] = "node@22"
    wanted = [spec for name, spec in packages.items() if not npm_package(name).exists()]
    if wanted:
        attempt(["npm", "install", "--prefix", str(HOME), "--no-audit", "--no-fund", *wanted])
    if not SANDLOCK.exists():
        attempt(["/usr/bin/python3", "-m", "venv", str(SANDLOCK.parents[1])])
        attempt([str(SANDLOCK), "-m", "pip", "install", "--quiet", "sandlock"])
    packages_wanted = [package for program, package in DEBIAN_PACKAGES.items() if not which(program)]
    if packages_wanted:
        root = [] if os.geteuid() == 0 else ["sudo", "-n"]
        attempt([*root, "apt-get", "install", "-y", "-q", "--no-install-recommends", *packages_wanted])
    FAILURES.write_text(json.dumps(failures))


def attempt(command: list[str]) -> None:
    """Run an installer; its failure is reported later, by `find_all`, as a missing peer."""
    print("bench:", " ".join(command), file=sys.stderr)
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=600)
        if done.returncode:
            failures[command[0]] = (done.stderr.strip().splitlines() or ["no message"])[-1]
    except (OSError, subprocess.TimeoutExpired) as problem:
        failures[command[0]] = str(problem)


def system_node_version() -> tuple[int, ...]:
    """Return the version of the machine's own node, (0,) without one."""
    if not shutil.which("node"):
        return (0,)
    text = subprocess.run(["node", "--version"], capture_output=True, text=True).stdout
    return tuple(int(number) for number in re.findall(r"\d+", text)[:2])


def npm_package(name: str) -> Path:
    """Return the file that shows that an npm package is there."""
    return {"codex": CODEX, "srt": SRT, "node": MODULES / ".bin/node"}[name]


def node() -> str:
    """Return the node to run npm peers with."""
    own = MODULES / ".bin/node"
    return str(own) if own.exists() else "node"


def which(program: str) -> str | None:
    """Find a program, in the folders of the system's administrator too."""
    return shutil.which(program, path=f"{os.environ['PATH']}:/usr/sbin:/sbin")


def find_all() -> dict[str, str]:
    """Return peer -> version for what is there, and fill `missing` for what is not."""
    tries: dict[str, tuple[bool, list[str]]] = {
        "bubblewrap": (bool(which("bwrap")), ["bwrap", "--version"]),
        "codex": (CODEX.exists(), [str(CODEX), "--version"]),
        "srt": (SRT.exists() and bool(which("socat")) and bool(which("rg")), [node(), str(SRT), "--version"]),
        "sandlock": (sandlock_works(), [str(SANDLOCK), "-m", "pip", "show", "sandlock"]),
        "tinyproxy": (bool(which("tinyproxy")), ["tinyproxy", "-v"]),
        "squid": (bool(which("squid")), [which("squid") or "squid", "-v"]),
        "node": (True, [node(), "--version"]),
    }
    versions = {}
    for name, (is_there, command) in tries.items():
        if is_there:
            versions[name] = version_of(command)
        else:
            missing[name] = "not installed (" + (why_not() or "no installer was tried") + ")"
    return versions


def why_not() -> str:
    """Return what the installers said, as they ran in another process before the seal."""
    return "; ".join(f"{who}: {what}" for who, what in json.loads(FAILURES.read_text()).items())


def sandlock_works() -> bool:
    """Say whether the package can be imported: it ships native code for some machines only."""
    command = [str(SANDLOCK), "-c", "import sandlock"]
    return SANDLOCK.exists() and subprocess.run(command, capture_output=True).returncode == 0


def version_of(command: list[str]) -> str:
    """Return the first version number that a command prints."""
    done = subprocess.run(command, capture_output=True, text=True)
    found = re.search(r"\d+\.\d+(\.\d+)?", done.stdout + done.stderr)
    return found.group() if found else "unknown"


# --- configuring ----------------------------------------------------------------------------------


def write_configurations(folder: Path, port: int) -> None:
    """Write each peer's configuration: its defaults and one permitted destination, 127.0.0.1:`port`."""
    codex_home().mkdir(exist_ok=True)
    (codex_home() / "config.toml").write_text(CODEX_CONFIG)
    rules = {"allowedDomains": ["127.0.0.1"], "deniedDomains": [], "allowLocalBinding": True}
    files = {"denyRead": [], "allowWrite": ["/tmp"], "denyWrite": []}
    (folder / "srt.json").write_text(json.dumps({"network": rules, "filesystem": files}))
    (folder / "sandlock_run.py").write_text(SANDLOCK_RUN.format(port=port))
    (folder / "tinyproxy.conf").write_text(TINYPROXY_CONFIG.format(folder=folder, port=port))
    (folder / "tinyproxy.filter").write_text(r"^127\.0\.0\.1$" + "\n")
    (folder / "squid.conf").write_text(SQUID_CONFIG.format(folder=folder, port=port))


def codex_home() -> Path:
    """Return codex's own folder; not below /tmp, where it refuses to make its helper links."""
    return HOME / "codex-home"


CODEX_CONFIG = """\
default_permissions = "bench"
[features]
network_proxy = true
[permissions.bench.filesystem]
":root" = "read"
[permissions.bench.network]
enabled = true
allow_local_binding = true
[permissions.bench.network.domains]
"127.0.0.1" = "allow"
"""

SANDLOCK_RUN = """\
import sys, sandlock
seen = ["/usr", "/lib", "/lib64", "/bin", "/etc", "/proc", "/dev", "/sys", *sys.argv[1].split(":")]
box = sandlock.Sandbox(net_allow=["tcp://127.0.0.1:{port}"], fs_readable=seen, fs_writable=["/tmp"])
sys.exit(box.popen(sys.argv[2:]).wait().exit_code)
"""

TINYPROXY_CONFIG = """\
Port 3128
Listen 127.0.0.1
Timeout 600
MaxClients 2000
LogLevel Warning
LogFile "{folder}/tinyproxy.log"
Allow 127.0.0.1
ConnectPort {port}
Filter "{folder}/tinyproxy.filter"
FilterDefaultDeny Yes
"""

SQUID_CONFIG = """\
http_port 127.0.0.1:3128
acl bench dst 127.0.0.1
acl bench_port port {port}
http_access allow bench bench_port
http_access deny all
cache deny all
access_log stdio:{folder}/squid_access.log
cache_log {folder}/squid_cache.log
pid_filename {folder}/squid.pid
netdb_filename none
shutdown_lifetime 0 seconds
max_filedescriptors 16384
"""
