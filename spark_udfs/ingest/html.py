"""Documents from HTML files: the main text of each page."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from spark_udfs.ingest.bounds import MAX_TEXT_BYTES
from spark_udfs.ingest.files import Input, whole_file
from spark_udfs.ingest.rows import BadRecord, Origin, Row


@dataclass(frozen=True)
class WebPages:
    """How pages are read: one longer than `max_bytes`, decoded from its codings, is rejected."""

    max_bytes: int = MAX_TEXT_BYTES


def html_text(origin: Origin, key: str, text: str, url: str, options: WebPages) -> Row:
    """Return the document of a page; its HTML, `text`, comes from another document.

    Raises BadRecord as `page_of` does, and `too_large`.
    """
    from spark_udfs.ingest.web.page import page_document, page_of  # needs an extra

    body = text.encode("utf-8", "replace")
    if len(body) > options.max_bytes:
        raise BadRecord("too_large", f"The page is longer than {options.max_bytes:,} bytes.")
    return page_document(origin, key, page_of(body, url, "utf-8"))


def html_file(source: Input, options: WebPages) -> Iterator[Row]:
    """Yield one row: the main text of a page as a document, or a rejected record."""
    from spark_udfs.ingest.web.page import page_document, page_of  # needs an extra

    def documents(content: bytes) -> Iterator[Row]:
        yield page_document(source.origin, source.key, page_of(content), path=source.shown)

    return whole_file(source, options.max_bytes, documents)
