"""What a client shows and what it asks of a server: TLS, a certificate of its own, a bearer token."""

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
        raise _unreadable(path, error) from error


def read_secret(path: Path) -> bytes:
    """The bytes of a file that its owner alone may open; raises ConfigurationError for another."""
    try:
        with path.open("rb") as file:
            mode = stat.S_IMODE(os.fstat(file.fileno()).st_mode)
            if mode & _OTHERS:
                raise ConfigurationError(
                    f"The file {path} holds secrets, and users other than its owner may open it (mode "
                    f"{mode:03o}). Run `chmod 600 {path}`."
                )
            return file.read()
    except OSError as error:
        raise _unreadable(path, error) from error


def _unreadable(path: Path, error: OSError) -> ConfigurationError:
    return ConfigurationError(
        f"The file {path} cannot be read ({error.strerror}). Name another, or correct its permissions."
    )
