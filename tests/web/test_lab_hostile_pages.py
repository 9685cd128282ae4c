"""Hostile pages in another tab of the browser that plays the lab: each can start nothing and read nothing.

A real second origin in Chromium: `attacker.test` is another site, and another port of 127.0.0.1 is the
same *site*, so that the browser sends our cookie along. Beside each attack stands the same request from
our own page, which works. Expected results are what the Fetch standard (CORS, CORP), HTML (COOP, frame
ancestors) and CSP Level 3 say that a browser does with our headers.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any

import pytest
from lab_server import Caller, LabServer, lab_server

if TYPE_CHECKING:
    from playwright.sync_api import Browser, BrowserContext, Frame, Page, Route

pytestmark = [pytest.mark.clients, pytest.mark.slow, pytest.mark.timeout(60), pytest.mark.needs("chromium")]

# Names that the attacker has pointed at this machine.
MAPPED = "MAP attacker.test 127.0.0.1, MAP rebound.attacker.test 127.0.0.1"


class _Attacker(BaseHTTPRequestHandler):
    """Serves an empty page at every path, with no header that would hold a script back."""

    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/html")
        self.end_headers()
        self.wfile.write(b"<!doctype html><title>attacker</title>")

    def log_message(self, *_arguments: Any) -> None:
        pass


@pytest.fixture(scope="module")
def attacker_port() -> Iterator[int]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Attacker)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield server.server_port
    server.shutdown()
    server.server_close()


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LabServer]:
    with lab_server(tmp_path_factory.mktemp("lab")) as server:
        yield server


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path="/usr/bin/chromium",
            chromium_sandbox=False,
            args=["--disable-gpu", f"--host-resolver-rules={MAPPED}"],
        )
        yield browser
        browser.close()


@pytest.fixture
def context(browser: Browser) -> Iterator[BrowserContext]:
    context = browser.new_context()
    yield context
    context.close()


@pytest.fixture
def ours(context: BrowserContext, server: LabServer) -> Page:
    """The learner's own tab, signed in."""
    page = context.new_page()
    page.goto(server.address)
    assert page.url == f"{server.origin}/"
    return page


@pytest.fixture(params=["attacker.test", "127.0.0.1"], ids=["other-site", "other-port"])
def theirs(request: pytest.FixtureRequest, context: BrowserContext, ours: Page, attacker_port: int) -> Page:
    """The attacker's tab, in the same browser and beside ours."""
    page = context.new_page()
    page.goto(f"http://{request.param}:{attacker_port}/")
    return page


@pytest.fixture
def names(server: LabServer) -> Callable[[], list[str]]:
    """The learners that the server knows: a request that got through has left one more."""
    caller = Caller(server)
    return lambda: [one["name"] for one in caller.get("/api/state")["learners"]]


TRY = """async ([url, options]) => {
  try {
    const answer = await fetch(url, options);
    return answer.type === "opaque" ? "opaque" : `${answer.status} ${(await answer.text()).slice(0, 40)}`;
  } catch (error) { return error.name; }
}"""


def post(name: str, kind: str = "application/json", **options: str) -> dict[str, Any]:
    body = f'{{"name": "{name}"}}'
    return {"method": "POST", "body": body, "headers": {"Content-Type": kind}, **options}


def test_our_own_page_may_ask_and_change(ours: Page, names: Callable[[], list[str]]) -> None:
    assert ours.evaluate(TRY, ["/api/state", {}]).startswith("200 {")
    assert ours.evaluate(TRY, ["/api/learners", post("Ada")]).startswith("200 ")
    assert "Ada" in names()


def test_a_foreign_fetch_changes_nothing(
    theirs: Page, ours: Page, server: LabServer, names: Callable[[], list[str]]
) -> None:
    url = f"{server.origin}/api/learners"
    assert theirs.evaluate(TRY, [url, post("m1", credentials="include")]) == "TypeError"
    blind = post("m2", "text/plain", mode="no-cors", credentials="include")
    assert theirs.evaluate(TRY, [url, blind]) in ("opaque", "TypeError")  # sent, and not told what came back
    form = post("m3", "application/x-www-form-urlencoded", credentials="include")
    assert theirs.evaluate(TRY, [url, form]) == "TypeError"
    assert theirs.evaluate(TRY, [url, post("m4", credentials="include", mode="no-cors")]) in (
        "opaque",
        "TypeError",
    )
    assert ours.evaluate(TRY, ["/api/learners", post("Bea")]).startswith("200 ")
    assert "Bea" in names()
    assert {"m1", "m2", "m3", "m4"}.isdisjoint(names())


