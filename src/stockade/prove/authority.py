"""The range's small certificate authority, made with the `openssl` command.

It lives as long as the range and signs for whatever name a client asks, since the
range plays the whole internet. The command is used, and not a library, so that the
range needs nothing that Stockade itself does not need.
"""

from __future__ import annotations

import ipaddress
import ssl
import subprocess
import threading
from pathlib import Path

from stockade.errors import HostError

_DAYS = "30"
_CURVE = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes")


class Authority:
    """Makes one CA and, per server name, one certificate and TLS context, each once."""

    def __init__(self, folder: Path) -> None:
        self.ca_path = folder / "ca.pem"
        self._folder = folder
        self._ca_key = folder / "ca.key"
        self._key = folder / "server.key"
        self._contexts: dict[str, ssl.SSLContext] = {}
        self._lock = threading.Lock()

    def create(self) -> None:
        """Write CA, CA key and the one key that all servers of the range share."""
        self._folder.mkdir(parents=True, exist_ok=True)
        _openssl(
            "req",
            "-x509",
            *_CURVE,
            "-keyout",
            self._ca_key,
            "-out",
            self.ca_path,
            "-days",
            _DAYS,
            "-subj",
            "/CN=Stockade range CA",
            "-addext",
            "basicConstraints=critical,CA:TRUE",
            "-addext",
            "keyUsage=critical,keyCertSign,cRLSign",
        )
        _openssl("ecparam", "-name", "prime256v1", "-genkey", "-noout", "-out", self._key)
        self.ca_path.chmod(0o644)

    def context_for(self, name: str) -> ssl.SSLContext:
        """The server context whose certificate says `name` (a DNS name or an address)."""
        with self._lock:
            if name not in self._contexts:
                self._contexts[name] = self._make_context(name)
            return self._contexts[name]

    def _make_context(self, name: str) -> ssl.SSLContext:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(self._sign(name), self._key)
        context.set_alpn_protocols(["http/1.1"])
        return context

    def _sign(self, name: str) -> Path:
        certificate = self._folder / f"{name.replace(':', '_').replace('/', '_')[:100]}.pem"
        _openssl(
            "req",
            "-x509",
            "-new",
            "-key",
            self._key,
            "-CA",
            self.ca_path,
            "-CAkey",
            self._ca_key,
            "-out",
            certificate,
            "-days",
            _DAYS,
            "-subj",
            "/CN=range server",
            "-addext",
            f"subjectAltName={_alternative_name(name)}",
            "-addext",
            "basicConstraints=critical,CA:FALSE",
            "-addext",
            "extendedKeyUsage=serverAuth",
        )
        return certificate


def _alternative_name(name: str) -> str:
    try:
        return f"IP:{ipaddress.ip_address(name)}"
    except ValueError:
        return f"DNS:{name}"


def _openssl(*arguments: str | Path) -> None:
    try:
        subprocess.run(
            ["openssl", *map(str, arguments)], check=True, capture_output=True, stdin=subprocess.DEVNULL
        )
    except FileNotFoundError as missing:
        raise HostError(
            "openssl-missing", "the range needs the openssl command", "apt install openssl"
        ) from missing
    except subprocess.CalledProcessError as failed:
        last = failed.stderr.decode(errors="replace").strip().splitlines()[-1:]
        raise HostError("openssl-failed", f"openssl {arguments[0]} failed: {' '.join(last)}") from failed
