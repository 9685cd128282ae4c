"""What one ledger record looks like, as bytes. Pure: values in, one line out.

A record is one line of RFC 8785 canonical JSON, so that another tool can hash it
again and get the same bytes. Four things must stay true of every line, whatever the
worker put into the fields:

* it is one line, also for readers that break lines at U+0085 or U+2028;
* it shows no control, bidi or invisible character to the terminal that prints it;
* it holds no query string, password, cookie or token, only their length and a digest
  under a key of this run, so that equal values can be matched and not guessed;
* it is no longer than `RECORD_LIMIT_BYTES` (the entry limit of C2SP tlog-tiles).

Most records hold nothing to clean. `encode_record` sees that from the encoded bytes,
which costs about a microsecond, and takes the slow road only for the others.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final

import msgspec

from stockade.errors import InternalError

OPENED: Final = "run.opened"
ATTEMPT: Final = "attempt"
OUTCOME: Final = "outcome"
CLOSED: Final = "run.closed"
HEARTBEAT: Final = "heartbeat"
RECOVERED: Final = "recovered"
STEP: Final = "agent.step"
STEP_OUTCOME: Final = "agent.outcome"
KINDS: Final = frozenset(
    (
        *(OPENED, ATTEMPT, OUTCOME, STEP, STEP_OUTCOME),
        *("policy.changed", "phase.changed", HEARTBEAT, RECOVERED, CLOSED),
    )
)
VERDICTS: Final = frozenset(("deny", "proxy", "allow"))

RECORD_LIMIT_BYTES: Final = 65_535
TEXT_LIMIT: Final = 4096
"""Characters of one text; a path or an argument longer than this is cut, with a marker."""
_LOOKED_AT = 2 * TEXT_LIMIT
ITEMS_LIMIT: Final = 256
DEPTH_LIMIT: Final = 8
INTEGER_LIMIT: Final = 2**53 - 1
"""Integers that every JSON reader holds exactly (RFC 8785 builds on IEEE 754 doubles)."""

_BASE_FIELDS = frozenset(("seq", "time", "mono_ns", "kind", "run", "id"))
_KEY = re.compile(r"[!-~]{1,255}")
"""Keys are ASCII, since only for those all readers agree about the order. A host name can be one."""
_RUN_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}", re.ASCII)

# msgspec sorts keys by their bytes, as RFC 8785 does for ASCII keys, and `_KEY` admits no others.
# Its escapes are those of RFC 8785: \b \t \n \f \r, lower-case \u00xx for other controls, nothing else.
_ENCODER = msgspec.json.Encoder(order="deterministic")

# Controls (C0, DEL, C1), line and paragraph separators, bidi marks and overrides, zero-width and other
# invisible characters, tags, non-characters, surrogates (which stand for bytes that are not UTF-8).
_UNSHOWABLE = (
    "[\x00-\x1f\x7f-\x9f\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u2028-\u202e"
    "\u2060-\u206f\u2800\u3164\ud800-\udfff\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffb\ufffe\uffff"
    "\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff]"
)
_SHORT_ESCAPES = {"\n": "\\n", "\r": "\\r", "\t": "\\t"}


def is_run_id(text: str) -> bool:
    """True if the text can name a run: it is a folder's name and stands in commands."""
    return _RUN_ID.fullmatch(text) is not None


def new_run_id(opened: str, random: bytes) -> str:
    """Name a run so that names sort by time: ``20261130T085500-1f7f3a``.

    Args:
        opened: RFC 3339 UTC time, as in records.
        random: Three or more random bytes.
    """
    return f"{opened[:10].replace('-', '')}T{opened[11:19].replace(':', '')}-{random[:3].hex()}"


def decision_id(run: str, seq: int) -> str:
    """The short word by which a refused client, a person and a record mean the same decision.

    The last characters of the run's name, which `new_run_id` makes random, and the
    sequence number: ``r7f3a-42``.
    """
    return f"{decision_prefix(run)}{seq}"


def decision_prefix(run: str) -> str:
    """What all decision ids of a run begin with; a writer asks once."""
    return f"r{''.join(c for c in run if c.isalnum())[-4:].lower()}-"


