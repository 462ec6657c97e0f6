"""Documents from HTML files: the main text of each page."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from spark_udfs.ingest.bounds import MAX_TEXT_BYTES
from spark_udfs.ingest.files import Input, whole_file
from spark_udfs.ingest.rows import Row


@dataclass(frozen=True)
class WebPages:
    """How pages are read: one longer than `max_bytes`, decoded from its codings, is rejected."""

    max_bytes: int = MAX_TEXT_BYTES


def html_file(source: Input, options: WebPages) -> Iterator[Row]:
    """Yield one row: the main text of a page as a document, or a rejected record."""
    from spark_udfs.ingest.web.page import page_document, page_of  # needs an extra

    def documents(content: bytes) -> Iterator[Row]:
        yield page_document(source.origin, source.key, page_of(content), path=source.shown)

    return whole_file(source, options.max_bytes, documents)
