"""A Blender on a port: its services, health and reflection, in one process of many threads.

When it stops, calls under way have a grace period. Streams that last longer are told to continue elsewhere
(UNAVAILABLE), which our clients do by themselves.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import grpc
from grpc_health.v1 import health, health_pb2_grpc
from grpc_reflection.v1alpha import reflection

from blender.errors import ServerStopping
from blender.serving import transport
from blender.serving.admission import Admission
from blender.serving.calls import CallLimiter, Limits
from blender.serving.client_identity import by_origin, by_token
from blender.serving.health import Health
from blender.serving.ports import cannot_bind, is_loopback, require_free
from blender.serving.security import ServerSecurity
from blender.serving.shutdown import GRACE_S
from blender.serving.upkeep import Upkeep
from factory.errors import ConfigurationError

log = logging.getLogger("blender")

_NOTIFY_S = 2.0  # to end the calls that outlast the grace period
_POLL_S = 0.2  # a second signal that another thread received is raised between waits


@dataclass(frozen=True)
class Service:
    """A gRPC service, for a server to answer on its port."""

    name: str
    """Its full name in the protocol."""
    handlers: Callable[[CallLimiter], grpc.GenericRpcHandler]
    """Its methods, which admit their calls to the server's limiter."""


class BlenderServer:
    """`services` on a port of this process: `start` and `stop`, or `with BlenderServer(...) as server`.

    TLS, tokens, admission, limits, health and reflection are the same for every service.
    """

    def __init__(
        self,
        services: Sequence[Service],
        *,
        host: str = "127.0.0.1",
        port: int = 0,
        limits: Limits = Limits(),  # noqa: B008 - immutable, as the next
        security: ServerSecurity = ServerSecurity(),  # noqa: B008
        allow_remote: bool = False,
        shared: bool = False,
    ) -> None:
        """Bind the port; `shared` lets other processes of this machine bind it too.

        Raises ConfigurationError for plaintext on a host that other machines can reach and for unusable files
        of `security`, MachineError for a port in use.
        """
        credentials = security.credentials()
        if credentials is None and not allow_remote and not is_loopback(host):
            raise ConfigurationError(
                f"Blender would speak plaintext on {host}, which other machines can reach. "
                "Give --tls-cert and --tls-key, bind 127.0.0.1, or allow it with --allow-remote."
            )
        client_of = by_origin if security.tokens is None else by_token
        self.calls = CallLimiter(limits, client_of)
        self._health = Health([service.name for service in services])
        self.admission = Admission(limits.calls, limits.message_s, client_of)
        self._upkeep = Upkeep(self._sweep, lambda: len(self.calls) + len(self.admission))
        self._server = grpc.server(
            self.admission.threads,
            interceptors=[*security.interceptors(), self.admission],
            options=transport.options(limits.calls, shared),
        )
        self._server.add_generic_rpc_handlers([service.handlers(self.calls) for service in services])
        health_pb2_grpc.add_HealthServicer_to_server(self._health, self._server)
        own = (health.SERVICE_NAME, reflection.SERVICE_NAME)
        reflection.enable_server_reflection([*(service.name for service in services), *own], self._server)
        if not shared:
            require_free(host, port)
        try:
            at = f"{host}:{port}"
            bound = (
                self._server.add_insecure_port(at)
                if credentials is None
                else self._server.add_secure_port(at, credentials)
            )
        except RuntimeError as error:
            raise cannot_bind(host, port, str(error)) from error
        self.address = f"{host}:{bound}"

    def start(self) -> None:
        """Accept calls."""
        self._server.start()
        self._upkeep.start()
        self._health.serve()

    def stop(self, grace_s: float = GRACE_S) -> None:
        """Refuse new calls, give those under way `grace_s`, then tell the rest to continue elsewhere."""
        self._health.stop()
        ended = self._server.stop(grace_s + _NOTIFY_S)
        if not _wait(ended, grace_s):
            self.calls.end(
                ServerStopping(
                    "This Blender is stopping. Ask another one of the lake, or this one when it is back, and "
                    "continue from `next_offset` of the last block."
                )
            )
            if not _wait(ended, 2 * _NOTIFY_S):
                log.warning("gRPC does not end its calls; stopping without it")
        self._upkeep.stop()

    def _sweep(self) -> None:
        self.admission.sweep()
        self.calls.announce_long_calls()

    def __enter__(self) -> BlenderServer:
        self.start()
        return self

    def __exit__(self, *exception: object) -> None:
        self.stop(grace_s=1.0)


def _wait(event: threading.Event, seconds: float) -> bool:
    """Wait for the event, at most `seconds`; return whether it is set."""
    end = time.monotonic() + seconds
    while not event.wait(max(0.0, min(_POLL_S, end - time.monotonic()))):
        if time.monotonic() >= end:
            return False
    return True
