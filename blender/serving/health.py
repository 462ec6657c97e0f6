"""Whether a Blender serves, in gRPC's health protocol.

The servicer that comes with gRPC sends the answers of watchers under the lock of all, so that one watcher
who takes nothing stops every check, and it keeps an entry for every name it was ever asked for.
"""

from __future__ import annotations

import threading
from collections.abc import Collection, Iterator

import grpc
from grpc_health.v1 import health_pb2 as pb
from grpc_health.v1 import health_pb2_grpc as pb_grpc


class Health(pb_grpc.HealthServicer):
    """Answers for `services`, all of which serve from `serve` to `stop`, and for "", which is the server."""

    def __init__(self, services: Collection[str]) -> None:
        self._services = {"", *services}
        self._changed = threading.Condition()
        self._status = pb.HealthCheckResponse.NOT_SERVING
        self._stopped = False

    def serve(self) -> None:
        """Tell everyone that the server serves."""
        with self._changed:
            self._status = pb.HealthCheckResponse.SERVING
            self._changed.notify_all()

    def stop(self) -> None:
        """Tell everyone that it does not any more, and end the watches."""
        with self._changed:
            self._status, self._stopped = pb.HealthCheckResponse.NOT_SERVING, True
            self._changed.notify_all()

    def Check(  # noqa: N802 - the protocol's name, as is the next
        self, request: pb.HealthCheckRequest, context: grpc.ServicerContext
    ) -> pb.HealthCheckResponse:
        """The status now; NOT_FOUND for a service there is not."""
        if request.service not in self._services:
            context.set_code(grpc.StatusCode.NOT_FOUND)
            return pb.HealthCheckResponse()
        return pb.HealthCheckResponse(status=self._status)

    def Watch(  # noqa: N802
        self, request: pb.HealthCheckRequest, context: grpc.ServicerContext
    ) -> Iterator[pb.HealthCheckResponse]:
        """The status now, and again whenever it changes, until the server stops or the client leaves."""
        if not context.add_callback(self._wake):
            return
        known = request.service in self._services
        told = None
        while context.is_active():
            stopped = self._stopped  # before the status, which is told once more then
            status = self._status if known else pb.HealthCheckResponse.SERVICE_UNKNOWN
            if status != told:
                told = status
                yield pb.HealthCheckResponse(status=status)
            if stopped:
                return
            with self._changed:
                while context.is_active() and not self._stopped and (not known or self._status == told):
                    self._changed.wait()

    def _wake(self) -> None:
        with self._changed:
            self._changed.notify_all()
