"""A server of S3 with a bucket in memory, with any names, and refusals as SeaweedFS gives none.

Clients of Google Cloud Storage speak this protocol too, and those of Azure one that differs in its listings.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from hashlib import md5
from http.server import BaseHTTPRequestHandler
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit
from xml.sax.saxutils import escape

from factory.lake.files.storage import S3_ENDPOINT, S3_KEY_ID, S3_REGION, S3_SECRET
from tests.ingest.remote.web_server import QuietServer

PAGE_NAMES = 1_000  # as S3 does


@dataclass
class BucketServer:
    """The objects of the bucket `bucket`, by name, in the order of S3.

    `refusals` are a status and a code by the number of the request from which on it answers nothing else. A
    listing has the `ghost`, which is gone, and other ETags than the objects if it `lists_other_tags`.
    `requests` are methods and names, `bytes_sent` the bytes of objects. With
    `refused_content` it answers so to everybody who asks for the content of an object. Refusals repeat the
    keys of the request, as those of AWS do.
    """

    objects: dict[str, bytes]
    endpoint: str = ""
    refusals: dict[int, tuple[int, str]] = field(default_factory=dict)
    refused_content: tuple[int, str] | None = None
    ghost: str = ""
    heeds_conditions: bool = True
    lists_other_tags: bool = False
    requests: list[str] = field(default_factory=list)
    bytes_sent: int = 0

    @property
    def storage(self) -> dict[str, str]:
        """The options of a lake with its warehouse here."""
        return {S3_ENDPOINT: self.endpoint, S3_REGION: "us-east-1", S3_KEY_ID: "id", S3_SECRET: "hush"}

    def page(self, prefix: str, delimiter: str, begin: int) -> str:
        """Return the answer to ListObjectsV2 from the entry `begin` on."""
        names = [name for name in self.objects if name.startswith(prefix)] if prefix else list(self.objects)
        if delimiter:
            parts = (name[len(prefix) :].partition(delimiter) for name in names)
            names = list(dict.fromkeys(f"{prefix}{head}{end}" for head, end, _ in parts))
        entries = [self._entry(name, delimiter, prefix) for name in names[begin : begin + PAGE_NAMES]]
        is_cut = len(names) > begin + PAGE_NAMES
        token = f"<NextContinuationToken>{begin + PAGE_NAMES}</NextContinuationToken>" if is_cut else ""
        content = f"<IsTruncated>{str(is_cut).lower()}</IsTruncated>{token}{''.join(entries)}"
        return f"<ListBucketResult>{content}</ListBucketResult>"

    def _entry(self, name: str, delimiter: str, prefix: str) -> str:
        if delimiter and name.endswith(delimiter) and name != prefix:
            return f"<CommonPrefixes><Prefix>{escape(name)}</Prefix></CommonPrefixes>"
        content = self.objects[name]
        return (
            f"<Contents><Key>{escape(name)}</Key><LastModified>2026-01-02T03:04:05.000Z</LastModified>"
            f"<ETag>{self._listed_tag(content)}</ETag><Size>{len(content)}</Size></Contents>"
        )

    def _listed_tag(self, content: bytes) -> str:
        return tag_of(content[::-1] if self.lists_other_tags else content)

    def blobs(self, prefix: str) -> str:
        """Return the answer to Azure's List Blobs."""
        entries = [
            f"<Blob><Name>{escape(name)}</Name><Properties><Etag>{self._listed_tag(content)}</Etag>"
            f"<Last-Modified>Fri, 02 Jan 2026 03:04:05 GMT</Last-Modified>"
            f"<Content-Length>{len(content)}</Content-Length><Content-Type>text/plain</Content-Type>"
            "</Properties></Blob>"
            for name, content in self.objects.items()
            if name.startswith(prefix)
        ]
        blobs = f"<Blobs>{''.join(entries)}</Blobs><NextMarker/>"
        return f"<EnumerationResults><Prefix>{escape(prefix)}</Prefix>{blobs}</EnumerationResults>"


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True  # a client that waits for the body confirms the head late
    bucket: BucketServer

    def log_message(self, format: str, *arguments: Any) -> None: ...

    def do_HEAD(self) -> None:
        self.do_GET()

    def do_GET(self) -> None:
        address = urlsplit(self.path)
        query = dict(parse_qsl(address.query))
        name = unquote(address.path).removeprefix("/bucket").removeprefix("/")
        self.bucket.requests.append(f"{self.command} {name}")
        for n_requests, (status, code) in self.bucket.refusals.items():
            if len(self.bucket.requests) >= n_requests:
                return self._refuse(status, code)
        if "list-type" in query:
            begin = int(query.get("continuation-token", 0))
            page = self.bucket.page(query.get("prefix", ""), query.get("delimiter", ""), begin)
            return self._answer(200, page.encode())
        if query.get("comp") == "list":
            return self._answer(200, self.bucket.blobs(query.get("prefix", "")).encode())
        if self.bucket.refused_content and self.command == "GET":
            return self._refuse(*self.bucket.refused_content)
        content = self.bucket.objects.get(name)
        if content is None or name == self.bucket.ghost:
            return self._answer(404, b"<Error><Code>NoSuchKey</Code></Error>")
        condition = self.headers.get("If-Match", tag_of(content))
        if condition != tag_of(content) and self.bucket.heeds_conditions:
            return self._answer(412, b"<Error><Code>PreconditionFailed</Code></Error>")
        span = re.fullmatch(r"bytes=(\d+)-(\d+)", self.headers.get("Range", ""))
        if span is None:
            self.bucket.bytes_sent += len(content) if self.command == "GET" else 0
            return self._answer(200, content, ETag=tag_of(content))
        begin, end = int(span[1]), min(int(span[2]) + 1, len(content))
        self.bucket.bytes_sent += end - begin
        place = {"Content-Range": f"bytes {begin}-{end - 1}/{len(content)}"}
        return self._answer(206, content[begin:end], ETag=tag_of(content), **place)

    def _refuse(self, status: int, code: str) -> None:
        keys = f"{self.headers.get('Authorization')} {self.headers.get('x-amz-security-token')}"
        self._answer(status, f"<Error><Code>{code}</Code><Message>{escape(keys)}</Message></Error>".encode())

    def _answer(self, status: int, body: bytes, **headers: str) -> None:
        self.send_response(status)
        headers |= {"Content-Length": str(len(body)), "Last-Modified": "Fri, 02 Jan 2026 03:04:05 GMT"}
        for name, text in headers.items():
            self.send_header(name, text)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)


def tag_of(content: bytes) -> str:
    """Return the ETag of an object."""
    return f'"{md5(content, usedforsecurity=False).hexdigest()}"'


@contextmanager
def serving_objects(objects: dict[str, bytes]) -> Iterator[BucketServer]:
    """Serve objects until the block ends."""
    bucket = BucketServer(dict(sorted(objects.items())))
    server = QuietServer(("127.0.0.1", 0), type("Handler", (_Handler,), {"bucket": bucket}))
    bucket.endpoint = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    try:
        yield bucket
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
