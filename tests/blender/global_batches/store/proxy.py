"""A faulty way to an S3-compatible store: a proxy that loses requests and answers, and can be away."""

from __future__ import annotations

import socket
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import timedelta
from http.client import HTTPConnection, HTTPMessage
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import obstore
from obstore.store import S3Store

from tests.ports import free_ports

if TYPE_CHECKING:
    from tests.engines.processes import ObjectStore

CONDITION = "If-None-Match"


class Proxy:
    """Forwards requests as they are signed; faults apply to the next requests of a method."""

    def __init__(self, store: ObjectStore) -> None:
        self._store = store
        self.requests: Counter[str] = Counter()
        """Requests received, by method."""
        self.strips_conditions = False
        self.answers_instead: tuple[int, bytes] | None = None
        """A status and a body that every request gets, as from a gateway that cannot reach its store."""
        self._lock = threading.Lock()
        self._lost_requests: Counter[str] = Counter()
        self._lost_answers: Counter[str] = Counter()
        self._connections: set[socket.socket] = set()
        (self._port,) = free_ports(1)
        self.come_back()

    @property
    def endpoint(self) -> str:
        """The address to give to clients."""
        return f"http://127.0.0.1:{self._port}"

    def lose_requests(self, method: str, count: int) -> None:
        """Close the connection of the next requests instead of forwarding them."""
        self._lost_requests[method] = count

    def lose_answers(self, method: str, count: int) -> None:
        """Forward the next requests, and close the connection instead of answering."""
        self._lost_answers[method] = count

    def leave(self) -> None:
        """Refuse connections, and end those there are."""
        self._server.shutdown()
        self._server.server_close()
        with self._lock:
            connections = list(self._connections)
        for connection in connections:
            with suppress(OSError):  # ended by its client
                connection.shutdown(socket.SHUT_RDWR)

    def come_back(self) -> None:
        """Listen again at the same address."""
        self._server = _Server(("127.0.0.1", self._port), _Handler)
        self._server.proxy = self
        threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True).start()

    def takes(self, faults: Counter[str], method: str) -> bool:
        """Whether this request meets one of the faults, which is used up."""
        with self._lock:
            faults[method] -= 1
            return faults[method] >= 0

    def forward(self, method: str, path: str, headers: HTTPMessage, body: bytes) -> _Answer:
        """The store's answer to a request."""
        if self.strips_conditions and CONDITION in headers:
            return self._unconditional_put(path, body)
        return _request(self._store.endpoint, method, path, dict(headers.items()), body)

    def _unconditional_put(self, path: str, body: bytes) -> _Answer:
        """The condition is part of the signature, so the proxy puts by an address that it signs itself."""
        bucket, _, name = path.lstrip("/").partition("/")
        signer = S3Store(
            bucket,
            endpoint=self._store.endpoint,
            access_key_id=self._store.key_id,
            secret_access_key=self._store.secret,
            region="us-east-1",
            client_options={"allow_http": True},
        )
        address = urlsplit(obstore.sign(signer, "PUT", name, timedelta(minutes=5)))
        headers = {"Host": address.netloc, "Content-Length": str(len(body))}
        return _request(self._store.endpoint, "PUT", f"{address.path}?{address.query}", headers, body)


_Answer = tuple[int, list[tuple[str, str]], bytes]


def _request(endpoint: str, method: str, path: str, headers: dict[str, str], body: bytes) -> _Answer:
    connection = HTTPConnection(urlsplit(endpoint).netloc, timeout=60)
    try:
        connection.putrequest(method, path, skip_host=True, skip_accept_encoding=True)
        for name, header in headers.items():
            connection.putheader(name, header)
        connection.endheaders(body)
        answer = connection.getresponse()
        return answer.status, answer.getheaders(), answer.read()
    finally:
        connection.close()


class _Server(ThreadingHTTPServer):
    proxy: Proxy
    request_queue_size = 64
    daemon_threads = True

    def handle_error(self, *_arguments: object) -> None:
        """Connections end on purpose."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    server: _Server

    def setup(self) -> None:
        super().setup()
        with self.server.proxy._lock:
            self.server.proxy._connections.add(self.connection)

    def finish(self) -> None:
        with self.server.proxy._lock:
            self.server.proxy._connections.discard(self.connection)
        super().finish()

    def _any(self) -> None:
        proxy = self.server.proxy
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        with proxy._lock:
            proxy.requests[self.command] += 1
        if proxy.answers_instead:
            status, text = proxy.answers_instead
            self._answer(status, [], text)
        elif proxy.takes(proxy._lost_requests, self.command):
            self.close_connection = True
        else:
            status, headers, answer = proxy.forward(self.command, self.path, self.headers, body)
            if proxy.takes(proxy._lost_answers, self.command):
                self.close_connection = True
            else:
                self._answer(status, headers, answer)

    do_GET = do_PUT = do_POST = do_DELETE = _any  # noqa: N815  # the names that http.server calls

    def _answer(self, status: int, headers: list[tuple[str, str]], body: bytes) -> None:
        self.send_response_only(status)
        names = {name.lower() for name, _ in headers}
        if "content-length" not in names:  # the store's was chunked
            headers = [*headers, ("Content-Length", str(len(body)))]
        for name, value in headers:
            if name.lower() not in ("transfer-encoding", "connection"):
                self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_arguments: object) -> None:
        """Stay silent."""


@contextmanager
def proxy_of(store: ObjectStore) -> Iterator[Proxy]:
    """A proxy in front of a store, until the end of the block."""
    proxy = Proxy(store)
    try:
        yield proxy
    finally:
        proxy.leave()
