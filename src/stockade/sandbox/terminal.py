"""Terminal output made harmless: what would make the operator's terminal answer or act is left out. Pure.

A program can ask a terminal questions whose answer arrives as if typed (its title, a
setting, part of the screen), put text into the clipboard, define keys, move windows. The
answer reaches whoever reads the terminal next: after the run that is the operator's shell.
Colors, cursor movement, titles and web links pass. Questions whose answer is a fixed form
of numbers (where is the cursor, what are you) pass too, since editors need them and no
text of the worker's can be in the answer. That one was asked is noted: its answer is not
for the shell either (console.py).

What passes is listed; what is not known is left out. The names are those of xterm's
ctlseqs ("XTerm Control Sequences"), which other terminals follow; what went wrong with them before
stands beside the lists.

Three mistakes to avoid. C1 controls exist as single bytes (0x9b) and as UTF-8 (c2 9b), and a byte
like 0x9b is also an innocent part of many letters; so UTF-8 is tracked. A sequence may be cut
anywhere between two reads; so the state is kept. And a sequence that changes how later bytes are
read (``ESC % @`` to Latin-1, where the second byte of a letter is a control; VT52 and Tektronix
modes) would make the terminal read something else than this filter; so none passes.
"""

from __future__ import annotations

import re

ESC, BEL, CAN, SUB, ENQ, SHIFT_OUT = 0x1B, 0x07, 0x18, 0x1A, 0x05, 0x0E

# Single-letter escapes: indexes, saved cursor, keypad, character sets shifted, reset, end of a string.
# Not Z (old identify) and not G, to which rxvt and its kin answered with a line of its own (CVE-2021-33477).
_ESCAPES_SHOWN = frozenset(b"6789=>cDEHMNOno|}~\\")
# Escapes with an intermediate byte: character sets of 94 and 96 letters, line sizes. Not `%` (UTF-8 on and
# off), not SP (answers in 8-bit form), not `$` (two-byte sets).
_INTERMEDIATES_SHOWN = frozenset(b"()*+-./#")
# Operating system commands that only show something: titles, colors (set, not asked), web links.
# Not 7, the folder: some terminals look its host up, and open the next window there. Not 133, shell marks:
# `click_events` makes later clicks input. Not 50, fonts (CVE-2022-45063), nor 52, the clipboard.
_OSC_SHOWN = frozenset({"0", "1", "2", "4", "8", "10", "11", "12", "104", "110", "111", "112"})
_COLOR_RESETS = {"4": b"104", "10": b"110", "11": b"111", "12": b"112"}
# Links that a click hands to a browser; other schemes have run programs (CVE-2023-46321, CVE-2023-46322).
_LINK_SCHEMES = ("http://", "https://")
_SEQUENCE_LIMIT_BYTES = 2048  # so that a whole one fits into one write (streams.py)

# What is passed on and makes no terminal answer: finals with their intermediates.
_SILENT = frozenset("@ABCDEFGHIJKLMPTUVWXYZ`abdefghjklrs") | frozenset(
    {" @", " A", " q", '"q', "!p", '"p', "$r", "$t", "$v", "$x", "$z", "${", "*x", "'}", "'~"}
    | {"#p", "#q", "#{", "#}", "#P", "#Q"}
)
# Silent with some private prefixes: m for key modifiers, u for keyboard modes, p for how the pointer hides.
_SILENT_PREFIXES = {"S": ("",), "m": ("", ">"), "u": ("", ">", "<", "="), "q": ("",), "p": (">",)}
# Questions that are answered by numbers of the terminal's: with these prefixes.
_QUESTION_PREFIXES = {
    "n": ("", "?"), "c": ("", ">", "="), "x": ("",), "$p": ("", "?"), "q": (">",), "S": ("?",), "m": ("?",),
    "u": ("?",),
}  # fmt: skip
# Window operations: sizes and places are asked, titles kept and put back. Not 20 and 21, which answer with a
# title (CVE-2003-0063), and not those that move, shrink or hide the window.
_WINDOW_QUESTIONS = frozenset({"11", "13", "14", "15", "16", "18", "19"})
_WINDOW_SILENT = frozenset({"22", "23"})
_PARAMETERS = re.compile(r"([<=>?]?)([0-9;:]*)([ -/]*)")

