"""A server that answers what obstore asks of Google Cloud Storage and of Azure Blob Storage, from memory.

The package index has no emulator of either. This one knows the requests of a namespace and nothing else: put
with and without a condition, get of all or of a range, delete, and list. It was written from the clouds'
documentation, so it shows that addresses and errors take the right way, not that the clouds do as they say.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, unquote, urlsplit
from xml.sax.saxutils import escape

CODES = {"google": ("NoSuchKey", "NoSuchBucket"), "azure": ("BlobNotFound", "ContainerNotFound")}
_STAMP = "Sat, 28 Nov 2026 12:00:00 GMT"


class CloudServer:
    """The objects of one bucket or container, by their names in it."""

    def __init__(self, kind: str, bucket: str) -> None:
        self.kind, self.bucket = kind, bucket
        self.objects: dict[str, bytes] = {}
        self.denies = False
        """Whether it refuses who asks."""
        self.lock = threading.Lock()
        self.endpoint = ""

    def environment(self) -> dict[str, str]:
        """The variables with which a client finds it, without a key."""
        if self.kind == "google":
            return {"GOOGLE_BASE_URL": self.endpoint, "GOOGLE_BEARER_TOKEN": "token"}
        return {
            "AZURE_STORAGE_ACCOUNT_NAME": "account",
            "AZURE_STORAGE_ENDPOINT": self.endpoint,
            "AZURE_SKIP_SIGNATURE": "true",
        }


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    wbufsize = -1  # headers and body in one packet
    cloud: CloudServer

    def do_PUT(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"] or 0))
        if (name := self._name()) is None:
            return
        is_create = self.headers["x-goog-if-generation-match"] == "0" or self.headers["If-None-Match"] == "*"
        with self.cloud.lock:
            is_taken = is_create and name in self.cloud.objects
            if not is_taken:
                self.cloud.objects[name] = body
        if is_taken and self.cloud.kind == "google":
            self._fail(412, "PreconditionFailed")
        elif is_taken:
            self._fail(409, "BlobAlreadyExists")
        else:
            self._answer(200 if self.cloud.kind == "google" else 201)

    def do_GET(self) -> None:
        if (name := self._name()) is None:
            return
        if not name:
            self._list()
        elif (body := self.cloud.objects.get(name)) is None:
            self._fail(404, CODES[self.cloud.kind][0])
        elif part := re.fullmatch(r"bytes=(\d+)-(\d+)", self._range()):
            first, last = int(part[1]), min(int(part[2]), len(body) - 1)
            if first < len(body):
                self._answer(206, body[first : last + 1], f"bytes {first}-{last}/{len(body)}")
            else:
                self._fail(416, "InvalidRange")
        else:
            self._answer(200, body)

    def do_DELETE(self) -> None:
        """As Google Cloud Storage is asked."""
        if (name := self._name()) is not None:
            with self.cloud.lock:
                is_missing = self.cloud.objects.pop(name, None) is None
            if is_missing:
                self._fail(404, CODES[self.cloud.kind][0])
            else:
                self._answer(204)

    def do_POST(self) -> None:
        """Deletes as Azure is asked: a body of requests, each answered in the body of the answer."""
        body = self.rfile.read(int(self.headers["Content-Length"])).decode()
        if self._name() is None:
            return
        answers = []
        for number, path in re.findall(r"Content-ID: (\d+)\r\n\r\nDELETE (\S+) ", body):
            name = unquote(urlsplit(path).path).lstrip("/").partition("/")[2]
            with self.cloud.lock:
                is_missing = self.cloud.objects.pop(name, None) is None
            status = "404 The specified blob does not exist." if is_missing else "202 Accepted"
            answers.append(
                f"--answers\r\nContent-Type: application/http\r\nContent-ID: {number}\r\n\r\n"
                f"HTTP/1.1 {status}\r\nx-ms-version: 2023-11-03\r\n\r\n"
            )
        assert answers, body
        self._answer(202, f"{''.join(answers)}--answers--".encode(), kind="multipart/mixed; boundary=answers")

    def _range(self) -> str:
        return self.headers["Range"] or self.headers["x-ms-range"] or ""

    def log_message(self, *_: object) -> None:
        """Print nothing."""

    def _name(self) -> str | None:
        """The name in the bucket; answers itself for another bucket."""
        bucket, _, name = unquote(urlsplit(self.path).path).lstrip("/").partition("/")
        if self.cloud.denies:
            self._fail(403, "AccessDenied")
        elif bucket != self.cloud.bucket:
            self._fail(404, CODES[self.cloud.kind][1])
        else:
            return name
        return None

    def _list(self) -> None:
        prefix = parse_qs(urlsplit(self.path).query).get("prefix", [""])[0]
        with self.cloud.lock:
            sizes = {name: len(body) for name, body in self.cloud.objects.items() if name.startswith(prefix)}
        if self.cloud.kind == "google":
            entries = "".join(
                f"<Contents><Key>{escape(name)}</Key><LastModified>2026-11-28T12:00:00.000Z</LastModified>"
                f'<ETag>"a"</ETag><Size>{size}</Size></Contents>'
                for name, size in sizes.items()
            )
            xml = f"<ListBucketResult><IsTruncated>false</IsTruncated>{entries}</ListBucketResult>"
        else:
            entries = "".join(
                f"<Blob><Name>{escape(name)}</Name><Properties><Last-Modified>{_STAMP}</Last-Modified>"
                f"<Etag>a</Etag><Content-Length>{size}</Content-Length>"
                "<Content-Type>application/octet-stream</Content-Type></Properties></Blob>"
                for name, size in sizes.items()
            )
            xml = f"<EnumerationResults><Blobs>{entries}</Blobs><NextMarker /></EnumerationResults>"
        self._answer(200, xml.encode())

    def _fail(self, status: int, code: str) -> None:
        self._answer(status, f"<Error><Code>{code}</Code><Message>text</Message></Error>".encode())

    def _answer(
        self, status: int, body: bytes = b"", content_range: str = "", kind: str = "application/xml"
    ) -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("ETag", '"a"')
        self.send_header("Last-Modified", _STAMP)
        if content_range:
            self.send_header("Content-Range", content_range)
        if status != 204:
            self.send_header("Content-Length", f"{len(body)}")
        self.end_headers()
        self.wfile.write(body)


@contextmanager
def serving_cloud(kind: str, bucket: str) -> Iterator[CloudServer]:
    """A server of `google` or `azure` with one bucket, while the block runs."""
    cloud = CloudServer(kind, bucket)
    handler = type("Handler", (_Handler,), {"cloud": cloud})
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        server.daemon_threads = True
        cloud.endpoint = f"http://127.0.0.1:{server.server_address[1]}"
        thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
        thread.start()
        try:
            yield cloud
        finally:
            server.shutdown()
            thread.join()
