"""Pictures for a person and for JSON: sizes in place of bytes, and files of them in a folder."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from factory.lake.schemas.images import IMAGES


def picture_phrase(image: Mapping[str, Any]) -> str:
    """Return a picture for a person: `[picture 3: 640 x 480 image/png, 31 KB, name]`.

    `image` has its number among the pictures of its document, and its bytes as `n_bytes`.
    """
    n_bytes = image["n_bytes"]
    size = f"{n_bytes:,} bytes" if n_bytes < 1_000 else f"{round(n_bytes / 1_000):,} KB"
    kind = f"{image['width']} x {image['height']} {image['media_type']}"
    return f"[picture {image['number']}: {kind}, {size}, {image['name']}]"


def without_bytes(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return a row with the number and size of each of its pictures in place of its bytes."""
    if not isinstance(row.get(IMAGES), list):
        return dict(row)
    images = [
        {
            "number": number,
            **{name: cell for name, cell in image.items() if name != "content"},
            "n_bytes": len(image["content"]),
        }
        for number, image in enumerate(row[IMAGES])
    ]
    return {**row, IMAGES: images}


def write_pictures(rows: Sequence[Mapping[str, Any]], folder: Path) -> int:
    """Write the pictures of rows into a folder, as `<id>-<number>.png`, and return their number."""
    folder.mkdir(parents=True, exist_ok=True)
    n_pictures = 0
    for row in rows:
        for number, image in enumerate(row.get(IMAGES) or ()):
            ending = image["media_type"].rpartition("/")[2]
            (folder / f"{next(iter(row.values()))}-{number}.{ending}").write_bytes(image["content"])
            n_pictures += 1
    return n_pictures
