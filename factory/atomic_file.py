"""Write files that no reader ever sees in part."""

from __future__ import annotations

import os
import uuid
from pathlib import Path


def write_atomically(path: Path, content: str | bytes | memoryview) -> None:
    """Write `content` to a temporary file beside `path`, then rename it; threads may write the same path."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}.{uuid.uuid4().hex}")
    try:
        temporary.write_bytes(content.encode() if isinstance(content, str) else content)
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)
