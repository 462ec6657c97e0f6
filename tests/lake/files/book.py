"""The pages of a book as rows of a raw table."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import pyarrow as pa

from factory.lake.schemas.ingest import RAW


def documents(numbers: Iterable[int], **further: Callable[[int], Any]) -> pa.Table:
    """Rows of `raw.book`, one for each page number; `further` columns are functions of it."""
    rows = [
        {
            "doc_id": f"{number:032x}",
            "source": "book",
            "key": f"page {number}",
            "text": f"text of page {number} " * 40,
            "content_hash": f"{number}",
            "n_bytes": 14,
            "media_type": "text/plain",
            **{name: column(number) for name, column in further.items()},
        }
        for number in numbers
    ]
    return pa.Table.from_pylist(rows, schema=RAW.columns)