# Text without controls that matter, in whole UTF-8 letters.
_PLAIN = re.compile(
    rb"(?:[^\x05\x0e\x1b\x80-\xff]|\xc2[\xa0-\xbf]|[\xc3-\xdf][\x80-\xbf]"
    rb"|[\xe0-\xef][\x80-\xbf]{2}|[\xf0-\xf4][\x80-\xbf]{3})+"
)

# Private modes that may be set. Not 2 (VT52), 38 (Tektronix), 46 (log to a file), 3 and 40 (window size),
# 42 (national letters), 1001 (waits for its program).
_MODES = frozenset(
    {1, 4, 5, 6, 7, 8, 9, 12, 25, 45, 47, 66, 67, 69, 1000, 1002, 1003, 1004, 1005, 1006, 1007, 1015, 1016}
    | {1034, 1035, 1036, 1039, 1042, 1045, 1046, 1047, 1048, 1049, 2004, 2026, 2027, 2031, 2048, 9001}
)
# Modes of the standard: insertion, and what Enter sends. Not 2, which locks the keyboard.
_STANDARD_MODES = frozenset({4, 20})
# What a program may leave on when it is killed, and what makes the next shell unusable.
_LINGERING_MODES = frozenset(
    {1, 5, 6, 9, 45, 47, 66, 67, 69, 1000, 1002, 1003, 1004, 1005, 1006, 1007, 1015, 1016, 1047, 1049}
    | {2004, 2026, 2031, 2048, 9001}
)
_LINGERING_WHEN_OFF = frozenset({7, 25})
# With these on the terminal speaks without being asked: mouse, focus, color scheme, size, keys as records.
_REPORTING_MODES = frozenset({9, 1000, 1002, 1003, 1004, 2031, 2048, 9001})


class AnswerBackFilter:
    """Feed it what the worker writes to its terminal; it gives what may be shown.

    Args:
        may_ask: Whether questions pass, and modes in which the terminal speaks by itself:
            not where the worker could not read the answer.

    Attributes:
        has_asked: Something was passed on that makes the terminal send something.
        has_asked_status: Among it ``CSI 5 n``, the question that console.py asks itself.
    """

    def __init__(self, *, may_ask: bool = True) -> None:
        self._may_ask = may_ask
        self._state = _GROUND
        self._sequence = bytearray()
        self._continuation = 0  # UTF-8 bytes still to come
        self._lead = 0
        self._modes: dict[int, None] = {}
        self._modes_off: dict[int, None] = {}
        self._undoing: dict[bytes, None] = {}
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
        """What undoes what was left on: mouse reports, paste brackets, the other screen, keyboard modes."""
        off = b"".join(b"\x1b[?%dl" % mode for mode in self._modes)
        on = b"".join(b"\x1b[?%dh" % mode for mode in self._modes_off)
        return off + on + b"".join(self._undoing)

    # --- states: what to do with the next byte ------------------------------------------

    def _ground(self, byte: int, out: bytearray) -> None:
        if self._continuation:
            self._within_letter(byte, out)
        elif byte == ESC:
            self._state = _ESCAPE
        elif byte == ENQ:
            pass  # answered with a string that the user has set
        elif byte < 0x80:
            if byte == SHIFT_OUT:
                self._undoing[b"\x0f"] = None
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
        if byte in b"[]PX^_k":  # k begins a title in screen and tmux, up to the end of a string
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
            if byte >= 0x80:
                self._ground(byte, out)
            elif byte in _ESCAPES_SHOWN:
                if byte == 0x3D:
                    self._undoing[b"\x1b>"] = None  # the keypad sends numbers again
                out += bytes((ESC, byte))

    def _intermediate(self, byte: int, out: bytearray) -> None:
        if 0x20 <= byte < 0x30 and len(self._sequence) < 8:
            self._sequence.append(byte)
            return
        self._state = _GROUND
        if not 0x30 <= byte < 0x7F:
            self._ground(byte, out)
        elif self._sequence[0] in _INTERMEDIATES_SHOWN:
            if self._sequence[0] in b"(" and byte != 0x42:
                self._undoing[b"\x1b(B"] = None  # ASCII again
            out += bytes((ESC,)) + self._sequence + bytes((byte,))

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
            out += self._csi_shown(self._sequence[1:].decode("ascii"), chr(byte))

    @staticmethod
    def _carry_out(byte: int, out: bytearray) -> None:
        """A control inside a sequence takes effect at once, and the sequence goes on."""
        if byte != ENQ:
            out.append(byte)

    def _csi_shown(self, parameters: str, final: str) -> bytes:
        """What is passed on of a control sequence; empty if nothing."""
        parts = _PARAMETERS.fullmatch(parameters)
        if parts is None:
            return b""
        prefix, numbers, intermediates = parts.groups()
        final = intermediates + final
        if final in ("h", "l") or (final in ("r", "s") and prefix == "?"):
            numbers = ";".join(self._modes_shown(prefix, numbers.split(";"), final))
            return b"\x1b[" + (prefix + numbers + final).encode() if numbers else b""
        if is_question(prefix, numbers, final):
            if not self._may_ask:
                return b""
            self.has_asked = True
            self.has_asked_status |= final == "n"
        elif not is_silent(prefix, numbers, final):
            return b""
        else:
            self._note(prefix, final)
        return b"\x1b[" + (prefix + numbers + final).encode()

    def _modes_shown(self, prefix: str, modes: list[str], final: str) -> list[str]:
        known = {"?": _MODES, "": _STANDARD_MODES}.get(prefix, frozenset())
        shown = []
        for text in modes:
            mode = int(text) if text.isdecimal() else -1
            is_on = final in "hr"  # r puts back what was kept by s, on or off
            speaks = prefix == "?" and is_on and mode in _REPORTING_MODES
            if mode not in known or (speaks and not self._may_ask):
                continue
            shown.append(text)
            self.has_asked |= speaks
            if prefix == "":
                self._undoing[b"\x1b[%dl" % mode] = None
            elif final != "s":
                self._note_mode(mode, is_on)
        return shown

    def _note_mode(self, mode: int, is_on: bool) -> None:
        lingering = self._modes if mode in _LINGERING_MODES else self._modes_off
        if mode in _LINGERING_MODES or mode in _LINGERING_WHEN_OFF:
            if is_on == (lingering is self._modes):
                lingering[mode] = None
            else:
                lingering.pop(mode, None)

    def _note(self, prefix: str, final: str) -> None:
        if final == "u" and prefix in (">", "="):
            self._undoing[b"\x1b[<9u\x1b[=0u"] = None  # keys in their usual form
        elif final == "m" and prefix == ">":
            self._undoing[b"\x1b[>4m"] = None
        elif final == " q":
            self._undoing[b"\x1b[0 q"] = None

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
            number = bytes(self._sequence[1:]).partition(b";")[0].decode()
            if number in _COLOR_RESETS:
                self._undoing[b"\x1b]" + _COLOR_RESETS[number] + b"\x1b\\"] = None
            out += b"\x1b]" + self._sequence[1:] + b"\x1b\\"


