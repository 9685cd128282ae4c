"""Bytes that clients and servers send, the policy that most flows are judged under, and answers read back."""

from __future__ import annotations

import json
from typing import Any

POLICY = """
rules:
  - allow: app.test
  - {allow: app.test, ports: [80, 8080], protocol: http}
  - allow: other.test
  - {allow: other.test, ports: [80], protocol: http}
  - {allow: git.test, ports: [22], protocol: ssh}
  - {allow: mail.test, ports: [25], protocol: tcp}
  - {proxy: read.test, ports: [80], protocol: http, methods: [GET, HEAD], paths: [/docs/**]}
  - {proxy: drop.test, ports: [80], protocol: http, methods: [POST, PUT], max-body: 1KiB}
  - allow: rebind.test
  - {allow: rebind.test, ports: [80], protocol: http}
"""

OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"


def get(path: str = "/", host: str = "app.test", *fields: str, method: str = "GET") -> bytes:
    return "\r\n".join([f"{method} {path} HTTP/1.1", f"Host: {host}", *fields, "", ""]).encode()


def post(body: bytes, *fields: str, host: str = "app.test") -> bytes:
    return get("/up", host, f"Content-Length: {len(body)}", *fields, method="POST") + body


def connect(place: str, host: str | None = None) -> bytes:
    return f"CONNECT {place} HTTP/1.1\r\nHost: {host or place}\r\n\r\n".encode()


def parse_answer(raw: bytes | bytearray) -> tuple[int, dict[str, str], dict[str, Any], bytes]:
    """Status, fields, JSON body and what comes after one refusal."""
    head, _, rest = bytes(raw).partition(b"\r\n\r\n")
    lines = head.decode().split("\r\n")
    fields = {name.lower(): value for name, _, value in (line.partition(": ") for line in lines[1:])}
    length = int(fields["content-length"])
    return int(lines[0].split(" ")[1]), fields, json.loads(rest[:length] or "{}"), rest[length:]
