"""Count the requests for objects `all.<format>` of a server, and the bytes of all that it sends."""

from __future__ import annotations

import re
import socket
import threading
from collections.abc import Callable
from contextlib import suppress
from urllib.parse import urlsplit

_REQUEST = re.compile(rb"(?:GET|HEAD) \S*/all\.\S* HTTP/1\.1\r\n")


class Counter:
    """Connections to `endpoint` go through it to a server; bytes are of bodies and headers."""

    def __init__(self, server: str) -> None:
        address = urlsplit(server)
        self.n_requests = self.n_bytes = 0
        self._server = (str(address.hostname), int(address.port or 80))
        self._lock = threading.Lock()
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.endpoint = f"http://127.0.0.1:{self._listening.getsockname()[1]}"
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self) -> None:
        """Accept no more connections."""
        self._listening.close()

    def _accept(self) -> None:
        with suppress(OSError):  # closed
            while True:
                client, _ = self._listening.accept()
                server = socket.create_connection(self._server)
                for way in ((client, server, self._requested), (server, client, self._answered)):
                    threading.Thread(target=_forward, args=way, daemon=True).start()

    def _requested(self, piece: bytes) -> None:
        with self._lock:
            self.n_requests += len(_REQUEST.findall(piece))

    def _answered(self, piece: bytes) -> None:
        with self._lock:
            self.n_bytes += len(piece)


def _forward(begin: socket.socket, end: socket.socket, count: Callable[[bytes], None]) -> None:
    with suppress(OSError):  # either side has ended the connection
        while piece := begin.recv(1 << 18):
            count(piece)
            end.sendall(piece)
    for side in (begin, end):
        with suppress(OSError):
            side.shutdown(socket.SHUT_RDWR)
