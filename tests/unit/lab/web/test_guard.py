"""Who may ask: each refusal beside the same request from our own page, which goes through.

What browsers send is from Fetch Metadata Request Headers (W3C) and the Fetch standard ("append a request
`Origin` header"); that a foreign page cannot send application/json without a preflight, from Fetch's
CORS-safelisted request headers.
"""

from __future__ import annotations

import pytest

from stockade.lab.web.guard import BODY_LIMIT_BYTES, CONTENT_POLICY, Guard, Head

PORT = 8765
HOST = "127.0.0.1:8765"
GUARD = Guard(PORT)
OWN_POST = {
    "host": HOST,
    "origin": f"http://{HOST}",
    "sec-fetch-site": "same-origin",
    "sec-fetch-mode": "cors",
    "sec-fetch-dest": "empty",
    "content-type": "application/json",
    "content-length": "2",
}
OWN_GET = {"host": HOST, "sec-fetch-site": "same-origin", "sec-fetch-mode": "cors", "sec-fetch-dest": "empty"}


def head(method: str, path: str, own: dict[str, str], **changes: str | None) -> Head:
    fields = {**own, **{name.replace("_", "-"): value for name, value in changes.items()}}
    return Head(method, path, [(name, value) for name, value in fields.items() if value is not None])


def code(method: str = "POST", path: str = "/api/rounds", **changes: str | None) -> str | None:
    refusal = GUARD.refusal(head(method, path, OWN_POST if method == "POST" else OWN_GET, **changes))
    return None if refusal is None else refusal.code


def test_our_own_page_may_read_and_change() -> None:
    assert code("POST") is None
    assert code("GET", "/api/state") is None
    assert code("POST", content_type="application/json; charset=utf-8") is None
    assert code("POST", host="localhost:8765", origin="http://localhost:8765") is None


@pytest.mark.parametrize(
    "host",
    [
        "rebound.attacker.test:8765",
        "127.0.0.1",
        "127.0.0.1:8766",
        "localhost",
        "localhost.attacker.test:8765",
        "127.0.0.1:8765, attacker.test",
        "LOCALHOST:8765",
        "[::1]:8765",
        "",
        None,
    ],
)
def test_dns_rebinding_brings_a_host_that_is_not_ours(host: str | None) -> None:
    refusal = GUARD.refusal(head("GET", "/api/state", OWN_GET, host=host))
    assert refusal is not None
    assert (refusal.status, refusal.code) == (421, "foreign-host")


def test_on_the_port_of_http_a_browser_names_none() -> None:
    guard = Guard(80)
    own = {**OWN_POST, "host": "127.0.0.1", "origin": "http://127.0.0.1"}
    assert guard.refusal(head("POST", "/api/rounds", own)) is None
    assert (
        guard.refusal(head("POST", "/api/rounds", own, host="localhost", origin="http://localhost")) is None
    )
    assert guard.refusal(head("POST", "/api/rounds", own, origin="http://127.0.0.1:8765")) is not None
    assert guard.refusal(head("POST", "/api/rounds", own, host="rebound.attacker.test")) is not None


def test_two_hosts_are_none() -> None:
    twice = Head("GET", "/", [("host", HOST), ("host", HOST)])
    refusal = GUARD.refusal(twice)
    assert refusal is not None
    assert refusal.code == "foreign-host"


@pytest.mark.parametrize(
    "origin",
    [
        "http://attacker.test",
        "http://127.0.0.1:8766",
        "http://localhost:8765",  # ours, but not the one that this request's host belongs to
        "https://127.0.0.1:8765",
        "http://127.0.0.1:8765.attacker.test",
        "null",
        "",
    ],
)
def test_a_foreign_origin_is_refused_for_reading_and_changing(origin: str) -> None:
    assert code("POST", origin=origin) == "foreign-page"
    assert code("GET", "/api/state", origin=origin) == "foreign-page"


def test_a_change_without_an_origin_needs_the_browsers_word_that_it_is_ours() -> None:
    assert code("POST", origin=None) is None
    assert code("POST", origin=None, sec_fetch_site="none") is None
    assert code("POST", origin=None, sec_fetch_site=None) == "foreign-page"


