"""Why a connection never comes about, told by gRPC's words, by the environment and by one handshake.

gRPC answers each of these failures as it answers a server that is down, and a client that retries waits in
vain.
"""

from __future__ import annotations

import ipaddress
import os
import socket
import ssl

from blender.wire.address import HostPort, host_and_port
from blender.wire.credentials import Tls

_PROBE_S = 1.0
_UNKNOWN_HOST = ("Domain name not found", "Name or service not known", "Misformatted domain name")
_OTHER_PROTOCOL = ("Failed parsing HTTP/2", "http1.x server")
_NO_TLS = ("WRONG_VERSION_NUMBER", "HTTP_REQUEST")
_UNTRUSTED = "CERTIFICATE_VERIFY_FAILED: "
_OTHER_NAME = "Hostname Verification Check failed"
_CLOSED = ("Socket closed", "reset by peer", "Broken pipe")
_PROXY_VARIABLES = ("grpc_proxy", "https_proxy", "http_proxy")  # in gRPC's order, as the next
_NO_PROXY_VARIABLES = ("no_grpc_proxy", "no_proxy")


def misdirection(details: str, address: str, tls: Tls | None, command: str) -> str | None:
    """A sentence about a client that no further try connects, by the details of its failure; else None.

    `command` starts a server of this kind.
    """
    if any(words in details for words in _UNKNOWN_HOST):
        return f"The host of the Blender at {address} is unknown. Correct the address, or the name server."
    if tls is not None and any(words in details for words in _NO_TLS):
        return (
            f"The Blender at {address} speaks plaintext, and this client TLS. Leave `tls` out, or start the "
            "server with --tls-cert and --tls-key."
        )
    if tls is not None and _UNTRUSTED in details:
        reason = details.partition(_UNTRUSTED)[2].removesuffix(": OK")
        return (
            f"This client does not trust the certificate of the Blender at {address} ({reason}). Give "
            "`Tls(ca=...)` the file of the authority that signed it, or renew the certificate."
        )
    if tls is not None and _OTHER_NAME in details:
        return (
            f"The certificate of the Blender at {address} is for another name. Use the host that it names, "
            "or issue a certificate for this one."
        )
    no_greeting = any(words in details for words in (*_CLOSED, *_OTHER_PROTOCOL))
    if tls is None and no_greeting and _speaks_tls(address):
        return (
            f"The Blender at {address} speaks TLS, and this client plaintext. Give the client "
            "`tls=Tls(ca=...)` with the authority of the server's certificate."
        )
    if any(words in details for words in _OTHER_PROTOCOL):
        return (
            f"What answers at {address} does not speak gRPC. Give the address that `{command}` prints, "
            "not that of its metrics or of a page."
        )
    return None


def proxy_clause(address: str) -> str:
    """Words about the proxy to which the environment sends the calls, empty without one."""
    place = host_and_port(address)
    variable = next((name for name in _PROXY_VARIABLES if os.environ.get(name)), None)
    if place is None or variable is None or _without_proxy(place.host):
        return ""
    return f" The variable `{variable}` sends the calls to a proxy: add `{place.host}` to `no_proxy`."


def accepts_connections(address: str) -> bool | None:
    """Whether something listens at the address; None if only gRPC can tell."""
    place = host_and_port(address)
    if place is None or proxy_clause(address):
        return None
    try:
        with socket.create_connection(place, _PROBE_S):
            return True
    except OSError:
        return False


def _speaks_tls(address: str) -> bool:
    """Whether a server completes a handshake of TLS, with any certificate."""
    place = host_and_port(address)
    if place is None or proxy_clause(address):
        return False
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    try:
        with _connected(place) as raw, context.wrap_socket(raw, server_hostname=place.host):
            return True
    except (OSError, ValueError):
        return False


def _connected(place: HostPort) -> socket.socket:
    return socket.create_connection(place, _PROBE_S)


def _without_proxy(host: str) -> bool:
    """Whether `no_proxy` names the host, by a suffix of its name or a network."""
    entries = next(filter(None, map(os.environ.get, _NO_PROXY_VARIABLES)), "").split(",")
    return any(_covers(entry.strip().lower(), host.lower()) for entry in entries if entry.strip())


def _covers(entry: str, host: str) -> bool:
    try:
        return ipaddress.ip_address(host) in ipaddress.ip_network(entry, strict=False)
    except ValueError:
        return host.endswith(entry)
