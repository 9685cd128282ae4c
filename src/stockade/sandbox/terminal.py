"""Terminal output made harmless: what would make the operator's terminal answer or act is left out. Pure.

A program can ask a terminal questions whose answer arrives as if typed (its title, a
setting, part of the screen), put text into the clipboard, or define keys. The answer
reaches whoever reads the terminal next: after the run that is the operator's shell.
Colors, cursor movement, titles and links pass. Questions whose answer is a fixed form
of numbers (where is the cursor, what are you) pass too, since editors need them and no
text of the worker's can be in the answer. That one was asked is noted: its answer is not
for the shell either (console.py).

Two mistakes to avoid: C1 controls exist as single bytes (0x9b) and as UTF-8 (c2 9b),
and a byte like 0x9b is also an innocent part of many letters; so UTF-8 is tracked. And
a sequence may be cut anywhere between two reads; so the state is kept.
"""

from __future__ import annotations

import re

ESC, BEL, CAN, SUB, ENQ = 0x1B, 0x07, 0x18, 0x1A, 0x05

# Operating system commands that only show something: titles, colors (set, not asked), links, shell marks.
_OSC_SHOWN = frozenset({"0", "1", "2", "4", "7", "8", "10", "11", "12", "104", "110", "111", "112", "133"})
# Final letters of CSI sequences that answer with text or make a copy elsewhere:
#   i  media copy (print, or send the screen)        y after *  checksum of a part of the screen
#   w after $  cursor and tab reports                u after $  terminal state report
_CSI_REFUSED = frozenset({"i", "*y", "$w", "$u", "&w", "+p", "+q"})
# Window operations (final t) that answer with the title or the icon's name.
_TITLE_REPORTS = frozenset({"20", "21"})
_SEQUENCE_LIMIT_BYTES = 8192

# What is passed on and makes no terminal answer: finals with their intermediates. All else counts as
# a question, so a new kind of it costs type-ahead at the end of a run, and no more.
_SILENT = frozenset("@ABCDEFGHIJKLMPTUVWXYZ`abdefghjklrs") | frozenset(
    {" @", " A", " q", '"q', "!p", '"p', "$r", "$t", "$v", "$x", "$z", "${", "*x"}
    | {"#p", "#q", "#{", "#}", "#P", "#Q"}
)
# Silent with some private prefixes: S ? asks for graphics, m ? and u ? for keyboard modes, q > for the
# version; p > sets how the pointer hides, while plain p with $ asks for a mode.
_SILENT_PREFIXES = {"S": ("",), "m": ("", ">"), "u": ("", ">", "<", "="), "q": ("",), "p": (">",)}
# Window operations that only do something: 1 to 10 move and size, from 22 on titles and lines.
_WINDOW_QUESTIONS = range(11, 22)

# Text without controls that matter, in whole UTF-8 letters.
_PLAIN = re.compile(
    rb"(?:[^\x05\x1b\x80-\xff]|\xc2[\xa0-\xbf]|[\xc3-\xdf][\x80-\xbf]"
    rb"|[\xe0-\xef][\x80-\xbf]{2}|[\xf0-\xf4][\x80-\xbf]{3})+"
)

# Private modes that a program may leave on when it is killed, and that make the next shell unusable.
_LINGERING_MODES = frozenset(
    {
        "9",
        "1000",
        "1001",
        "1002",
        "1003",
        "1004",
        "1005",
        "1006",
        "1015",
        "1016",
        "1049",
        "47",
        "1047",
        "2004",
        "2031",
        "2048",
    }
)
# With these on the terminal speaks without being asked: mouse, focus, color scheme, size.
_REPORTING_MODES = frozenset({"9", "1000", "1001", "1002", "1003", "1004", "2031", "2048"})


