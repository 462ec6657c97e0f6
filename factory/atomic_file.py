"""A file whose content changes at once."""

from __future__ import annotations

import os
from pathlib import Path


def write_atomically(path: Path, text: str) -> None:
    """Write the file so that nobody ever reads a part of it."""
    beside = path.with_name(f".{path.name}.{os.getpid()}")
    beside.write_text(f"{text}\n")
    beside.replace(path)