def test_a_beacon_changes_nothing(
    theirs: Page, ours: Page, server: LabServer, names: Callable[[], list[str]]
) -> None:
    send = """([url, name]) => navigator.sendBeacon(url, new Blob([`{"name": "${name}"}`], {type: "%s"}))"""
    theirs.evaluate(send % "text/plain", [f"{server.origin}/api/learners", "beacon1"])
    theirs.evaluate(send % "application/json", [f"{server.origin}/api/learners", "beacon2"])
    ours.evaluate(send % "application/json", ["/api/learners", "own beacon"])
    while "own beacon" not in names():  # sent last, and in its own time
        ours.wait_for_timeout(50)
    assert {"beacon1", "beacon2"}.isdisjoint(names())


def test_a_foreign_form_changes_nothing(
    theirs: Page, server: LabServer, names: Callable[[], list[str]]
) -> None:
    """The well-known trick: a text/plain form whose one field's name and value make up JSON."""
    theirs.evaluate(
        """(url) => { document.body.innerHTML =
          `<form method=post enctype=text/plain action="${url}">
             <input name='{"name": "form", "x": "' value='"}'></form>`;
        }""",
        f"{server.origin}/api/learners",
    )
    with theirs.expect_response("**/api/learners") as got:
        theirs.evaluate("document.forms[0].submit()")
    assert got.value.status == 403
    assert "form" not in names()


def test_a_foreign_page_reads_nothing(theirs: Page, ours: Page, server: LabServer) -> None:
    state = f"{server.origin}/api/state"
    assert theirs.evaluate(TRY, [state, {"credentials": "include"}]) == "TypeError"
    assert theirs.evaluate(TRY, [state, {"credentials": "include", "mode": "no-cors"}]) in (
        "opaque",
        "TypeError",
    )
    load = """([tag, key, url]) => new Promise((done) => {
      const one = document.createElement(tag);
      one.onload = () => done("loaded"); one.onerror = () => done("failed");
      one[key] = url; document.head.append(one);
    })"""
    picture, script = f"{server.origin}/static/icon.svg", f"{server.origin}/static/vendor/preact-htm.js"
    assert theirs.evaluate(load, ["img", "src", picture]) == "failed"
    assert theirs.evaluate(load, ["script", "src", script]) == "failed"
    assert ours.evaluate(load, ["img", "src", picture]) == "loaded"
    assert ours.evaluate(TRY, [script, {}]).startswith("200 ")


def test_a_web_socket_finds_nothing(theirs: Page, ours: Page, server: LabServer) -> None:
    connect = """(url) => new Promise((done) => {
      const one = new WebSocket(url);
      one.onopen = () => done("open"); one.onerror = () => done("refused");
    })"""
    url = server.origin.replace("http", "ws") + "/api/live"
    assert theirs.evaluate(connect, url) == "refused"
    assert ours.evaluate(TRY, ["/api/state", {}]).startswith("200 ")


def test_the_lab_cannot_be_framed(theirs: Page, server: LabServer) -> None:
    """A frame that shows us could be clicked through (clickjacking): Chromium shows an error page instead."""

    def is_refused(frame: Frame) -> bool:
        return frame.url.startswith("chrome-error:")

    with theirs.expect_event("framenavigated", is_refused):
        theirs.evaluate(
            """(url) => {
              const frame = document.createElement("iframe");
              frame.src = url; document.body.append(frame);
            }""",
            f"{server.origin}/",
        )


def test_a_window_that_was_opened_is_out_of_reach(theirs: Page, ours: Page, server: LabServer) -> None:
    """Cross-Origin-Opener-Policy: the opener's handle says closed, and ours has no opener."""
    with theirs.context.expect_page() as opened:
        theirs.evaluate("(url) => { window.handle = window.open(url); }", f"{server.origin}/")
    page = opened.value
    page.wait_for_load_state()
    assert page.evaluate("window.opener") is None
    theirs.wait_for_function("window.handle.closed")


