"""Documents that are the markup of a web page, told by their name or by the way their text begins.

A page begins with `<!DOCTYPE html`, `<html`, `<head` or `<body`, behind blanks, a byte order mark, comments
and the prologue of XML. Markdown with tags in it, other XML and SVG do not. The test looks at the beginning
alone: a microsecond for a text, and time in proportion to the comments before a page.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Literal

from spark_udfs.ingest.file_types import kind_of
from spark_udfs.ingest.files import Input
from spark_udfs.ingest.rows import SAMPLE_BYTES, BadRecord, Row, rejection

Markup = Literal["reject", "keep"]

_PAGE_TYPES = frozenset({"text/html", "application/xhtml+xml"})
_PAGE = re.compile(
    r"(?:[\ufeff\s]++|(?><!--.*?-->)|(?><\?xml\b.*?\?>))*+"
    r"(<!doctype\s++html\b|<(?:html|head|body)(?=[\s/>]))",
    re.IGNORECASE | re.DOTALL,
)

_FILE_REMEDY = "`format: html` reads the main text of pages"
_RECORD_REMEDY = "A second dataset with `format: html` and `from` reads the main text of pages"


def is_page_name(name: str) -> bool:
    """Whether a file of this name is a web page."""
    return kind_of(name).media_type in _PAGE_TYPES


def page_opening(text: str) -> str | None:
    """Return the tag or declaration with which a text begins if it is a web page, else None."""
    match = _PAGE.match(text)
    return match[1] if match else None


def reject_pages(rows: Iterator[Row], source: Input, *, numbers_of_part: bool = False) -> Iterator[Row]:
    """Yield the rows of a file, with a rejected record `markup` for each document that is a web page.

    With `numbers_of_part` their keys are empty behind the first part, until the whole file is counted.
    """
    is_later = numbers_of_part and source.part is not None and source.part.begin > 0
    for row in rows:
        page = None if "reason" in row else _trouble(row, is_file=row["key"] == source.key)
        if page is None:
            yield row
            continue
        # A document's own key names no rejected record: another document may have it.
        key = row["key"] if "row" not in row else "" if is_later else f"{source.key}:{row['row']}"
        sample = row["text"][:SAMPLE_BYTES].encode()
        yield rejection(source.origin, key, page, row["n_bytes"], sample)


def _trouble(row: Row, *, is_file: bool) -> BadRecord | None:
    opening = page_opening(row["text"])
    if opening is None and row["media_type"] not in _PAGE_TYPES:
        return None
    if opening is None:
        fact = "By its name it is a web page."
    else:
        fact = f"The text is a web page: it begins with `{' '.join(opening.split())}`."
    detail = f"{fact} {_FILE_REMEDY if is_file else _RECORD_REMEDY}, `markup: keep` takes them as they are."
    return BadRecord("markup", detail, row.get("location") or "byte 0")