def clean_text(text: str | bytes, limit: int = TEXT_LIMIT, length: int | None = None) -> str:
    """Make untrusted text safe to show on one line and no longer than `limit` and a marker.

    What cannot be shown becomes a visible escape (``\\n``, ``\\x85`` for a byte that is
    not UTF-8, ``\\u{202e}``). Cleaning twice changes nothing, so a caller that already
    cleaned does no harm; the price is that text holding such an escape literally looks the same.

    Args:
        text: Bytes are read as UTF-8.
        limit: Characters to keep; escapes count as the one character that they stand for.
        length: How long the text was, where the caller has cut it already.
    """
    if isinstance(text, bytes):
        text = text.decode("utf-8", "surrogateescape")
    length = len(text) if length is None else length
    marker = ""
    if len(text) > limit:
        text, marker = text[:limit], f"…[{length} characters]"
    if not (text.isascii() and text.isprintable()):
        text = re.sub(_UNSHOWABLE, _escape, text)
    return text + marker


def _escape(match: re.Match[str]) -> str:
    char = match[0]
    if char in _SHORT_ESCAPES:
        return _SHORT_ESCAPES[char]
    code = ord(char)
    if 0xDC80 <= code <= 0xDCFF:  # surrogateescape: this is the raw byte
        return f"\\x{code - 0xDC00:02x}"
    return f"\\u{{{code:x}}}"


# --- redaction ---------------------------------------------------------------------------

# Patterns are texts, compiled by `re` when first used: a plain run needs none of them, and compiling
# them all costs more than writing its whole ledger. Every repeat that can be tried from many places is
# bounded or possessive: a worker chooses the text, and an unbounded one could cost quadratic time.
_NAMED = r"(?<![\w-])([\w-]{2,80}+)(\s{0,8}[=:]\s{0,8})(?!\[redacted )(?=\S)"
_VALUE = r"[^\s&;,'\"]+"
_HEADERS = ("authorization", "cookie", "cookie2")
_SECRET_NAMES = frozenset(("auth", "bearer", "jwt", "otp", "pass", "pwd", "sig"))
_SECRET_PARTS = (
    *("password", "passwd", "passphrase", "secret", "token", "credential", "signature"),
    *("apikey", "accesskey", "privatekey", "authkey", "sessionkey"),
)
_USERINFO = r"(//)([^\s/?#@\\]+(?:@[^\s/?#@\\]+)*)@"
_BEFORE_USERINFO = r"[\s/\"'=,<(]"
_QUERY = r"\?(?!\[redacted )([^\s#?=&\"']*=[^\s#\"']*)"
_TOKEN = (
    r"(?a)\b(?:gh[opsur]_\w{16,}|github_pat_\w{16,}|glpat-[\w-]{16,}|hf_\w{16,}|npm_\w{16,}|pypi-[\w-]{16,}"
    r"|sk-[\w-]{16,}|xox[abprs]-[\w-]{16,}|A[KS]IA[0-9A-Z]{16,}|AIza[\w-]{16,}"
    r"|eyJ[\w-]{8,256}\.[\w-]{8,}(?:\.[\w-]*)?)"
)
_TOKEN_LENGTH = 19
"""No token that `_TOKEN` finds is shorter."""
_BODY_OPTION = (
    r"--(?:data(?:-[a-z]+)?|form(?:-string)?|json|post-data|body-data|url-query|cookie|user|proxy-user)"
)
# Short options mean something else in every program, so they are told by the program's name.
_SHORT_OPTIONS = {"curl": ("-u", "-U", "-b", "-d", "-F"), "sshpass": ("-p",), "mysql": ("-p",)}

# What these hold is a word of a closed set, a digest or a time.
_OWN_WORDS = frozenset(
    (
        *("verdict", "risk", "control", "reason", "class", "phase", "identity", "entry", "protocol"),
        *("policy", "layer", "time", "kind", "run", "id"),
    )
)


