"""An HTTP server for scrapes that clients cannot block: few connections, each for a short time.

The Prometheus client's own server starts a thread per connection and waits for its request without limit.
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

MAX_CONNECTIONS = 32
_WAIT_S = 10.0  # for the next bytes of a request, and for the client to read the answer


class ScrapeServer(ThreadingMixIn, WSGIServer):
    """Answers with `app` in one thread per connection; an excess connection closes the oldest."""

    daemon_threads = True
    request_queue_size = 128

    def __init__(self, host: str, port: int, app: Callable[..., Any]) -> None:
        """Bind the port; raises OSError if that fails."""
        ((self.address_family, _, _, _, address), *_) = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )
        self._lock = threading.Lock()
        self._open: dict[socket.socket, None] = {}  # the oldest first
        super().__init__((str(address[0]), port), _Handler)
        self.set_app(app)

    def process_request(self, request: Any, client_address: Any) -> None:
        """Answer in a new thread."""
        with self._lock:
            oldest = next(iter(self._open)) if len(self._open) >= MAX_CONNECTIONS else None
            if oldest is not None:
                del self._open[oldest]
                with contextlib.suppress(OSError):  # its client may have left
                    oldest.shutdown(socket.SHUT_RDWR)  # its thread reads the end and closes it
            self._open[request] = None
        super().process_request(request, client_address)

    def shutdown_request(self, request: Any) -> None:
        """Close a connection."""
        with self._lock:
            self._open.pop(request, None)
        super().shutdown_request(request)

    def handle_error(self, request: Any, client_address: Any) -> None:  # noqa: ARG002
        """Log only failures that no client causes: clients could fill the log."""
        if not isinstance(sys.exc_info()[1], OSError):
            log.exception("a scrape failed")


class _Handler(WSGIRequestHandler):
    timeout = _WAIT_S

    def log_message(self, format: str, *args: object) -> None:
        """Log nothing per request."""
