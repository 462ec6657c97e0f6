"""A client's side of security: TLS, its own certificate, a bearer token."""

from __future__ import annotations

import os
import re
import stat
from dataclasses import dataclass
from pathlib import Path

import grpc

from factory.errors import ConfigurationError

AUTHORIZATION = "authorization"
BEARER = "Bearer "
_OTHERS = stat.S_IRWXG | stat.S_IRWXO
TOKEN = re.compile("[!-~]+")  # printable ASCII without spaces, which a header can carry


@dataclass(frozen=True)
class Tls:
    """How a client verifies the server: `ca` is a PEM file of authorities, by default the system's.

    The client shows `certificate`, with its `key`, which only its owner may open, to a server that requires
    one.
    """

    ca: Path | str | None = None
    certificate: Path | str | None = None
    key: Path | str | None = None

    def credentials(self) -> grpc.ChannelCredentials:
        """Credentials for a channel; raises ConfigurationError for files that cannot be used."""
        if (self.certificate is None) != (self.key is None):
            raise ConfigurationError("A client's certificate needs its key. Give both or neither.")
        ca, certificate = (
            None if path is None else read_file(Path(path)) for path in (self.ca, self.certificate)
        )
        key = None if self.key is None else read_secret(Path(self.key))
        return grpc.ssl_channel_credentials(ca, key, certificate)


def bearer(token: str | None) -> tuple[tuple[str, str], ...]:
    """The metadata of a call that brings a token; raises ConfigurationError for a malformed token."""
    if token is None:
        return ()
    if not TOKEN.fullmatch(token):
        raise ConfigurationError(
            "The token is empty, or contains a space or a character outside ASCII. Copy it from the "
            "server's file."
        )
    return ((AUTHORIZATION, BEARER + token),)


def read_file(path: Path) -> bytes:
    """The bytes of a file; raises ConfigurationError if it cannot be read."""
    try:
        return path.read_bytes()
    except OSError as error:
        raise _unreadable(path, error) from error


def read_secret(path: Path) -> bytes:
    """The bytes of a file that only its owner may open; raises ConfigurationError for any other.

    For a link, its target counts.
    """
    try:
        with path.open("rb") as file:
            mode = stat.S_IMODE(os.fstat(file.fileno()).st_mode)
            if mode & _OTHERS:
                raise ConfigurationError(
                    f"The file {path} contains secrets, and users other than its owner may open it (mode "
                    f"{mode:03o}). Run `chmod 600 {path}`."
                )
            return file.read()
    except OSError as error:
        raise _unreadable(path, error) from error


def _unreadable(path: Path, error: OSError) -> ConfigurationError:
    return ConfigurationError(
        f"The file {path} cannot be read ({error.strerror}). Name another, or correct its permissions."
    )
