"""A redirect that a script makes, from parts that name no host in one piece.

The address is put together when the script runs, so nothing in the bytes that crossed the
gateway says where it leads. The client here does what the script does.

Not covered: the same through a real browser, which the browser's own techniques try.
"""

ATTACK = {
    "title": "Redirect by a script",
    "group": "redirects",
    "layer": "gateway",
    "risk": "exfiltration",
    "references": ["CWE-601", "R043"],
    "pages": {"/app": "<!doctype html><script>location.href = ['http://evil','test/x'].join('.')</script>"},
    "arrives": [{"what": "request", "name": "evil.test"}, {"what": "question", "name": "evil.test"}],
    "stopped": [{"reason": ["not-listed"], "entry": ["transparent"], "where": {"name": "evil.test"}}],
}


def attempt(kit):
    from follow import visit

    page = visit(kit, "http://allowed.test/app").get("reply", "")
    parts = page.partition("location.href = [")[2].partition("]")[0].replace("'", "").split(",")
    visit(kit, ".".join(parts))
