"""Messages put together by hand, so that each part can be other than a library would make it.

Runs inside the worker: standard library only, nothing of Stockade. Everything is bytes;
`text` turns them into what a step of the probe takes.
"""

import contextlib
import ssl
import struct


def text(data):
    return data.decode("latin-1")


# --- TLS: RFC 8446 4.1.2 -------------------------------------------------------------------------


def extension(kind, data):
    return struct.pack("!HH", kind, len(data)) + data


def server_names(*names):
    """The extension `server_name`; RFC 6066 3 permits one name of a type."""
    entries = b"".join(b"\0" + struct.pack("!H", len(name)) + name for name in names)
    return extension(0, struct.pack("!H", len(entries)) + entries)


def encrypted_hello():
    """The extension `encrypted_client_hello` of the outer hello (RFC 9849 5), its content unreadable."""
    return extension(0xFE0D, b"\0\0\1\0\1\x2a\0\x20" + bytes(32) + b"\0\x90" + bytes(144))


def hello(*extensions):
    """A ClientHello as one handshake message."""
    block = b"".join(extensions)
    body = b"\3\3" + bytes(range(32)) + b"\x20" + bytes(32) + b"\0\4\x13\1\x13\2" + b"\1\0"
    body += struct.pack("!H", len(block)) + block
    return b"\1" + len(body).to_bytes(3, "big") + body


def in_records(message, size=16384):
    """The message cut into TLS records (RFC 8446 5.1 lets a handshake message span several)."""
    cuts = [message[start : start + size] for start in range(0, len(message), size)]
    return b"".join(b"\x16\3\1" + struct.pack("!H", len(cut)) + cut for cut in cuts)


def library_hello(name):
    """What this Python's TLS library says first to a server of this name, as one handshake message."""
    context = ssl.create_default_context()
    outgoing = ssl.MemoryBIO()
    client = context.wrap_bio(ssl.MemoryBIO(), outgoing, server_hostname=name)
    with contextlib.suppress(ssl.SSLWantReadError):
        client.do_handshake()
    return outgoing.read()[5:]


# --- DNS: RFC 1035 4 ------------------------------------------------------------------------------


def labels(name):
    return b"".join(bytes([len(label)]) + label.encode() for label in name.split(".")) + b"\0"


def question(name, kind=1):
    return labels(name) + struct.pack("!HH", kind, 1)


def dns_message(*questions, opcode=0, authority=(), count=None):
    """A query, or with `opcode` 5 an update (RFC 2136), whose records stand in `authority`."""
    flags = opcode << 11 | (0x0100 if opcode == 0 else 0)
    counts = (len(questions) if count is None else count, 0, len(authority), 0)
    return struct.pack("!HHHHHH", 0x4242, flags, *counts) + b"".join((*questions, *authority))


def text_record(name, value):
    """A TXT record."""
    data = bytes([len(value)]) + value.encode()
    return labels(name) + struct.pack("!HHIH", 16, 1, 60, len(data)) + data


# --- HTTP/2: RFC 9113 3.4, 6.2; RFC 7541 6.2.2 ----------------------------------------------------

H2_PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"


def h2_request(authority):
    """Settings and one GET for `authority`, field names by index, values in plain text."""
    block = b"\x82\x86\x84" + b"\x01" + bytes([len(authority)]) + authority.encode()
    settings = b"\0\0\0\4\0\0\0\0\0"
    return H2_PREFACE + settings + len(block).to_bytes(3, "big") + b"\1\5\0\0\0\1" + block
