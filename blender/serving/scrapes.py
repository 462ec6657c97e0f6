"""An HTTP server for scrapes that clients cannot hold: few connections, each for a short time.

The one that comes with the client of Prometheus starts a thread for every connection and waits for its
request for ever.
"""

from __future__ import annotations

import contextlib
import logging
import socket
import sys
import threading
from collections.abc import Callable
from socketserver import ThreadingMixIn
from typing import Any
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer

log = logging.getLogger("blender")

MOST_CONNECTIONS = 32
_WAIT_S = 10.0  # for the next bytes of a request, and for its answer to be taken


class ScrapeServer(ThreadingMixIn, WSGIServer):
    """Answers with `app` in a thread a connection; one that is too many ends the oldest."""

    daemon_threads = True
    request_queue_size = 128

    def __init__(self, host: str, port: int, app: Callable[..., Any]) -> None:
        """Bind the port; raises OSError where that fails."""
        ((self.address_family, _, _, _, address), *_) = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )
        self._lock = threading.Lock()
        self._open: dict[socket.socket, None] = {}  # the oldest first
        super().__init__((str(address[0]), port), _Handler)
        self.set_app(app)

    def process_request(self, request: Any, client_address: Any) -> None:
        """Answer in a thread of its own."""
        with self._lock:
            oldest = next(iter(self._open)) if len(self._open) >= MOST_CONNECTIONS else None
            if oldest is not None:
                del self._open[oldest]
                with contextlib.suppress(OSError):  # its client may have left
                    oldest.shutdown(socket.SHUT_RDWR)  # its thread reads the end, and closes it
            self._open[request] = None
        super().process_request(request, client_address)

    def shutdown_request(self, request: Any) -> None:
        """Close a connection."""
        with self._lock:
            self._open.pop(request, None)
        super().shutdown_request(request)

    def handle_error(self, request: Any, client_address: Any) -> None:  # noqa: ARG002
        """Log what is not a client's doing: each could fill the log."""
        if not isinstance(sys.exc_info()[1], OSError):
            log.exception("a scrape failed")


class _Handler(WSGIRequestHandler):
    timeout = _WAIT_S

    def log_message(self, format: str, *args: object) -> None:
        """Log no requests."""
