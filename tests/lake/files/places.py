"""Locations of texts in registered files."""

from __future__ import annotations

import os
from pathlib import Path

from factory.lake.files.location import location
from factory.lake.files.registered import TextLocation


def place(path: Path, row: int, column: str = "body") -> dict[str, object]:
    """The location of a row's text, as `TEXT_AT` holds it."""
    facts = path.stat()
    return TextLocation(location(os.fsencode(path)), column, row, facts.st_size, facts.st_mtime_ns)._asdict()
