"""Pure: what a technique says of itself, in words for its page and for the evidence."""

from __future__ import annotations

from stockade.prove.technique import Layer, Technique, Witness

_WHAT = {
    "tcp": "bytes on a TCP connection",
    "udp": "a datagram",
    "packet": "a packet on the wire, whether or not anybody listens",
    "question": "a DNS question at the world's name server",
    "request": "an HTTP request",
    "host": "bytes at a service of the host",
    "command": "the run's secret word, left by a program that was started or by code that ran",
    "state": "something of the host that is not as it was",
}
LAYERS = {
    Layer.GATEWAY: "the gateway, which decides each connection, question and request",
    Layer.VIEW: "the view: what the worker sees of the file system",
    Layer.SUPERVISOR: "the supervisor, which ends the worker when it ends",
    Layer.LEDGER: "the ledger",
    Layer.ROOM: "the room: a network of its own, whose only way out is the gateway",
    Layer.MOUNTS: "the mounts: files that are not permitted lie where nothing may be executed",
    Layer.MEMFD: "the filter on code in memory (`memfd`)",
    Layer.LANDLOCK: "Landlock: executing and opening by path",
    Layer.SECCOMP: "the filter on system calls (`seccomp`)",
    Layer.NOTIFY: "the eye (`notify`), which judges each command before it runs",
}


def describe_witness(witness: Witness) -> str:
    """One kind of arrival: `bytes on a TCP connection to 169.254.169.254, port 80`."""
    words = _WHAT[witness.what]
    if witness.protocol:
        words = f"{words} ({witness.protocol})"
    if witness.name:
        named = {"question": "about", "request": "to the host", "tcp": "with the server name"}
        words += f" {named.get(witness.what, 'called')} `{witness.name}`"
    if witness.address:
        words += f" to {witness.address}"
    if witness.port:
        words += f", port {witness.port}"
    if witness.path:
        words += f", path `{witness.path}`"
    if witness.more_bytes is not None:
        words += f", with a body of more than {witness.more_bytes:,} bytes"
    return f"{words}, with {witness.text!r} in it" if witness.text else words


def describe_control(technique: Technique) -> str:
    """What the control is: the same attack where nothing of Stockade is in the way."""
    worker = "browser and agent" if technique.is_browser else "payload"
    return (
        f"Without enforcement, in the same range, the same {worker} has to bring one of these about; "
        "else the attempt shows nothing and is inconclusive."
    )