class AnswerBackFilter:
    """Feed it what the worker writes to its terminal; it gives what may be shown.

    Attributes:
        has_asked: Something was passed on that makes the terminal send something.
        has_asked_status: Among it ``CSI 5 n``, the question that console.py asks itself.
    """

    def __init__(self) -> None:
        self._state = _GROUND
        self._sequence = bytearray()
        self._continuation = 0  # UTF-8 bytes still to come
        self._lead = 0
        self._modes: dict[str, None] = {}
        self._cursor_hidden = False
        self.has_asked = False
        self.has_asked_status = False

    def feed(self, data: bytes) -> bytes:
        out = bytearray()
        at = 0
        while at < len(data):
            if self._state is _GROUND and not self._continuation and (plain := _PLAIN.match(data, at)):
                out += plain[0]  # the common case, a hundred times faster than byte by byte
                at = plain.end()
            else:
                self._state(self, data[at], out)
                at += 1
        return bytes(out)

    def restore(self) -> bytes:
        """What undoes the modes that were left on: mouse reports, paste brackets, the other screen."""
        off = b"".join(b"\x1b[?%sl" % mode.encode() for mode in self._modes)
        return off + (b"\x1b[?25h" if self._cursor_hidden else b"")

    # --- states: what to do with the next byte ------------------------------------------

    def _ground(self, byte: int, out: bytearray) -> None:
        if self._continuation:
            self._within_letter(byte, out)
        elif byte == ESC:
            self._state = _ESCAPE
        elif byte == ENQ:
            pass  # answered with a string that the user has set
        elif byte < 0x80:
            out.append(byte)
        elif byte < 0xC0:
            self._control(byte)  # a lone C1 byte: a control in 8-bit terminals, invalid in UTF-8
        else:
            self._lead = byte
            self._continuation = 1 if byte < 0xE0 else 2 if byte < 0xF0 else 3
            if byte != 0xC2:  # c2 80..9f are the C1 controls: wait for the second byte
                out.append(byte)

    def _within_letter(self, byte: int, out: bytearray) -> None:
        if not 0x80 <= byte < 0xC0:  # broken UTF-8: the byte begins something new
            self._continuation = 0
            self._ground(byte, out)
            return
        self._continuation -= 1
        if self._lead == 0xC2:
            self._lead = 0
            if byte < 0xA0:
                self._control(byte)
                return
            out.append(0xC2)
        out.append(byte)

    def _control(self, byte: int) -> None:
        """A C1 control: those that begin a sequence begin it, the others are dropped."""
        letter = byte - 0x40
        if letter in b"[]PX^_":
            self._begin(letter)

    def _begin(self, letter: int) -> None:
        self._sequence = bytearray((letter,))
        self._state = _CSI if letter == 0x5B else _STRING

    def _escape(self, byte: int, out: bytearray) -> None:
        if byte in b"[]PX^_":
            self._begin(byte)
        elif byte in (CAN, SUB):
            self._state = _GROUND
        elif byte in (ESC, 0x7F):
            pass  # begins anew; DEL is ignored and the sequence goes on
        elif byte < 0x20:
            self._carry_out(byte, out)
        elif 0x20 <= byte < 0x30:
            self._sequence = bytearray((byte,))
            self._state = _INTERMEDIATE
        else:
            self._state = _GROUND
            if byte == 0x5A:  # ESC Z: identify, an old form that some answer with text
                return
            if byte < 0x80:
                out += bytes((ESC, byte))
            else:
                self._ground(byte, out)

    def _intermediate(self, byte: int, out: bytearray) -> None:
        if 0x20 <= byte < 0x30 and len(self._sequence) < 8:
            self._sequence.append(byte)
            return
        self._state = _GROUND
        if 0x30 <= byte < 0x7F:
            out += bytes((ESC,)) + self._sequence + bytes((byte,))
        else:
            self._ground(byte, out)

    def _csi(self, byte: int, out: bytearray) -> None:
        if byte == ESC:
            self._state = _ESCAPE
        elif byte in (CAN, SUB):
            self._state = _GROUND
        elif byte < 0x20:
            self._carry_out(byte, out)
        elif byte < 0x40:
            if len(self._sequence) < _SEQUENCE_LIMIT_BYTES:
                self._sequence.append(byte)
        else:
            self._state = _GROUND
            if byte >= 0x7F:
                self._ground(byte, out) if byte != 0x7F else None
                return
            parameters = self._sequence[1:].decode("ascii")
            if self._may_show_csi(parameters, chr(byte)):
                out += b"\x1b[" + parameters.encode() + bytes((byte,))

    @staticmethod
    def _carry_out(byte: int, out: bytearray) -> None:
        """A control inside a sequence takes effect at once, and the sequence goes on."""
        if byte != ENQ:
            out.append(byte)

    def _may_show_csi(self, parameters: str, final: str) -> bool:
        digits = parameters.rstrip(" !\"#$%&'()*+,-./")
        if parameters[len(digits) :] + final in _CSI_REFUSED:
            return False
        if final == "t" and digits.split(";")[0].lstrip("0") in _TITLE_REPORTS:
            return False
        if digits.startswith("?") and final in "hl":
            self._note_modes(digits[1:].split(";"), final == "h")
        if is_question(digits, parameters[len(digits) :] + final):
            self.has_asked = True
            self.has_asked_status |= final == "n"
        return True

    def _note_modes(self, modes: list[str], is_on: bool) -> None:
        for mode in modes:
            if mode == "25":
                self._cursor_hidden = not is_on
                continue
            self.has_asked |= is_on and mode.lstrip("0") in _REPORTING_MODES
            if mode in _LINGERING_MODES:
                if is_on:
                    self._modes[mode] = None
                else:
                    self._modes.pop(mode, None)

    def _string(self, byte: int, out: bytearray) -> None:
        """Inside OSC, DCS, SOS, PM or APC, up to BEL (OSC only), ST, or a cancel."""
        if byte == BEL and self._sequence[0] == 0x5D:
            self._end_string(out)
        elif byte == ESC:
            self._state = _STRING_ESCAPE
        elif byte in (CAN, SUB):
            self._state = _GROUND
        elif byte == 0x9C and self._sequence[-1:] != b"\xc2" and self._sequence[-1] < 0x80:
            self._end_string(out)
        elif byte == 0x9C and self._sequence[-1] == 0xC2:
            del self._sequence[-1]
            self._end_string(out)
        elif len(self._sequence) < _SEQUENCE_LIMIT_BYTES:
            self._sequence.append(byte)
        else:
            self._sequence[:] = self._sequence[:1] + b"too long"

    def _string_escape(self, byte: int, out: bytearray) -> None:
        if byte == 0x5C:
            self._end_string(out)
        else:  # ESC ends the string without showing it, and begins something else
            self._state = _ESCAPE
            self._escape(byte, out)

    def _end_string(self, out: bytearray) -> None:
        self._state = _GROUND
        if self._sequence[0] == 0x5D and may_show_osc(bytes(self._sequence[1:])):
            out += b"\x1b]" + self._sequence[1:] + b"\x1b\\"


def is_question(numbers: str, final: str) -> bool:
    """Whether a CSI sequence makes a terminal answer.

    Args:
        numbers: Its parameters, with the private prefix if it has one.
        final: Its last letter, after intermediate bytes if it has some.
    """
    prefix = numbers[:1] if numbers[:1] in tuple("<=>?") else ""
    if final in _SILENT:
        return False
    if final == "t" and prefix == "":
        first = numbers.split(";")[0]
        return not first.isdecimal() or int(first) in _WINDOW_QUESTIONS
    return prefix not in _SILENT_PREFIXES.get(final, ())


def may_show_osc(body: bytes) -> bool:
    """Whether an operating system command only shows something."""
    if any(byte < 0x20 for byte in body):
        return False
    number, _, value = body.decode("utf-8", "replace").partition(";")
    return number in _OSC_SHOWN and (number in ("0", "1", "2", "7", "8", "133") or "?" not in value)


_GROUND = AnswerBackFilter._ground
_ESCAPE = AnswerBackFilter._escape
_INTERMEDIATE = AnswerBackFilter._intermediate
_CSI = AnswerBackFilter._csi
_STRING = AnswerBackFilter._string
_STRING_ESCAPE = AnswerBackFilter._string_escape
