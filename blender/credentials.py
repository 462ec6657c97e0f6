"""What a client shows and what it asks of a server: TLS, a certificate of its own, a bearer token."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

import grpc

from factory.errors import ConfigurationError

AUTHORIZATION = "authorization"
BEARER = "Bearer "
TOKEN = re.compile("[!-~]+")  # what a header can carry, without spaces


@dataclass(frozen=True)
class Tls:
    """How a client knows the server: `ca` is a PEM file of authorities, by default those of the system.

    `certificate` and `key` are what it shows to a server that asks for them.
    """

    ca: Path | str | None = None
    certificate: Path | str | None = None
    key: Path | str | None = None

    def credentials(self) -> grpc.ChannelCredentials:
        """Those of a channel; raises ConfigurationError for files that cannot be read."""
        if (self.certificate is None) != (self.key is None):
            raise ConfigurationError("A client shows a certificate with its key. Give both or neither.")
        ca, key, certificate = (
            None if path is None else read_file(Path(path)) for path in (self.ca, self.key, self.certificate)
        )
        return grpc.ssl_channel_credentials(ca, key, certificate)


def bearer(token: str | None) -> tuple[tuple[str, str], ...]:
    """The metadata of a call that brings a token; raises ConfigurationError for what can be none."""
    if token is None:
        return ()
    if not TOKEN.fullmatch(token):
        raise ConfigurationError(
            "The token is empty or holds a space or a letter outside ASCII. Give it as the server's file "
            "has it."
        )
    return ((AUTHORIZATION, BEARER + token),)


def read_file(path: Path) -> bytes:
    """Its bytes; raises ConfigurationError where it cannot be read."""
    try:
        return path.read_bytes()
    except OSError as error:
        raise ConfigurationError(
            f"The file {path} cannot be read ({error.strerror}). Name another, or correct its permissions."
        ) from error
