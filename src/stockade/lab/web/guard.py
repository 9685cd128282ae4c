"""Who may ask the lab's server, and from where. Values in, values out.

The server listens on loopback, and that alone keeps nobody out: each page that the learner has open in
the same browser can send requests to 127.0.0.1, each program and user of the machine can connect.

- The *token* in the printed address is known to who started the server. A browser shows it once and
  has a cookie from then on (`is_signed_in`).
- `Host` must be ours. A hostile name that is pointed at 127.0.0.1 (DNS rebinding) makes the browser take
  the attacker's page and us for one origin; but it still sends the hostile name.
- A page of another origin sends our cookie along if it comes from the same site, and to a browser
  every port of 127.0.0.1 is one site. So what changes something must say our `Origin`, and whatever a
  browser calls cross-site or same-site is refused, save that somebody follows a link to the first page.
- A body must be called JSON, which no form can do, and which no foreign `fetch` may without a preflight.
"""

from __future__ import annotations

import secrets
from collections.abc import Sequence

from msgspec import Struct

READING = ("GET", "HEAD")
CHANGING = ("POST", "PUT")
BODY_LIMIT_BYTES = 1 << 20


class Refusal(Struct, frozen=True):
    """Why a request goes no further."""

    status: int
    code: str
    message: str
    hint: str | None = None


class Head(Struct, frozen=True):
    """What a request says before its body: header names are lower case, and in their order."""

    method: str
    path: str
    headers: Sequence[tuple[str, str]]

    def all(self, name: str) -> list[str]:
        """Each value of a header."""
        return [value for key, value in self.headers if key == name]

    def one(self, name: str) -> str | None:
        """The value of a header; several are joined, so that they equal nothing we look for."""
        return ", ".join(found) if (found := self.all(name)) else None


class Guard:
    """Judges the heads of requests to one server.

    Attributes:
        token: What the printed address carries.
        cookie_name: With the port in it: to a browser all ports of a host share their cookies, and two
            servers would throw each other's out.
        cookie: What a browser holds that has shown the token. Another value than the token, which
            stands in terminals and shell logs.
    """

    def __init__(self, port: int) -> None:
        self.token = secrets.token_urlsafe(32)
        self.cookie_name = f"stockade-lab-{port}"
        self.cookie = secrets.token_urlsafe(32)
        self._once = ""
        # A browser leaves out the port that http has anyway.
        self.hosts = tuple(name if port == 80 else f"{name}:{port}" for name in ("127.0.0.1", "localhost"))

    def refusal(self, head: Head) -> Refusal | None:
        """Why this request is refused, whoever sends it; `None` if it may be looked at."""
        host = head.one("host")
        if host not in self.hosts:
            return Refusal(421, "foreign-host", f"this server is {self.hosts[0]} and no other name")
        if not head.path.startswith("/"):
            return Refusal(400, "bad-target", "a path is wanted, not an address")
        if head.method not in READING + CHANGING:
            return Refusal(405, "no-such-method", f"{head.method} is not used here")
        if _is_from_elsewhere(head) and not _is_link_to_the_first_page(head):
            return _FOREIGN
        origin = head.one("origin")
        if origin is not None and origin != f"http://{host}":
            return _FOREIGN
        if head.method in CHANGING:
            return _changing_refusal(head, origin)
        return None

    def make_once(self) -> str:
        """A token that opens the door one time, for an address that others may get to see."""
        self._once = secrets.token_urlsafe(32)
        return self._once

    def admits(self, given: str) -> bool:
        """It is the token of the printed address, or the one that is good for one use."""
        if self._once and _is_same(given, self._once):
            self._once = ""
            return True
        return _is_same(given, self.token)

    def is_signed_in(self, head: Head) -> bool:
        """The browser has shown the token since this server started."""
        return any(_is_same(given, self.cookie) for given in read_cookies(head, self.cookie_name))


def _is_same(given: str, secret: str) -> bool:
    """Compare in a time that says nothing about how much of it is right."""
    return secrets.compare_digest(given.encode(errors="replace"), secret.encode())


_FOREIGN = Refusal(403, "foreign-page", "only the lab's own pages may ask this")


def _is_from_elsewhere(head: Head) -> bool:
    """The browser says that another site, or another port of this host, stands behind the request."""
    return head.one("sec-fetch-site") not in (None, "none", "same-origin")


def _is_link_to_the_first_page(head: Head) -> bool:
    is_navigation = head.one("sec-fetch-mode") == "navigate" and head.one("sec-fetch-dest") == "document"
    return is_navigation and head.path == "/" and head.method in READING


def _changing_refusal(head: Head, origin: str | None) -> Refusal | None:
    if origin is None and head.one("sec-fetch-site") is None:
        return _FOREIGN
    kind = (head.one("content-type") or "").partition(";")[0].strip().lower()
    if kind != "application/json":
        return Refusal(415, "not-json", "a request that changes something has Content-Type application/json")
    said = head.one("content-length")
    if said is not None and (not said.isdecimal() or int(said) > BODY_LIMIT_BYTES):
        return TOO_LARGE
    return None


TOO_LARGE = Refusal(413, "too-large", f"more than {BODY_LIMIT_BYTES >> 20} MiB")


def read_cookies(head: Head, name: str) -> list[str]:
    """Each value of a cookie.

    Not by `http.cookies`, which gives up on the whole header when one cookie is odd: other servers on
    127.0.0.1 set cookies that the browser sends to us as well. One of our name may be among them, and stands
    before ours if its path is the longer one.
    """
    parts = [part.strip().partition("=") for header in head.all("cookie") for part in header.split(";")]
    return [value for key, _, value in parts if key == name]


# What a page of ours may load and do: its own files, and nothing that could be text from a request.
CONTENT_POLICY = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "img-src 'self' data:",
        "connect-src 'self'",
        "font-src 'self'",
        "form-action 'none'",
        "frame-ancestors 'none'",
        "base-uri 'none'",
        "require-trusted-types-for 'script'",
        "trusted-types 'none'",
    )
)

ON_EVERY_ANSWER = (
    ("Content-Security-Policy", CONTENT_POLICY),
    ("X-Content-Type-Options", "nosniff"),
    ("X-Frame-Options", "DENY"),
    ("Referrer-Policy", "no-referrer"),
    ("Cross-Origin-Opener-Policy", "same-origin"),
    ("Cross-Origin-Resource-Policy", "same-origin"),
    ("Cross-Origin-Embedder-Policy", "require-corp"),
)