@pytest.mark.parametrize("site", ["cross-site", "same-site", "odd"])
def test_what_the_browser_calls_foreign_is_refused_even_with_our_origin(site: str) -> None:
    """Every port of 127.0.0.1 is the same *site*: another server there is still another origin."""
    assert code("POST", sec_fetch_site=site) == "foreign-page"
    assert code("GET", "/api/state", sec_fetch_site=site) == "foreign-page"
    assert code("GET", "/static/app.js", sec_fetch_site=site) == "foreign-page"


def test_a_link_from_elsewhere_leads_to_the_first_page_and_nowhere_else() -> None:
    link = {"sec_fetch_site": "cross-site", "sec_fetch_mode": "navigate", "sec_fetch_dest": "document"}
    assert code("GET", "/", **link) is None
    assert code("GET", "/api/rounds", **link) == "foreign-page"
    assert code("POST", "/", **link) == "foreign-page"
    assert code("GET", "/", **{**link, "sec_fetch_dest": "iframe"}) == "foreign-page"
    assert (
        code("GET", "/", **{**link, "sec_fetch_mode": "no-cors", "sec_fetch_dest": "image"}) == "foreign-page"
    )


@pytest.mark.parametrize(
    "kind",
    ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data", "text/json", "", None],
)
def test_a_body_that_a_form_could_send_is_refused(kind: str | None) -> None:
    assert code("POST", content_type=kind) == "not-json"


@pytest.mark.parametrize("method", ["OPTIONS", "DELETE", "PATCH", "TRACE", "CONNECT", "get"])
def test_other_methods_are_refused_so_that_no_preflight_succeeds(method: str) -> None:
    assert code(method) == "no-such-method"


def test_a_large_body_is_refused_before_it_is_read() -> None:
    assert code("POST", content_length=str(BODY_LIMIT_BYTES)) is None
    assert code("POST", content_length=str(BODY_LIMIT_BYTES + 1)) == "too-large"
    assert code("POST", content_length="1e3") == "too-large"


def test_an_address_as_target_is_refused() -> None:
    assert code("GET", "http://attacker.test/") == "bad-target"
    assert code("GET", "*") == "bad-target"


def test_the_cookie_is_what_signs_in_and_the_token_is_not_it() -> None:
    def signed_in(cookie: str) -> bool:
        return GUARD.is_signed_in(Head("GET", "/", [("host", HOST), ("cookie", cookie)]))

    name = "stockade-lab-8765"
    assert signed_in(f"{name}={GUARD.cookie}")
    assert signed_in(f"other=1; {name}={GUARD.cookie}")
    assert signed_in(f'odd; {{"a": "b, c"}}; x="y; {name}={GUARD.cookie}; =; z')  # of other servers here
    assert not signed_in(f"{name}={GUARD.token}")
    # Another server on this host may set one of our name, with a longer path: it stands first then.
    assert signed_in(f"{name}=theirs; {name}={GUARD.cookie}")
    assert not signed_in(f"{name}=theirs; {name}=")
    assert not signed_in(f"{name}={GUARD.cookie}x")
    assert not signed_in(f"stockade-lab-8766={GUARD.cookie}")
    assert not signed_in(f"{name}=")
    assert not signed_in(f"{name}=\xff")
    assert not GUARD.is_signed_in(Head("GET", "/", []))


def test_the_token_admits_again_and_again_and_the_one_for_an_argument_list_once() -> None:
    guard = Guard(PORT)
    assert guard.admits(guard.token)
    assert guard.admits(guard.token)
    assert not guard.admits("")
    assert not guard.admits(guard.token[:-1])
    assert not guard.admits("\udcff")
    once = guard.make_once()
    assert guard.admits(once)
    assert not guard.admits(once)


def test_two_starts_share_no_secret() -> None:
    """256 bits, as RFC 6750 and OWASP ask at least 128 of a session's secret."""
    one, other = Guard(PORT), Guard(PORT)
    assert len({one.token, one.cookie, other.token, other.cookie}) == 4
    assert len(one.token) >= 43


def test_the_content_policy_names_nothing_but_ourselves() -> None:
    allowed = {part for line in CONTENT_POLICY.split("; ") for part in line.split()[1:]}
    assert allowed == {"'none'", "'self'", "data:", "'script'"}
    assert "script-src 'self'" in CONTENT_POLICY
    assert "default-src 'none'" in CONTENT_POLICY