def is_question(prefix: str, numbers: str, final: str) -> bool:
    """Whether a CSI sequence makes a terminal answer, with numbers alone.

    Args:
        prefix: One of ``<=>?``, or empty.
        numbers: Its parameters.
        final: Its last letter, after intermediate bytes if it has some.
    """
    if final == "t":
        return prefix == "" and _window_operation(numbers) in _WINDOW_QUESTIONS
    return prefix in _QUESTION_PREFIXES.get(final, ())


def is_silent(prefix: str, numbers: str, final: str) -> bool:
    """Whether a CSI sequence is known to show something, or to change it back, and nothing else."""
    if final == "t":
        return prefix == "" and _window_operation(numbers) in _WINDOW_SILENT
    return final in _SILENT or prefix in _SILENT_PREFIXES.get(final, ())


def _window_operation(numbers: str) -> str:
    return numbers.split(";")[0].lstrip("0")


def may_show_osc(body: bytes) -> bool:
    """Whether an operating system command only shows something."""
    if any(byte < 0x20 for byte in body):
        return False
    number, _, value = body.decode("utf-8", "replace").partition(";")
    if number not in _OSC_SHOWN:
        return False
    if number == "8":
        address = value.partition(";")[2]
        return address == "" or address.lower().startswith(_LINK_SCHEMES)
    return number in ("0", "1", "2") or "?" not in value


_GROUND = AnswerBackFilter._ground
_ESCAPE = AnswerBackFilter._escape
_INTERMEDIATE = AnswerBackFilter._intermediate
_CSI = AnswerBackFilter._csi
_STRING = AnswerBackFilter._string
_STRING_ESCAPE = AnswerBackFilter._string_escape
