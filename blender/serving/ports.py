"""A port of this machine that no one else holds, for one process or for several that share it."""

from __future__ import annotations

import ipaddress
import socket

from factory.errors import ConfigurationError, MachineError

_LAST = 65_535


def port_number(text: str) -> int:
    """The port that an option names; raises ConfigurationError."""
    if not text.isdecimal():
        raise ConfigurationError(f"`{text}` is not a port. Use 1 to {_LAST:,}, or 0 for any free one.")
    if int(text) > _LAST:
        raise ConfigurationError(f"Port {int(text):,} is out of range. Use 1 to {_LAST:,}, or 0 for any.")
    return int(text)


def require_free(host: str, port: int) -> int:
    """The port, or a free one for 0; raises MachineError if it cannot be bound.

    gRPC would write to stderr before it reports that, and would not report it at all for a shared port.
    """
    try:
        with _bound(host, port, shared=False) as probe:
            return int(probe.getsockname()[1])
    except OSError as error:
        raise cannot_bind(host, port, (error.strerror or str(error)).lower()) from error


def reserve(host: str, port: int) -> socket.socket:
    """A socket that holds the port, or a free one for 0, for processes that share it; it takes no calls.

    Raises MachineError if anyone holds the port, shared or not.
    """
    number = require_free(host, port)
    try:
        return _bound(host, number, shared=True)
    except OSError as error:
        raise cannot_bind(host, number, (error.strerror or str(error)).lower()) from error


def cannot_bind(host: str, port: int, reason: str) -> MachineError:
    """The error for a port that cannot be bound."""
    return MachineError(
        f"Port {port} of {host} cannot be bound ({reason}). "
        "Stop the process that holds it, or choose another --port or --host."
    )


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach `host`."""
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return host == "localhost"


def _bound(host: str, port: int, shared: bool) -> socket.socket:
    bound = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET, socket.SOCK_STREAM)
    try:
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # as gRPC does, for a port just released
        if shared:
            bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        bound.bind((host.strip("[]"), port))
    except OSError:
        bound.close()
        raise
    return bound
