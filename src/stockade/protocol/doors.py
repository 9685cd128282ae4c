"""How each entry says yes, no, and "it did not work": one small class for each way to speak."""

from __future__ import annotations

from typing import Protocol as Interface

from stockade.protocol.case import Case, Docket
from stockade.protocol.refusal import build_denial, build_failure, status_of
from stockade.protocol.socks5 import Reply, build_reply
from stockade.protocol.tls_hello import ACCESS_DENIED, INTERNAL_ERROR, build_alert
from stockade.vocabulary import Reason


class Door(Interface):
    """What the machine for tunnels needs of an entry."""

    def accept(self) -> None:
        """The way is free: what the client sends next is for the destination."""

    def refuse(self, case: Case) -> None:
        """The recorded decision is no."""

    def fail(self, case: Case, word: str) -> None:
        """The decision was yes, and the destination could not be reached."""


class SilentDoor:
    """A plain TCP connection: there is nobody to talk to, so a refusal is a reset."""

    def __init__(self, docket: Docket) -> None:
        self._line = docket.line

    def accept(self) -> None:
        pass

    def refuse(self, case: Case) -> None:
        self._line.close(reset=True)

    def fail(self, case: Case, word: str) -> None:
        self._line.close(reset=True)


class TlsDoor:
    """TLS: an alert in clear text, which every client reports by name."""

    def __init__(self, docket: Docket) -> None:
        self._line = docket.line

    def accept(self) -> None:
        pass

    def refuse(self, case: Case) -> None:
        if case.decision.reason is Reason.NOT_THE_PROTOCOL:
            self._line.close(reset=True)  # whoever speaks something else cannot read an alert
            return
        self._line.to_client(build_alert(ACCESS_DENIED))
        self._line.close()

    def fail(self, case: Case, word: str) -> None:
        self._line.to_client(build_alert(INTERNAL_ERROR))
        self._line.close()


class ConnectDoor:
    """CONNECT: an HTTP answer before the tunnel; after a refusal the connection goes on if it can."""

    def __init__(self, docket: Docket, *, keep_alive: bool) -> None:
        self._docket = docket
        self._line = docket.line
        self._keep_alive = keep_alive

    def accept(self) -> None:
        self._line.to_client(b"HTTP/1.1 200 Connection established\r\n\r\n")

    def refuse(self, case: Case) -> None:
        status = status_of(case.decision.reason)
        number = self._docket.decision_id(case.seq)
        self._answer(build_denial(case.decision, number, status=status, keep_alive=self._keep_alive))

    def fail(self, case: Case, word: str) -> None:
        status = 504 if word == "timed-out" else 502
        number = self._docket.decision_id(case.seq)
        self._answer(build_failure(word, number, status=status, keep_alive=self._keep_alive))

    def _answer(self, answer: bytes) -> None:
        self._line.to_client(answer)
        if not self._keep_alive:
            self._line.close()


class SocksDoor:
    """SOCKS5: a reply, and after a refusal the end (RFC 1928 section 6)."""

    def __init__(self, docket: Docket) -> None:
        self._line = docket.line

    def accept(self) -> None:
        self._line.to_client(build_reply(Reply.SUCCEEDED))

    def refuse(self, case: Case) -> None:
        self._end(Reply.NOT_ALLOWED)

    def refuse_command(self) -> None:
        self._end(Reply.COMMAND_NOT_SUPPORTED)

    def fail(self, case: Case, word: str) -> None:
        self._end(Reply.REFUSED if word == "refused" else Reply.HOST_UNREACHABLE)

    def _end(self, reply: Reply) -> None:
        self._line.to_client(build_reply(reply))
        self._line.close()
