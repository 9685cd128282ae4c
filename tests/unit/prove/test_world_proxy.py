"""The proxies without a policy read a host as the most generous client does."""

from __future__ import annotations

import pytest

from stockade.prove.world_proxy import read_authority, read_host

# WHATWG URL, host parsing: https://url.spec.whatwg.org/#host-parsing, worked by hand.
READ = {
    "plain": (b"allowed.test:443", ("allowed.test", 443)),
    "no port": (b"allowed.test", ("allowed.test", 80)),
    "user name": (b"allowed.test@evil.test:8080", ("evil.test", 8080)),
    "backslash": (b"evil.test\\@allowed.test:80", ("evil.test", 80)),
    "path": (b"allowed.test/a?b", ("allowed.test", 80)),
    "NUL": (b"evil.test\0.allowed.test:80", ("evil.test", 80)),
    "percent": (b"169.254.169%2e254:80", ("169.254.169.254", 80)),
    "final dot": (b"169.254.169.254.:80", ("169.254.169.254", 80)),
    "full width": ("１６９。２５４．１６９．２５４:80".encode(), ("169.254.169.254", 80)),
    "IPv6": (b"[2606:2800:220:1::66]:443", ("2606:2800:220:1::66", 443)),
}


@pytest.mark.parametrize(("text", "place"), READ.values(), ids=READ)
def test_an_authority_is_read_generously(text: bytes, place: tuple[str, int]) -> None:
    assert read_authority(text, 80) == place


def test_a_long_name_is_cut_at_253_characters() -> None:
    kept = ("a" * 60 + ".") * 4 + "evil.test"
    assert len(kept) == 253
    assert read_host(kept + ".allowed.test") == kept
