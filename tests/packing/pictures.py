"""Rows of raw tables with pictures, written by hand: the bytes of a picture are its name."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from factory.lake.identity import content_hash
from factory.lake.schemas.images import PLACEHOLDER
from factory.lake.schemas.ingest import RAW

PNG = "image/png"


def picture(name: str, size: int = 20) -> dict[str, Any]:
    """A row of `RAW_IMAGES` with `size` bytes."""
    content = (name.encode() * size)[:size]
    return {
        "name": name,
        "media_type": PNG,
        "width": 28,
        "height": 14,
        "patches": 2,
        "content_hash": content_hash(content),
        "content": content,
    }


def document(doc_id: str, text: str, images: Sequence[dict[str, Any]] | None) -> dict[str, Any]:
    """A row of a raw table with pictures."""
    assert text.count(PLACEHOLDER) == len(images or ())
    return {
        **dict.fromkeys(RAW.names),
        "doc_id": doc_id,
        "source": "drawn",
        "key": doc_id,
        "text": text,
        "content_hash": content_hash(text.encode()),
        "n_bytes": len(text.encode()),
        "media_type": "text/plain",
        "images": images,
    }
