"""Whether a Blender serves, in gRPC's health protocol.

gRPC's own servicer sends watchers their answers under one lock, so a single watcher that reads nothing stops
every check; it also keeps an entry for every service name anyone has asked for.
"""

from __future__ import annotations

import threading
from collections.abc import Collection, Iterator

import grpc
from grpc_health.v1 import health_pb2 as pb
from grpc_health.v1 import health_pb2_grpc as pb_grpc


class Health(pb_grpc.HealthServicer):
    """Answers for `services`, which all serve between `serve` and `stop`, and for "", the server itself."""

    def __init__(self, services: Collection[str]) -> None:
        self._services = {"", *services}
        self._changed = threading.Condition()
        self._status = pb.HealthCheckResponse.NOT_SERVING
        self._stopped = False

    def serve(self) -> None:
        """Announce that the server serves."""
        with self._changed:
            self._status = pb.HealthCheckResponse.SERVING
            self._changed.notify_all()

    def stop(self) -> None:
        """Announce that the server no longer serves, and end the watches."""
        with self._changed:
            self._status, self._stopped = pb.HealthCheckResponse.NOT_SERVING, True
            self._changed.notify_all()

    def Check(  # noqa: N802 - the protocol names it, and the next
        self, request: pb.HealthCheckRequest, context: grpc.ServicerContext
    ) -> pb.HealthCheckResponse:
        """The current status; NOT_FOUND for an unknown service."""
        if request.service not in self._services:
            context.set_code(grpc.StatusCode.NOT_FOUND)
            return pb.HealthCheckResponse()
        return pb.HealthCheckResponse(status=self._status)

    def Watch(  # noqa: N802
        self, request: pb.HealthCheckRequest, context: grpc.ServicerContext
    ) -> Iterator[pb.HealthCheckResponse]:
        """The current status, and each change of it, until the server stops or the client leaves."""
        if not context.add_callback(self._wake):
            return
        known = request.service in self._services
        sent = None
        while context.is_active():
            stopped = self._stopped  # read before the status, which is then sent once more
            status = self._status if known else pb.HealthCheckResponse.SERVICE_UNKNOWN
            if status != sent:
                sent = status
                yield pb.HealthCheckResponse(status=status)
            if stopped:
                return
            with self._changed:
                while context.is_active() and not self._stopped and (not known or self._status == sent):
                    self._changed.wait()

    def _wake(self) -> None:
        with self._changed:
            self._changed.notify_all()
