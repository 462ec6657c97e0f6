"""Web archives of tests, written by warcio: pages, and the records around them."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from warcio.statusandheaders import StatusAndHeaders
from warcio.warcwriter import WARCWriter

SENTENCE = (
    "The river rose because rain fell on the hills, and farmers carried stones to the walls of their fields."
)


def page(number: int | str, sentences: int = 3) -> bytes:
    """The HTML of a page with a headline and a paragraph of its own."""
    text = " ".join(f"{SENTENCE} Part {number}.{at}." for at in range(sentences))
    head = f"<head><title>Page {number}</title></head>"
    return f"<html>{head}<body><h1>Page {number}</h1><p>{text}</p></body></html>".encode()


@dataclass(frozen=True)
class Fetch:
    """A response of a server, as a crawler stores it."""

    url: str
    body: bytes
    status: str = "200 OK"
    headers: Mapping[str, str] = field(default_factory=lambda: {"Content-Type": "text/html; charset=utf-8"})
    date: str = "2024-03-01T10:00:00Z"
    kind: str = "response"
    fields: Mapping[str, str] = field(default_factory=dict)


def archive(fetches: Sequence[Fetch], *, gzip: bool = True, requests: bool = False, offset: int = 0) -> bytes:
    """The bytes of a WARC archive; with `requests` each response has its request before it.

    Record ids count from `offset`.
    """
    buffer = io.BytesIO()
    writer = WARCWriter(buffer, gzip=gzip)
    for number, fetch in enumerate(fetches, start=offset):
        fields = {
            "WARC-Record-ID": f"<urn:uuid:{number:08d}-0000-0000-0000-000000000000>",
            "WARC-Date": fetch.date,
        }
        http = StatusAndHeaders(fetch.status, list(fetch.headers.items()), protocol="HTTP/1.1")
        if requests:
            asked = StatusAndHeaders("GET / HTTP/1.1", [("Host", "a.example")], is_http_request=True)
            writer.write_record(
                writer.create_warc_record(fetch.url, "request", payload=io.BytesIO(b""), http_headers=asked)
            )
        writer.write_record(
            writer.create_warc_record(
                fetch.url,
                fetch.kind,
                payload=io.BytesIO(fetch.body),
                length=len(fetch.body),
                http_headers=http if fetch.kind == "response" else None,
                warc_content_type=fetch.headers.get("Content-Type", "") if fetch.kind != "response" else "",
                warc_headers_dict={**fields, **fetch.fields},
            )
        )
    return buffer.getvalue()


def pages(n: int, **options: bool) -> bytes:
    """An archive of `n` pages, each of its own address."""
    return archive([Fetch(f"http://a.example/{number}", page(number)) for number in range(n)], **options)


def text_record(content: bytes, name: str = "a") -> bytes:
    """An uncompressed record of a text that another program extracted."""
    head = f"WARC/1.0\r\nWARC-Type: conversion\r\nWARC-Record-ID: <urn:{name}>\r\n"
    return f"{head}Content-Length: {len(content)}\r\n\r\n".encode() + content + b"\r\n\r\n"
