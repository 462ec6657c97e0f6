"""Who may talk to a Blender: server certificate, client certificates, tokens.

Secrets are in files, since every user of the machine can read a process's arguments.
"""

from __future__ import annotations

import hashlib
import hmac
import ssl
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import grpc
from grpc_health.v1 import health

from blender.errors import Unauthenticated
from blender.serving.refusals import refusal
from blender.wire.credentials import AUTHORIZATION, BEARER, TOKEN, read_file, read_secret
from factory.errors import ConfigurationError


@dataclass(frozen=True)
class ServerSecurity:
    """A server's certificate and its requirements on clients; by default it speaks plaintext with everyone.

    `certificate` and `key` are PEM files and belong together. With `client_ca` a client must show a
    certificate signed by one of these authorities. `tokens` is a file with one token per line; every call
    except health checks must bring one of them. Only its owner may open the key and the file of tokens.
    """

    certificate: Path | None = None
    key: Path | None = None
    client_ca: Path | None = None
    tokens: Path | None = None

    def credentials(self) -> grpc.ServerCredentials | None:
        """Credentials of the port, None for plaintext; raises ConfigurationError for unusable files."""
        if self.certificate is None and self.key is None:
            if self.client_ca is not None:
                raise ConfigurationError(
                    "Only TLS can check clients' certificates. Give --tls-cert and --tls-key too."
                )
            return None
        if self.certificate is None or self.key is None:
            raise ConfigurationError("TLS needs a certificate and its key. Give --tls-cert and --tls-key.")
        pair = (read_secret(self.key), read_file(self.certificate))
        authorities = None if self.client_ca is None else read_file(self.client_ca)
        self._require_a_pair()
        return grpc.ssl_server_credentials(
            [pair], root_certificates=authorities, require_client_auth=authorities is not None
        )

    def interceptors(self) -> list[grpc.ServerInterceptor]:
        """Interceptors that check every call; raises ConfigurationError for a file without tokens."""
        if self.tokens is None:
            return []
        tokens = [line.strip() for line in read_secret(self.tokens).decode(errors="replace").splitlines()]
        for number, token in enumerate(tokens, 1):
            if token and not TOKEN.fullmatch(token):
                raise ConfigurationError(
                    f"Line {number} of {self.tokens} contains a space or a character outside ASCII. "
                    "Write one token per line."
                )
        if not any(tokens):
            raise ConfigurationError(f"The file {self.tokens} contains no token. Write one per line.")
        return [Tokens([token for token in tokens if token])]

    def _require_a_pair(self) -> None:
        assert self.certificate is not None
        try:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(self.certificate, self.key, password="")
            if self.client_ca is not None:
                context.load_verify_locations(self.client_ca)
        except ssl.SSLError as error:
            reason = error.reason or str(error)
            raise ConfigurationError(
                f"TLS cannot use the certificate {self.certificate} with the key {self.key} ({reason}). "
                "Give PEM files that belong together, the key without a password."
            ) from error


class Tokens(grpc.ServerInterceptor):
    """Passes health checks, and calls that bring one of the tokens as `authorization: Bearer TOKEN`."""

    def __init__(self, tokens: list[str]) -> None:
        self._digests = [_digest(token) for token in tokens]
        self._refuse_missing, self._refuse_unknown = (
            refusal(Unauthenticated(sentence))
            for sentence in (
                "This Blender requires a token. Give the client `token`.",
                "This Blender does not accept the token. Give the client one from the server's file.",
            )
        )

    def intercept_service(
        self,
        continuation: Callable[[grpc.HandlerCallDetails], grpc.RpcMethodHandler | None],
        handler_call_details: grpc.HandlerCallDetails,
    ) -> grpc.RpcMethodHandler | None:
        """The handler of a call, or one that refuses it."""
        if handler_call_details.method.startswith(f"/{health.SERVICE_NAME}/"):
            return continuation(handler_call_details)  # orchestrators have no token
        given = [
            str(value) for key, value in handler_call_details.invocation_metadata if key == AUTHORIZATION
        ]
        if any(self._known(value) for value in given):
            return continuation(handler_call_details)
        return self._refuse_unknown if given else self._refuse_missing

    def _known(self, value: str) -> bool:
        digest = _digest(value.removeprefix(BEARER))
        # Compare with every token, so that the time reveals nothing about them.
        found = [hmac.compare_digest(digest, known) for known in self._digests]
        return value.startswith(BEARER) and any(found)


def _digest(token: str) -> bytes:
    return hashlib.sha256(token.encode()).digest()
