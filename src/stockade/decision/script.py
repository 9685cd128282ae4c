"""What the first line of a script starts, read as the kernel reads it (fs/binfmt_script.c). Pure.

The kernel starts the interpreter inside the same call that names the script, so whoever
judges a script must know its interpreter beforehand, and must read the line in the same
way: with another reading, one program is judged and another one runs.
"""

from __future__ import annotations

import re

from msgspec import Struct

from stockade.policy.programs import is_in_program_folder

HEAD_BYTES = 256  # linux/binfmts.h: BINPRM_BUF_SIZE, since 5.1
_BLANK = b" \t"
_ENDS_NAME = re.compile(rb"[ \t\0]")
# env(1): the one argument of a script's line may hold several words only behind -S.
_SPLIT = re.compile(r"-[iv0]*S|--split-string=")
_OPTIONS_WITH_VALUE = ("-u", "--unset", "-C", "--chdir")


class Script(Struct, frozen=True):
    """A script's first line.

    Attributes:
        interpreter: The path that the kernel starts.
        argument: All that follows it, as one argument; None if nothing does.
    """

    interpreter: str
    argument: str | None = None

    @property
    def text(self) -> str:
        """As records show it: ``/usr/bin/env python3``."""
        return f"{self.interpreter} {self.argument}" if self.argument else self.interpreter

    @property
    def command(self) -> tuple[str, ...]:
        """What to type before the script's name to run it by hand: ``python3``, ``sh -e``."""
        words = words_of_env(self.argument or "") if is_env(self.interpreter) else ()
        if words:
            return words
        program = self.interpreter
        name = program.rpartition("/")[2] if is_in_program_folder(program) else program
        return (name, self.argument) if self.argument and not is_env(program) else (name,)


def parse_script(head: bytes) -> Script | None:
    """Read the head of a file.

    Args:
        head: Its first `HEAD_BYTES` bytes, fewer if the file is shorter.

    Returns:
        None if the kernel would not take it for a script: no ``#!``, no interpreter, or an
        interpreter's name that may go on behind the limit. (A cut argument is taken.)
    """
    text = head[:HEAD_BYTES].ljust(HEAD_BYTES, b"\0")
    if not text.startswith(b"#!"):
        return None
    line, newline, _ = text.partition(b"\n")
    if not newline:
        if not _ENDS_NAME.search(text[2:].lstrip(_BLANK)):
            return None
        line = text[:-1]
    body = line[2:].strip(_BLANK)
    name = _ENDS_NAME.split(body, maxsplit=1)[0]
    if not name:
        return None
    rest = body[len(name) :]
    has_argument = bool(rest) and not rest.startswith(b"\0")
    argument = rest.lstrip(_BLANK).partition(b"\0")[0]
    return Script(_decode(name), _decode(argument) if has_argument else None)


def _decode(data: bytes) -> str:
    return data.decode("utf-8", "surrogateescape")


def parse_script_text(text: str) -> Script:
    """`Script.text` back to a script, for whoever has the record alone."""
    interpreter, blank, argument = text.partition(" ")
    return Script(interpreter, argument if blank else None)


def is_env(program: str) -> bool:
    """True for the program that looks another one up on the PATH and becomes it."""
    return program.rpartition("/")[2] == "env"


def words_of_env(argument: str) -> tuple[str, ...]:
    """The program that ``env`` starts, with its arguments, from the one argument of a script's line.

    Empty if it names none: then env would start the script itself again.
    """
    split = _SPLIT.match(argument)
    if split is None:
        return () if not argument or argument.startswith("-") or "=" in argument else (argument,)
    words = argument[split.end() :].split()
    while words and (words[0].startswith("-") or "=" in words[0]):
        option = words.pop(0)
        if option in _OPTIONS_WITH_VALUE and words:
            words.pop(0)
    return tuple(words)