def test_dns_rebinding_reaches_nothing(
    context: BrowserContext, ours: Page, server: LabServer, names: Callable[[], list[str]]
) -> None:
    """The attacker's name now means 127.0.0.1, so that his page and we are one origin to the browser."""
    rebound = f"http://rebound.attacker.test:{server.port}"
    page = context.new_page()
    answer = page.goto(f"{rebound}/")
    assert answer is not None
    assert answer.status == 421
    # What his page would do, which he served before the name moved: to the browser it is this origin.
    assert page.evaluate(TRY, ["/api/state", {}]).startswith("421 ")
    assert page.evaluate(TRY, ["/api/learners", post("rebound")]).startswith("421 ")
    assert page.evaluate(TRY, [server.address.replace("127.0.0.1", "rebound.attacker.test"), {}]).startswith(
        "421 "
    )
    assert ours.evaluate(TRY, ["/api/learners", post("Cleo")]).startswith("200 ")
    assert "Cleo" in names()
    assert "rebound" not in names()


def test_a_link_from_elsewhere_leads_in_with_the_token_and_not_without(
    context: BrowserContext, theirs: Page, server: LabServer
) -> None:
    """An address clicked in a terminal that is itself a page (a notebook's, an editor's)."""
    follow = "(url) => { location.href = url; }"
    theirs.evaluate(follow, server.address)
    theirs.wait_for_url(f"{server.origin}/")
    assert theirs.evaluate(TRY, ["/api/state", {}]).startswith("200 ")


def test_the_content_policy_runs_and_loads_nothing_foreign(ours: Page, attacker_port: int) -> None:
    """Had some text become markup in our page, it would neither run nor send anything away."""
    noted: list[str] = []
    ours.on("console", lambda message: noted.append(message.text))
    add = """([tag, url]) => new Promise((done) => {
      const one = document.createElement(tag);
      one.onload = () => done("loaded"); one.onerror = () => done("failed");
      one[tag === "link" ? "href" : "src"] = url; one.rel = "stylesheet"; document.head.append(one);
    })"""
    foreign = f"http://attacker.test:{attacker_port}"
    assert ours.evaluate(add, ["img", f"{foreign}/pixel"]) == "failed"
    assert ours.evaluate(add, ["link", f"{foreign}/style"]) == "failed"
    assert ours.evaluate(TRY, [f"{foreign}/", {"mode": "no-cors"}]) == "TypeError"
    blocked = " ".join(noted)
    for directive in ("img-src", "style-src", "connect-src"):
        assert f"\"{directive} 'self'" in blocked
    assert ours.evaluate(add, ["img", "/static/icon.svg"]) == "loaded"


@pytest.mark.parametrize(
    "into",
    [
        "document.createElement('div').innerHTML = '<b>x</b>'",
        "document.createElement('a').setAttribute('onclick', 'alert(1)')",
        "document.createElement('script').src = '/static/app.js'",
        "document.createElement('script').text = 'alert(1)'",
        "document.write('x')",
        "trustedTypes.createPolicy('mine', {createHTML: (text) => text}).createHTML('x')",
    ],
)
def test_no_text_becomes_markup_or_script_in_our_page(ours: Page, into: str) -> None:
    """Trusted Types (W3C): each of these is a TypeError in a document that asks for them."""
    assert (
        ours.evaluate(f"() => {{ try {{ {into}; return 'done' }} catch (error) {{ return error.name }} }}")
        == "TypeError"
    )


def test_a_script_in_the_markup_does_not_run(ours: Page, server: LabServer) -> None:
    """What Trusted Types do not see: markup that the server itself sends."""
    noted: list[str] = []
    ours.on("console", lambda message: noted.append(message.text))
    ours.on("dialog", lambda dialog: (noted.append("ran"), dialog.dismiss()))

    def put_in(route: Route) -> None:
        answer = route.fetch()
        route.fulfill(
            response=answer, body=answer.text().replace("</body>", "<script>alert(1)</script></body>")
        )

    ours.route(f"{server.origin}/", put_in)
    ours.goto(f"{server.origin}/")
    assert "ran" not in noted
    assert any("inline script" in one for one in noted)
