"""The tests' and the judge's view of the world: what arrived, what was asked, what names say."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from stockade.prove.sealed import SEALED_VARIABLE, ask
from stockade.prove.world_dns import Entry
from stockade.prove.world_log import NAME_SERVERS


class World:
    """Talks to the range's control socket. Every read waits until the world has caught up."""

    def __init__(self, control: str | None = None) -> None:
        self._control = control or os.environ[SEALED_VARIABLE]

    @property
    def ca_path(self) -> Path:
        """The certificate that signs for every name of the range."""
        return Path(self._control).parent / "ca" / "ca.pem"

    def reset(self) -> None:
        """Forget all arrivals and questions; names answer as in the cast again."""
        ask(self._control, {"do": "reset"})

    def arrivals(self, **wanted: Any) -> list[dict[str, Any]]:
        """Arrivals since the last reset whose fields equal `wanted`; questions to the name server excepted.

        Fields: number time protocol address port source tls sni bytes first requests closed.
        """
        found: list[dict[str, Any]] = ask(self._control, {"do": "arrivals"})
        matching = [one for one in found if all(one[key] == value for key, value in wanted.items())]
        return matching if wanted else [one for one in matching if not _is_name_question(one)]

    def packets(self, **wanted: Any) -> list[dict[str, Any]]:
        """TCP SYNs and all other packets that crossed the link, except questions to the name server.

        Fields: protocol address port bytes. Sees ports on which nobody listens.
        """
        found: list[dict[str, Any]] = ask(self._control, {"do": "packets"})
        matching = [one for one in found if all(one[key] == value for key, value in wanted.items())]
        return matching if wanted else [one for one in matching if not _is_name_question(one)]

    def requests(self, **wanted: Any) -> list[dict[str, Any]]:
        """All HTTP requests that arrived (method, path, host, head, body_bytes), over all connections."""
        return [request for arrival in self.arrivals(**wanted) for request in arrival["requests"]]

    def everything(self) -> tuple[list[dict[str, Any]], list[dict[str, Any]], list[dict[str, Any]]]:
        """Arrivals, packets, questions; what is for the name server stands among the questions only."""
        arrivals, packets, questions = ask(self._control, {"do": "everything"})
        return _besides_questions(arrivals), _besides_questions(packets), questions

    def dns_questions(self, name: str | None = None) -> list[dict[str, Any]]:
        """Questions that reached the name server (name, type, transport, server)."""
        questions: list[dict[str, Any]] = ask(self._control, {"do": "dns_questions"})
        return [question for question in questions if name is None or question["name"] == name]

    def set_dns(self, entries: dict[str, Entry | None]) -> None:
        """Say what names answer; see `world_dns.Entry`."""
        ask(self._control, {"do": "set_dns", "entries": entries})

    def set_pages(self, pages: dict[str, str]) -> None:
        """Serve these texts as HTML at these paths, on every host, until the next reset."""
        ask(self._control, {"do": "set_pages", "pages": pages})

    def set_redirects(self, redirects: dict[str, str]) -> None:
        """Answer 302 with these addresses at these places (host and path, `shop.test/`), until reset."""
        ask(self._control, {"do": "set_redirects", "redirects": redirects})

    def swallow(self, *addresses: str) -> None:
        """Drop packets to these addresses (and no others) silently, until the next reset."""
        ask(self._control, {"do": "swallow", "addresses": list(addresses)})


def _besides_questions(found: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [one for one in found if not _is_name_question(one)]


def _is_name_question(one: dict[str, Any]) -> bool:
    return one["port"] == 53 and one["address"] in NAME_SERVERS
