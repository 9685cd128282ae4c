"""Asks a model over HTTP: runs inside the room, standard library only, nothing of Stockade.

Started as `python3 -I -S -c SOURCE`: one JSON line in is a request (`url`, `headers`, `body`), one
out its answer. So the way to the provider is the policy's, and recorded as every other attempt.
"""

import json
import sys
import urllib.error
import urllib.request

LIMIT_S = 120
KEPT = 1 << 20


class NoRedirect(urllib.request.HTTPRedirectHandler):
    """An answer that sends us elsewhere is an answer: the key is for this provider alone."""

    def redirect_request(self, *_):
        return None


OPENER = urllib.request.build_opener(NoRedirect)


def ask(asked):
    body = json.dumps(asked["body"]).encode()
    request = urllib.request.Request(asked["url"], body, asked["headers"], method="POST")
    try:
        with OPENER.open(request, timeout=LIMIT_S) as answer:
            return {"status": answer.status, "body": answer.read(KEPT).decode("utf-8", "replace")}
    except urllib.error.HTTPError as refused:
        return {"status": refused.code, "body": refused.read(2000).decode("utf-8", "replace")}
    except (OSError, ValueError) as refused:
        return {"error": type(refused).__name__, "detail": str(refused)[:300]}


if __name__ == "__main__":
    for line in sys.stdin:
        print(json.dumps(ask(json.loads(line))), flush=True)
