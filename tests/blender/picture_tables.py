"""Small packed tables of documents with pictures, drawn and written here."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from io import BytesIO
from typing import Any

import numpy as np
import pyarrow as pa
from PIL import Image

from factory.lake.schemas.images import IMAGE_TOKEN, PACKED_IMAGES, with_images
from factory.lake.schemas.packing import PACKED, SEQUENCE_LENGTH
from factory.settings import Settings
from tests.blender.lakes import write_table

PICTURES = "packed.pictures"
PICTURE_TOKEN = 999
LENGTH = 64  # tokens of the longest document


@dataclass(frozen=True)
class Drawn:
    """A file of a picture, and the size that the table says."""

    content: bytes
    width: int
    height: int


@dataclass(frozen=True)
class Document:
    """Tokens, with `PICTURE_TOKEN` where a picture stands, and the pictures."""

    tokens: Sequence[int]
    pictures: Sequence[Drawn] = field(default_factory=tuple)


def draw(width: int, height: int, seed: int = 0, kind: str = "PNG", mode: str = "RGB") -> Drawn:
    """A picture of smooth random colors."""
    generator = np.random.default_rng(seed)
    small = generator.integers(0, 256, (4, 4, 3), dtype=np.uint8)
    image = Image.fromarray(small).resize((width, height), Image.Resampling.BICUBIC).convert(mode)
    return Drawn(file_of(image, kind), width, height)


def file_of(image: Image.Image, kind: str = "PNG", **options: Any) -> bytes:
    """The file of a picture."""
    file = BytesIO()
    image.save(file, kind, **options)
    return file.getvalue()


def documents(n: int, seed: int = 0) -> list[Document]:
    """Documents of 0 to 3 pictures of drawn sizes between 1 to 9 tokens of text."""
    generator = np.random.default_rng(seed)
    all_documents = []
    for number in range(n):
        tokens: list[int] = []
        pictures = []
        for place in range(int(generator.integers(0, 4))):
            tokens += (100 + generator.integers(0, 50, int(generator.integers(1, 4)))).tolist()
            tokens.append(PICTURE_TOKEN)
            width, height = (int(side) for side in generator.integers(3, 40, 2))
            pictures.append(draw(width, height, seed=1000 * number + place))
        tokens += [*(200 + generator.integers(0, 50, int(generator.integers(0, 5)))).tolist(), 0]
        all_documents.append(Document(tokens, pictures))
    return all_documents


def write_pictures(
    settings: Settings, rows_of_documents: Sequence[Document], table: str = PICTURES, **options: Any
) -> None:
    """Replace the rows of a packed table of documents, one a row."""
    rows = [
        {
            "ordinal": ordinal,
            "tokens": np.array(document.tokens, dtype="<u2").tobytes(),
            "n_tokens": len(document.tokens),
            "segments": [{"doc_id": f"doc-{ordinal}", "doc_offset": 0, "length": len(document.tokens)}],
            "append": 0,
            "shard": 0,
            "chunk": 0,
            "images": _images(document),
        }
        for ordinal, document in enumerate(rows_of_documents)
    ]
    schema = with_images(PACKED, PACKED_IMAGES).columns
    properties = {IMAGE_TOKEN: str(PICTURE_TOKEN), SEQUENCE_LENGTH: str(LENGTH)}
    write_table(settings, table, pa.Table.from_pylist(rows, schema=schema), properties=properties, **options)


def _images(document: Document) -> list[dict[str, Any]]:
    places = [place for place, token in enumerate(document.tokens) if token == PICTURE_TOKEN]
    places += [0] * (len(document.pictures) - len(places))  # of a damaged table
    return [
        {
            "position": place,
            "name": f"{number}.png",
            "media_type": "image/png",
            "width": picture.width,
            "height": picture.height,
            "patches": -(-picture.width // 14) * -(-picture.height // 14),
            "content_hash": "",
            "content": picture.content,
        }
        for number, (place, picture) in enumerate(zip(places, document.pictures, strict=False))
    ]