class Redactor:
    """Takes secrets out of texts and leaves their length and a keyed digest.

    One object per run: `key` is random and is never stored, so that a digest can be
    compared inside the run and cannot be guessed from outside.
    """

    def __init__(self, key: bytes) -> None:
        self._key = key

    def digest(self, secret: str | bytes) -> str:
        """Ten hexadecimal digits that are equal for equal values of this run."""
        import hashlib  # here: it loads OpenSSL, and most runs have nothing to redact

        data = secret.encode("utf-8", "surrogatepass") if isinstance(secret, str) else secret
        return hashlib.blake2b(data, digest_size=5, key=self._key).hexdigest()

    def mark(self, secret: str | bytes) -> str:
        """What stands in a record instead of a secret."""
        data = secret.encode("utf-8", "surrogatepass") if isinstance(secret, str) else secret
        return f"[redacted {len(data)} bytes {self.digest(data)}]"

    def url(self, text: str) -> str:
        """Redact a URL, path or authority: everything before ``@`` and after ``?``."""
        head, question, query = text.partition("?")
        scheme, slashes, rest = head.rpartition("//")
        authority, slash, path = rest.partition("/")
        userinfo, at, host = authority.rpartition("@")
        if at and not userinfo.startswith("[redacted "):
            head = f"{scheme}{slashes}{self.mark(userinfo)}@{host}{slash}{path}"
        if question and query and not query.startswith("[redacted "):
            query = self.mark(query)
        return self.text(head) + question + query

    def text(self, text: str) -> str:
        """Redact what looks like a secret in free text."""
        if "@" in text:
            text = re.sub(_USERINFO, lambda m: f"{m[1]}{self._once(m[2])}@", text)
            text = self._loose_userinfo(text) if ":" in text else text
        if "?" in text:
            text = re.sub(_QUERY, lambda m: f"?{self._once(m[1])}", text)
        if ":" in text or "=" in text:
            text = self._named(text)
        if len(text) >= _TOKEN_LENGTH:
            text = re.sub(_TOKEN, lambda m: self.mark(m[0]), text)
        return text

    def _named(self, text: str) -> str:
        """Redact what stands behind a telling name: ``token=…``, ``Authorization: …``."""
        done, redacted = 0, []
        for match in re.finditer(_NAMED, text):
            if match.start() < done or not _is_secret_name(match[1]):
                continue
            to_the_end = _is_header(match[1]) or (match.start() == 0 and ":" in match[2])
            value = re.compile(r"\S.*" if to_the_end else _VALUE).match(text, match.end())
            if value is None:
                continue
            redacted += [text[done : match.end()], self.mark(value[0])]
            done = value.end()
        return "".join(redacted) + text[done:]

    def _loose_userinfo(self, text: str) -> str:
        """Redact ``user:password@`` that no ``//`` announces, as in proxy settings and refused hosts."""
        pieces = text.split("@")
        for i, piece in enumerate(pieces[:-1]):
            start = max((m.end() for m in re.finditer(_BEFORE_USERINFO, piece)), default=0)
            user, colon, password = piece[start:].partition(":")
            if user and colon and password:
                pieces[i] = piece[:start] + self._once(piece[start:])
        return "@".join(pieces)

    def argv(self, argv: Sequence[str | bytes]) -> list[str]:
        """Redact a command line; also the argument after ``--password`` and the like."""
        words = [a.decode("utf-8", "surrogateescape") if isinstance(a, bytes) else a for a in argv]
        program = words[0].rpartition("/")[2] if words else ""
        short = _SHORT_OPTIONS.get(program, ())
        redacted: list[str] = []
        hide_next = False
        for word in words:
            redacted.append(self._once(word) if hide_next else self._argument(word, short))
            # `--password=x` has its value already: the next word is for itself
            hide_next = not hide_next and "=" not in word and _takes_secret(word, short)
        return redacted

    def _argument(self, word: str, short: tuple[str, ...]) -> str:
        option, equals, value = word.partition("=")
        if equals and value and _takes_secret(option, ()):
            return f"{option}={self._once(value)}"
        if len(word) > 2 and word[:2] in short:
            return word[:2] + self._once(word[2:])
        if "://" in word:
            return self.url(word) if not any(c.isspace() for c in word) else self.text(word)
        return self.text(word)

    def _once(self, secret: str) -> str:
        return secret if secret.startswith("[redacted ") else self.mark(secret)


def _takes_secret(option: str, short: tuple[str, ...]) -> bool:
    if option in short:
        return True
    return option.startswith("-") and (
        _is_secret_name(option) or re.fullmatch(_BODY_OPTION, option) is not None
    )


def _is_header(name: str) -> bool:
    return name.replace("-", "").lower().endswith(_HEADERS)


