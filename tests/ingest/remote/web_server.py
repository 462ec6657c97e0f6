"""A web server with the faults of real ones, and the interface of the Hub for one dataset."""

from __future__ import annotations

import base64
import json
import re
import sys
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from hashlib import sha256
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import unquote, urlsplit

COMMIT = "c0ffee" * 6 + "c0ff"
PIECE = 100_000  # bytes of an answer that is cut


@dataclass
class WebServer:
    """Files by name, served below folders that are named by a fault; `requests` counts by fault and name.

    The branch `main` of the Hub has a `commit`; `earlier` ones have files of their own. The Hub redirects to
    signed addresses at `content_host`, if there is one, and files below `redirected` lead to `redirect`.
    `credentials` are all it was sent.
    """

    files: dict[str, bytes]
    address: str = ""
    password: str = "hush-web"
    token: str = "hush-hub"
    requests: Counter[str] = field(default_factory=Counter)
    bytes_sent: int = 0
    content_host: str = ""
    redirect: str = ""
    commit: str = COMMIT
    earlier: dict[str, dict[str, bytes]] = field(default_factory=dict)
    credentials: set[str] = field(default_factory=set)

    def push(self, commit: str, files: dict[str, bytes]) -> None:
        """Let the branch `main` have a new commit with these files."""
        self.earlier[self.commit] = self.files
        self.commit, self.files = commit, files

    def files_of(self, commit: str) -> dict[str, bytes]:
        """Return the files of a commit."""
        return self.earlier.get(commit, self.files)


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    web: WebServer

    def log_message(self, format: str, *arguments: Any) -> None: ...

    def do_HEAD(self) -> None:
        self._serve(with_body=False)

    def do_GET(self) -> None:
        self._serve(with_body=True)

    def _serve(self, *, with_body: bool) -> None:
        path = unquote(urlsplit(self.path).path)
        self.web.requests[path] += 1
        self.web.credentials |= set(self.headers.get_all("Authorization", []))
        if path.startswith("/api/datasets/"):
            return self._hub(path)
        fault, _, name = path.removeprefix("/").partition("/")
        files = self.web.files
        if fault == "datasets":
            if self.headers.get("Authorization") != f"Bearer {self.web.token}":
                return self._plain(401, b"")
            commit, _, name = name.split("/resolve/", 1)[1].partition("/")
            files = self.web.files_of(commit)
            if self.web.content_host and name in files:
                return self._plain(
                    302, b"", Location=f"{self.web.content_host}/{name}?Signature=hush-signature"
                )
        content = files.get(name)
        if fault == "circle":
            return self._plain(302, b"", Location=self.path)
        if fault == "redirected":
            return self._plain(302, b"", Location=self.web.redirect)
        if fault == "moved":
            return self._plain(302, b"", Location=f"/whole/{name}")
        if content is None:
            return self._plain(404, b"")
        if fault == "busy" and self.web.requests[path] <= 2:
            return self._plain(503, b"")
        if fault == "limited" and self.web.requests[path] % 2:
            return self._plain(429, b"", **{"Retry-After": "7"})
        if fault == "locked":
            word = base64.b64encode(f"reader:{self.web.password}".encode()).decode()
            if self.headers.get("Authorization") != f"Basic {word}":
                return self._plain(401, b"")
        if fault == "headless" and not with_body:
            return self._plain(405, b"")
        if fault == "changing" and self.web.requests[path] > 3:
            content = content[::-1]
        return self._content(fault, content, with_body=with_body)

    def _content(self, fault: str, content: bytes, *, with_body: bool) -> None:
        span = re.fullmatch(r"bytes=(\d+)-(\d+)", self.headers.get("Range", ""))
        has_ranges = fault != "rangeless"
        begin, end = 0, len(content)
        if span and has_ranges:
            begin, end = int(span[1]), min(int(span[2]) + 1, len(content))
        self.send_response(206 if span and has_ranges else 200)
        if has_ranges:
            self.send_header("Accept-Ranges", "bytes")
        if span and has_ranges:
            self.send_header("Content-Range", f"bytes {begin}-{end - 1}/{len(content)}")
        if fault != "tagless":
            self.send_header("ETag", f'"{sha256(content).hexdigest()}"')
        body = content[begin:end]
        if fault == "endless":
            self.send_header("Transfer-Encoding", "chunked")
        else:
            self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if not with_body:
            return
        if fault == "short":
            body, self.close_connection = b"", True
        elif fault == "cut" and len(body) > PIECE:
            body, self.close_connection = body[:PIECE], True
        self.web.bytes_sent += len(body)
        self.wfile.write(b"%x\r\n%s\r\n0\r\n\r\n" % (len(body), body) if fault == "endless" else body)

    def _hub(self, path: str) -> None:
        if self.headers.get("Authorization") != f"Bearer {self.web.token}":
            return self._json(401, {"error": "no"}, **{"X-Error-Code": "RepoNotFound"})
        match = re.fullmatch(r"/api/datasets/owner/name/(revision|tree)/([^/]+)/?(.*)", path)
        if match is None:
            return self._json(404, {"error": "no"}, **{"X-Error-Code": "RepoNotFound"})
        if match[2] not in ("main", self.web.commit, *self.web.earlier):
            return self._json(404, {"error": "no"}, **{"X-Error-Code": "RevisionNotFound"})
        if match[1] == "revision":
            return self._json(
                200, {"id": "owner/name", "sha": self.web.commit if match[2] == "main" else match[2]}
            )
        prefix = f"{match[3]}/" if match[3] else ""
        files = self.web.files_of(match[2])
        below = {name: content for name, content in files.items() if name.startswith(prefix)}
        if not below:
            return self._json(404, {"error": "no"}, **{"X-Error-Code": "EntryNotFound"})
        entries = [
            {"type": "file", "path": name, "size": len(content), "oid": sha256(content).hexdigest()[:40]}
            for name, content in below.items()
        ]
        if "recursive=true" not in self.path.lower():
            folders = {prefix + name.removeprefix(prefix).partition("/")[0] for name in below}
            entries = [entry for entry in entries if entry["path"] in folders]
            files = {entry["path"] for entry in entries}
            entries += [{"type": "directory", "path": name, "oid": "0"} for name in sorted(folders - files)]
        return self._json(200, entries)

    def _json(self, status: int, content: object, **headers: str) -> None:
        self._plain(status, json.dumps(content).encode(), **{"Content-Type": "application/json", **headers})

    def _plain(self, status: int, body: bytes, **headers: str) -> None:
        self.send_response(status)
        for name, text in {**headers, "Content-Length": str(len(body))}.items():
            self.send_header(name, text)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)


class QuietServer(ThreadingHTTPServer):
    """A server that says nothing of clients that leave."""

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Say nothing of a client that has seen enough."""
        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(request, client_address)


@contextmanager
def serving_files(files: dict[str, bytes]) -> Iterator[WebServer]:
    """Serve files until the block ends."""
    web = WebServer(files)
    server = QuietServer(("127.0.0.1", 0), type("Handler", (_Handler,), {"web": web}))
    web.address = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    try:
        yield web
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
