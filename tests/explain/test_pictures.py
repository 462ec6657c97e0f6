"""Pictures of rows: a phrase, sizes in place of bytes, and files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from factory.explain.pictures import picture_phrase, without_bytes, write_pictures

IMAGE = {"name": "a/b.png", "media_type": "image/png", "width": 640, "height": 480, "content": b"x" * 31_000}


def row(**columns: Any) -> dict[str, Any]:
    return {"doc_id": "d", "text": "\ufffcA cat.", **columns}


def test_a_picture_is_a_phrase_with_its_size_and_name() -> None:
    [image, small] = without_bytes(row(images=[IMAGE, {**IMAGE, "content": b"x"}]))["images"]
    assert picture_phrase(image) == "[picture 0: 640 x 480 image/png, 31 KB, a/b.png]"
    assert picture_phrase(small) == "[picture 1: 640 x 480 image/png, 1 bytes, a/b.png]"
    assert "content" not in image


def test_rows_without_pictures_stay_as_they_are() -> None:
    assert without_bytes(row()) == row()
    assert without_bytes(row(images=None)) == row(images=None)


def test_pictures_are_written_by_document_and_number(tmp_path: Path) -> None:
    assert write_pictures([row(images=[IMAGE]), row(images=None), row()], tmp_path / "out") == 1
    assert (tmp_path / "out" / "d-0.png").read_bytes() == IMAGE["content"]