def _is_secret_name(name: str) -> bool:
    bare = name.replace("-", "").replace("_", "").lower()
    return bare.endswith(_HEADERS) or bare in _SECRET_NAMES or any(part in bare for part in _SECRET_PARTS)


# --- one line ----------------------------------------------------------------------------

_PLACE_FIELDS = frozenset(("raw", "path", "url", "host", "sni", "authority", "name", "location"))
# Fields of free or foreign text are looked at one by one; in the others `@` and `?` give a secret away.
_FOREIGN_FIELDS = frozenset(("raw", "url", "argv", "detail", "location", "error"))


def encode_record(record: Mapping[str, object], redactor: Redactor) -> bytes:
    """Give the one line (without line feed) that stands for this record.

    Raises:
        InternalError: A value that a record cannot hold, such as a float. Ours to
            mend: nothing that a worker sends can cause it.
    """
    line = _encode_command(record, redactor) if "argv" in record else _encode_plain(record)
    if line is not None:
        return line
    for limit in (TEXT_LIMIT, 256, 32):
        line = _ENCODER.encode(_clean_mapping(record, redactor, limit, DEPTH_LIMIT))
        if len(line) <= RECORD_LIMIT_BYTES:
            return line
    raise InternalError("record-too-large", f"a record of kind {record.get('kind')} has too many fields")


def _encode_plain(record: Mapping[str, object], depth: int = 0) -> bytes | None:
    """The line of a record in which nothing needs cleaning; None if something may."""
    if not _is_flat(record, depth):
        return None
    try:
        line = _ENCODER.encode(record)
    except UnicodeEncodeError:  # a lone surrogate: bytes that are not UTF-8
        return None
    return line if _is_plain(line) and not _holds_token(record.get("path")) else None


def _encode_command(record: Mapping[str, object], redactor: Redactor) -> bytes | None:
    """The same for a command: its arguments are cleaned, and other foreign texts are looked at as one.

    Each `execve` of a worker waits for this. Looking at every field takes five times as long.
    """
    argv = record["argv"]
    rest = {key: value for key, value in record.items() if key != "argv"}
    line = _encode_plain(rest, depth=1)
    if line is None or not isinstance(argv, (list, tuple)):
        return None
    text = "\n".join(_foreign_texts(rest))
    if redactor.text(text) != text:
        return None
    rest["argv"] = _clean_argv(argv, redactor, TEXT_LIMIT)
    line = _ENCODER.encode(rest)
    return line if len(line) <= RECORD_LIMIT_BYTES else None


def _foreign_texts(fields: Mapping[str, object]) -> Iterator[str]:
    for key, value in fields.items():
        if type(value) is str and key not in _OWN_WORDS:
            yield value
        elif type(value) is dict:
            yield from _foreign_texts(value)


class CleanFields(dict[str, object]):
    """A part of a record that `clean_fields` made; it is not looked at again, however often it is written."""


def clean_fields(fields: Mapping[str, object], redactor: Redactor) -> CleanFields:
    """Clean and redact once what goes into many records, such as the command behind a flood of attempts.

    Raises:
        InternalError: As `encode_record`.
    """
    return CleanFields(_clean_mapping(fields, redactor, TEXT_LIMIT, DEPTH_LIMIT))


def _is_flat(record: Mapping[str, object], depth: int) -> bool:
    """True if it holds short values alone, and parts of such, `depth` deep."""
    if not _FOREIGN_FIELDS.isdisjoint(record):
        return False
    for value in record.values():
        if type(value) is str or value is None:
            continue
        if type(value) is int and -INTEGER_LIMIT <= value <= INTEGER_LIMIT:
            continue
        if type(value) is bool or type(value) is CleanFields:
            continue
        if type(value) is not dict or depth == 0 or not _is_flat(value, depth - 1):
            return False
        if len(value) > ITEMS_LIMIT or not all(map(_KEY.fullmatch, value)):
            return False
    return True


def _is_plain(line: bytes) -> bool:
    """True if nothing in the line needs cleaning, redacting or cutting."""
    return (
        len(line) <= TEXT_LIMIT
        and line.isascii()
        and b"?" not in line
        and b"@" not in line
        and b"=" not in line
        and b"\x7f" not in line
        and line.count(b"\\") == line.count(b'\\"')  # no escape but that of a quotation mark
    )


