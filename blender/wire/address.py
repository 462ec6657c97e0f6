"""The address of a Blender: `host:port`, or a name of several addresses that gRPC resolves.

gRPC takes nearly any text for a host name and then waits for it, so this module refuses what cannot be one.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from blender.errors import InvalidRequest

_RESOLVED_BY_GRPC = re.compile(r"(dns|ipv4|ipv6|unix|unix-abstract|vsock|xds):", re.IGNORECASE)
_SCHEME = re.compile(r"([a-z][a-z0-9+.-]*)://", re.IGNORECASE)
_OVER_TLS = ("https", "grpcs")
_HIGHEST_PORT = 65_535


class HostPort(NamedTuple):
    """One address of a machine."""

    host: str
    port: int


def checked_address(address: object) -> str:
    """`address`, if gRPC can reach a Blender by it; raises InvalidRequest, which says how to write it."""
    if not isinstance(address, str):
        raise InvalidRequest(f"The address is of type `{type(address).__name__}`. Write it as `host:50051`.")
    if not address.strip():
        raise InvalidRequest("The address is empty. Write it as `host:50051`, as `factory serve` prints it.")
    if re.search(r"\s", address):
        raise _malformed(address, "contains a blank", re.sub(r"\s", "", address))
    if scheme := _SCHEME.match(address):
        if _RESOLVED_BY_GRPC.match(address):
            return address
        tls = ", and give the client `tls=Tls()`" if scheme[1].lower() in _OVER_TLS else ""
        bare = address[scheme.end() :].partition("/")[0]
        raise _malformed(address, f"begins with `{scheme[0]}`", _with_port(bare), tls)
    if not _RESOLVED_BY_GRPC.match(address):
        _require_host_and_port(address)
    return address


def host_and_port(address: str) -> HostPort | None:
    """Host and port of an address; None for one that gRPC resolves in its own way."""
    if _RESOLVED_BY_GRPC.match(address):
        return None
    host, _, port = address.rpartition(":")
    return HostPort(host.strip("[]"), int(port))


def _require_host_and_port(address: str) -> None:
    if "/" in address:
        raise _malformed(address, "contains a path", _with_port(address.partition("/")[0]))
    if address.count(":") > 1 and not address.startswith("["):
        raise _malformed(address, "has several colons", "[::1]:50051", " where it is one of IPv6")
    host, _, port = address.rpartition(":") if not address.endswith("]") else (address, "", "")
    if address.startswith(":"):
        raise _malformed(address, "has no host", f"127.0.0.1{address}")
    if address.isdecimal():
        raise _malformed(address, "is a port without a host", f"127.0.0.1:{address}")
    if not host or not port:
        raise _malformed(address, "has no port", _with_port(address))
    if not port.isdecimal() or not 0 < int(port) <= _HIGHEST_PORT:
        raise _malformed(address, f"has the port `{port}`", f"{host}:50051", ", with the port of the server")


def _with_port(host: str) -> str:
    """A host with the port that Blender listens on by default, unless it has one."""
    return host if re.search(r":\d+$", host) else f"{host.rstrip(':') or '127.0.0.1'}:50051"


def _malformed(address: str, fault: str, correct: str, condition: str = "") -> InvalidRequest:
    return InvalidRequest(
        f"The address `{address[:100]}` {fault}. Write `{correct[:100]}`{condition}; `factory serve` prints "
        "its address."
    )
