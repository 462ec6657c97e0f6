"""Documents from WARC archives: the main text of each page that was captured, and the text of WET records.

Every record of an archive is a document or a rejected record with its offset. The records around pages
(requests, metadata) and responses that are no pages (redirects, errors, images) are rejected by reason, and
lose nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from spark_udfs.ingest.file_types import PLAIN
from spark_udfs.ingest.files import Input, decode_utf8, opened
from spark_udfs.ingest.html import WebPages
from spark_udfs.ingest.part_borders import row_of_borders
from spark_udfs.ingest.place import size_of
from spark_udfs.ingest.records import as_column
from spark_udfs.ingest.rows import BadRecord, Origin, Row, document, rejection

if TYPE_CHECKING:
    from spark_udfs.ingest.web.page import WebPage
    from spark_udfs.ingest.web.warc_records import WarcRecord

_PAGES = ("text/html", "application/xhtml+xml")
_CUT = "unspecified"  # the word of WARC for a record that was cut for a reason that nobody tells
_MAX_KEY_LETTERS = 1_000


# Of a gzip member, a frame of Zstandard, a skippable one, and a record without compression. Behind any other
# beginning it may take the whole file to find out how its records are compressed.
ARCHIVE_BEGINNING = re.compile(rb"\x1f\x8b\x08|\x28\xb5\x2f\xfd|[\x50-\x5f]\x2a\x4d\x18|WARC/", re.DOTALL)


def warc_file(source: Input, options: WebPages) -> Iterator[Row]:
    """Yield one row per record of an archive, and one for each damaged range."""
    from spark_udfs.ingest.web.warc_records import PartBorders, records, records_of_part  # needs an extra

    n_bytes = n_records = 0
    part, borders = source.part, PartBorders()
    try:
        with opened(source) as file:
            n_bytes = size_of(file)
            for record in (
                records(file, options.max_bytes)
                if part is None
                else records_of_part(file, options.max_bytes, part, borders)
            ):
                n_records += 1
                yield _row(source, record, options)
        if part is None and not n_records:
            raise BadRecord("empty", "The file is empty.")
    except BadRecord as bad:
        borders.end = None
        if not _is_of_every_part(bad) or part is None or not part.begin:
            yield rejection(source.origin, source.fault_key, bad, n_bytes)
    if part is not None:
        yield row_of_borders(source, borders.first, borders.end)


def _is_of_every_part(bad: BadRecord) -> bool:
    """Whether every part of the file fails like this: its name or its dictionary is wrong."""
    return bad.reason == "name_not_utf8" or (bad.reason == "corrupt" and bad.location == "byte 0")


def _row(source: Input, record: WarcRecord, options: WebPages) -> Row:
    location = f"byte {record.offset}"
    try:
        if record.trouble is not None:
            raise record.trouble
        row = _document(source, record, options)
        return {**row, "file": source.key, "row": record.offset, "location": location}
    except BadRecord as bad:
        bad_at = BadRecord(bad.reason, bad.detail, location)
        return rejection(source.origin, _key(source, record), bad_at, record.length, record.content)


def _document(source: Input, record: WarcRecord, options: WebPages) -> Row:
    kind = record.headers.get("warc-type").lower()
    metadata = {
        "warc_file": source.key,
        "warc_offset": str(record.offset),
        "warc_length": str(record.length),
    }
    if cut := record.headers.get("warc-truncated"):
        metadata["truncated"] = cut
    columns: dict[str, Any] = {"metadata": metadata}
    if created_at := as_column("created_at", record.headers.get("warc-date") or None):
        columns["created_at"] = created_at
    if kind == "conversion":
        return _converted(source.origin, _key(source, record), record, columns)
    if kind not in ("response", "resource"):
        if kind == "revisit":
            raise BadRecord("revisit", "The page is as it was when it was captured before.")
        raise BadRecord("no_page", f"A record of type `{kind[:40]}` is no page.")
    if record.headers.media_type == "text/dns":
        raise BadRecord("no_page", "An answer of a name server is no page.")
    from spark_udfs.ingest.web.page import page_document

    page = _page(record, options, has_http=kind == "response")
    return page_document(source.origin, _key(source, record), page, **columns)


def _page(record: WarcRecord, options: WebPages, *, has_http: bool) -> WebPage:
    """The page of a response with HTTP headers, or of a resource without."""
    from spark_udfs.ingest.web.http_message import body_of, is_markup, status_of
    from spark_udfs.ingest.web.page import page_of
    from spark_udfs.ingest.web.tree import OptOuts

    headers, body = record.headers, record.content
    if has_http:
        status, headers, body = status_of(record.content)
        if 300 <= status < 400:
            raise BadRecord("redirect", f"The response has the status {status} and leads to another address.")
        if status != 200:
            raise BadRecord("http_error", f"The response has the status {status}.")
    media_type = headers.media_type or record.headers.get("warc-identified-payload-type").lower()
    if media_type and media_type not in _PAGES:
        raise BadRecord("other_media", f"The media type `{media_type[:100]}` is none of a page.")
    body, is_whole = body_of(headers, body, options.max_bytes)
    if not media_type and not is_markup(body):
        raise BadRecord("no_media_type", "No media type is stated, and the body does not begin with markup.")
    url = record.headers.get("warc-target-uri").strip("<>")
    opt_outs = OptOuts(headers.list_of("x-robots-tag"), headers.list_of("tdm-reservation"))
    page = page_of(body, url, headers.charset, opt_outs)
    return page if is_whole else replace(page, facts={**page.facts, "truncated": _CUT})


def _converted(origin: Origin, key: str, record: WarcRecord, columns: dict[str, Any]) -> Row:
    """The document of a WET record: text that another extracted, in UTF-8."""
    url = record.headers.get("warc-target-uri").strip("<>")
    from spark_udfs.ingest.web.address import host_of

    facts = {"url": url, "host": host_of(url), "extractor": "wet"}
    if languages := record.headers.get("warc-identified-content-language"):
        facts["languages"] = languages
    columns["metadata"] |= {name: fact for name, fact in facts.items() if fact}
    text = decode_utf8(record.content)
    return document(origin, key, text, media_type=PLAIN.media_type, language=origin.language, **columns)


def _key(source: Input, record: WarcRecord) -> str:
    """The record's own id, or its place for one without."""
    own = record.headers.get("warc-record-id").strip("<> ")[:_MAX_KEY_LETTERS]
    return own or f"{source.key}:{record.offset}"
