"""Ports and what is spoken on them: each of the two completes the other, or the rule is refused."""

from __future__ import annotations

from stockade.policy.problems import Rejected
from stockade.vocabulary import Protocol

USUAL_PORTS = {Protocol.TLS: 443, Protocol.HTTP: 80}
USUAL_PROTOCOLS = {port: protocol for protocol, port in USUAL_PORTS.items()}


def plan_services(
    level: str, ports: tuple[int, ...], protocol: Protocol | None
) -> list[tuple[tuple[int, ...], Protocol | None]]:
    """Ports with what is spoken there: one group for each protocol.

    Raises:
        Rejected: nobody can tell the port or the protocol.
    """
    if level == "deny":
        return [(ports, protocol)]
    if protocol is None and not ports:
        return [((443,), Protocol.TLS)]
    if protocol is None:
        return _usual_services(ports)
    if level == "proxy" and protocol in (Protocol.SSH, Protocol.TCP):
        raise Rejected(
            "proxy-without-requests",
            f"{protocol} carries no requests that a proxy rule could read",
            "write `allow:`",
        )
    if ports:
        return [(ports, protocol)]
    if protocol not in USUAL_PORTS:
        usual = 22 if protocol is Protocol.SSH else "N"
        raise Rejected("ports-missing", f"`protocol: {protocol}` needs its ports", f"write ports: [{usual}]")
    return [((USUAL_PORTS[protocol],), protocol)]


def _usual_services(ports: tuple[int, ...]) -> list[tuple[tuple[int, ...], Protocol | None]]:
    odd = [port for port in ports if port not in USUAL_PROTOCOLS]
    if odd:
        raise Rejected(
            "protocol-missing",
            f"nobody can tell what is spoken on port {odd[0]}",
            "write protocol: http, tls, ssh or tcp",
        )
    return [((port,), USUAL_PROTOCOLS[port]) for port in ports]
