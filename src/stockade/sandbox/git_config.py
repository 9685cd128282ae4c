"""Git's settings files, as far as they decide what a later git command runs. Pure.

Two readers with opposite aims. `parse_config` is generous and reads what the operator wrote,
to find the files that git will run: what it misses is missed. `is_plain_config` is strict and
judges what a worker left: only lines that it knows pass, so a trick of the syntax (git's own
parser is more liberal than this one) makes a file suspicious, never harmless.
The syntax is git-config(1), "CONFIGURATION FILE".
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable

from msgspec import Struct


class Setting(Struct, frozen=True):
    """One line: ``[section "subsection"] key = value``, section and key in lower case."""

    section: str
    subsection: str
    key: str
    value: str

    @property
    def name(self) -> str:
        return ".".join(part for part in (self.section, self.subsection, self.key) if part)


_SECTION = re.compile(r'\s*\[\s*([A-Za-z0-9.-]+)\s*(?:"((?:[^"\\]|\\.)*)")?\s*\]')
_KEY = re.compile(r"\s*([A-Za-z][A-Za-z0-9-]*)\s*(?:=\s*(.*))?$")


def parse_config(text: str) -> list[Setting]:
    """The settings of a file, in order; what is not understood is left out."""
    found = []
    section, subsection = "", ""
    for line in text.replace("\r\n", "\n").replace("\\\n", "").split("\n"):
        if header := _SECTION.match(line):
            section, subsection = header[1].lower(), (header[2] or "").replace("\\", "")
            if "." in section and not subsection:  # the old form [section.subsection]
                section, _, subsection = section.partition(".")
            line = line[header.end() :]
        if section and (entry := _KEY.match(line)):
            found.append(Setting(section, subsection, entry[1].lower(), _value_of(entry[2])))
    return found


def _value_of(text: str | None) -> str:
    """A value without comment and quotes; a key alone means true."""
    if text is None:
        return "true"
    out, is_quoted, is_escaped = "", False, False
    for letter in text:
        if is_escaped:
            out += {"n": "\n", "t": "\t"}.get(letter, letter)
            is_escaped = False
        elif letter == "\\":
            is_escaped = True
        elif letter == '"':
            is_quoted = not is_quoted
        elif letter in "#;" and not is_quoted:
            break
        else:
            out += letter
    return out.strip()


def is_true(value: str) -> bool:
    return value.lower() in ("true", "yes", "on", "1")


def is_boolean(value: str) -> bool:
    return is_true(value) or value.lower() in ("false", "no", "off", "0", "")


# Values that git hands to a shell, or runs; by section and key, the subsection left out.
_COMMANDS = frozenset(
    {
        *("core.editor", "core.pager", "core.sshcommand", "core.askpass", "core.gitproxy"),
        *("core.alternaterefscommand", "sequence.editor", "interactive.difffilter"),
        *("diff.external", "diff.command", "diff.textconv", "merge.driver", "difftool.cmd", "mergetool.cmd"),
        *("filter.clean", "filter.smudge", "filter.process", "gpg.program", "credential.helper"),
        *("trailer.command", "trailer.cmd", "uploadpack.packobjectshook", "gc.recentobjectshook"),
        *("remote.uploadpack", "remote.receivepack", "browser.cmd", "man.cmd"),
        *("sendemail.tocmd", "sendemail.cccmd", "sendemail.sendmailcmd"),
    }
)
_COMMAND_SECTIONS = frozenset({"pager", "alias", "submodule"})


def command_words(setting: Setting) -> list[str]:
    """The words of a command line, if git runs this setting's value; else none."""
    value = setting.value
    if setting.section in _COMMAND_SECTIONS:
        is_command = setting.section == "pager" or value.startswith("!")
    else:
        is_command = f"{setting.section}.{setting.key}" in _COMMANDS
    if not is_command:
        return []
    try:
        return shlex.split(value.removeprefix("!"))
    except ValueError:
        return value.split()


# --- what a worker left ----------------------------------------------------------------------------

_LIMIT_BYTES = 1 << 16
_PLAIN_SECTION = re.compile(r'\[([A-Za-z0-9-]+)(?: "([^"\\\x00-\x1f\x7f]*)")?\]\s*')
_PLAIN_KEY = re.compile(r"\s*([A-Za-z][A-Za-z0-9-]*) ?= ?([^\\\x00-\x08\x0a-\x1f\x7f]*)")
# What `init`, `clone`, `remote`, `branch`, `submodule`, `sparse-checkout` and `lfs` write. Not what partial
# clones write: by `promisor` git fetches from the address of the worker's choice while it shows a status.
_PLAIN = {
    "core": "repositoryformatversion filemode bare logallrefupdates ignorecase precomposeunicode symlinks"
    " autocrlf eol safecrlf sparsecheckout sparsecheckoutcone quotepath abbrev splitindex untrackedcache",
    "extensions": "objectformat refstorage worktreeconfig",
    "remote": "url pushurl fetch tagopt prune mirror gtag",
    "branch": "remote merge rebase pushremote description",
    "submodule": "url active branch ignore fetchrecursesubmodules recurse",
    "user": "name email",
    "init": "defaultbranch",
    "pull": "rebase ff",
    "push": "default autosetupremote followtags",
    "fetch": "prune prunetags",
    "index": "sparse version",
    "lfs": "repositoryformatversion",
}
_PLAIN_KEYS = {section: frozenset(keys.split()) for section, keys in _PLAIN.items()}
# A URL that names a program: `ext::…`, or an option where the host should stand.
_ODD_URL = re.compile(r"\w+::|[a-z+]+://-|-", re.IGNORECASE)


def is_plain_config(content: bytes, is_inside: Callable[[str], bool]) -> bool:
    """Whether a settings file holds nothing by which git would run something or go elsewhere.

    Args:
        content: The file.
        is_inside: Whether a path as it stands there (``core.worktree``) stays in the worker's folder.
    """
    if len(content) > _LIMIT_BYTES:
        return False
    try:
        lines = content.decode("utf-8").split("\n")
    except UnicodeDecodeError:
        return False
    section = ""
    for line in lines:
        if not line.strip(" \t") or line.lstrip(" \t").startswith(("#", ";")):
            continue
        if header := _PLAIN_SECTION.fullmatch(line):
            section = header[1].lower()
        elif not _is_plain_line(section, line, is_inside):
            return False
    return True


def _is_plain_line(section: str, line: str, is_inside: Callable[[str], bool]) -> bool:
    entry = _PLAIN_KEY.fullmatch(line)
    if entry is None:
        return False
    key, value = entry[1].lower(), entry[2].strip(" \t\"'")
    if section == "core" and key == "fsmonitor":
        return is_boolean(value)
    if section == "core" and key == "worktree":
        return is_inside(value)
    if section == "submodule" and key == "update":
        return value in ("checkout", "rebase", "merge", "none")
    if key in ("url", "pushurl", "remote", "pushremote") and _ODD_URL.match(value):
        return False
    return key in _PLAIN_KEYS.get(section, frozenset())