def _holds_token(path: object) -> bool:
    return isinstance(path, str) and len(path) >= _TOKEN_LENGTH and re.search(_TOKEN, path) is not None


def _clean_mapping(
    record: Mapping[str, object], redactor: Redactor, limit: int, depth: int
) -> dict[str, object]:
    cleaned: dict[str, object] = {}
    for key in list(record)[:ITEMS_LIMIT]:
        value = record[key]
        if key == "argv" and isinstance(value, (list, tuple)):
            cleaned[key] = _clean_argv(value, redactor, limit)
        elif key in _PLACE_FIELDS and isinstance(value, (str, bytes)):
            cleaned[key] = _clean_string(value, redactor.url, limit)
        else:
            cleaned[_clean_key(key)] = _clean_value(value, redactor, limit, depth)
    return cleaned


def _clean_key(key: str) -> str:
    if _KEY.fullmatch(key) is None:
        raise InternalError("record-key", f"{clean_text(repr(key), 80)} cannot be a key of a record")
    return key


def _clean_value(value: object, redactor: Redactor, limit: int, depth: int) -> object:
    if value is None or isinstance(value, (bool, CleanFields)):
        return value
    if isinstance(value, (str, bytes)):
        return _clean_string(value, redactor.text, limit)
    if isinstance(value, int):
        if not -INTEGER_LIMIT <= value <= INTEGER_LIMIT:
            raise InternalError("record-integer", "an integer that JSON readers would round")
        return int(value)
    if depth > 0 and isinstance(value, Mapping):
        return _clean_mapping(value, redactor, limit, depth - 1)
    if depth > 0 and isinstance(value, (list, tuple)):
        items = [_clean_value(item, redactor, limit, depth - 1) for item in value[:ITEMS_LIMIT]]
        return _with_count(items, len(value))
    raise InternalError("record-value", f"a record cannot hold a {type(value).__name__}")


def _clean_argv(argv: Sequence[object], redactor: Redactor, limit: int) -> list[object]:
    words = [_as_text(word) for word in argv[:ITEMS_LIMIT]]
    redacted = redactor.argv([word[:_LOOKED_AT] for word in words])
    cleaned = [clean_text(new, limit, len(word)) for new, word in zip(redacted, words, strict=True)]
    return _with_count(list(cleaned), len(argv))


def _clean_string(text: str | bytes, redact: Callable[[str], str], limit: int) -> str:
    # Redact first, so that a cut does not hide what makes a secret recognizable; but look at no more
    # than can matter, since time spent here is time that every other connection waits.
    whole = _as_text(text)
    return clean_text(redact(whole[:_LOOKED_AT]), limit, len(whole))


def _as_text(text: object) -> str:
    if isinstance(text, bytes):
        return text.decode("utf-8", "surrogateescape")
    return str.__str__(text) if isinstance(text, str) else str(text)  # an enumeration gives its value


def _with_count(items: list[object], length: int) -> list[object]:
    return items if length <= ITEMS_LIMIT else [*items, f"…[{length} items]"]


def judge_shape(kind: str, fields: Mapping[str, object], seq: int) -> None:
    """Refuse a record that another reader of the ledger would not understand.

    Raises:
        InternalError: Unknown kind, base fields given twice, a verdict where none
            belongs, an outcome that points nowhere, a record before the first one.
    """
    problem = _shape_problem(kind, fields, seq)
    if problem is not None:
        raise InternalError("record-shape", f"record {seq} of kind {clean_text(kind, 40)!r}: {problem}")


def _shape_problem(kind: str, fields: Mapping[str, object], seq: int) -> str | None:
    if kind not in KINDS:
        return "no such kind"
    if (kind == OPENED) != (seq == 0):
        return "the first record, and no other, is run.opened"
    if kind == ATTEMPT:
        if fields.get("verdict") not in VERDICTS:
            return "an attempt carries one verdict: deny, proxy or allow"
    elif "verdict" in fields:
        return "only an attempt carries a verdict"
    if kind in (OUTCOME, STEP_OUTCOME):
        of = fields.get("of")
        if type(of) is not int or not 0 < of < seq:
            return "an outcome points to an earlier record by `of`"
    if not _BASE_FIELDS.isdisjoint(fields):
        return "fields that the ledger itself gives"
    return None
