"""Locations of local files as tables store them: `file://` and the path, without escapes.

Iceberg, Hadoop and PyIceberg take the path of a location literally: a `%` belongs to the name of the file.
"""

from __future__ import annotations

import os

SCHEME = "file://"


def location(path: str | bytes) -> str:
    """Return the location of a local file."""
    return SCHEME + os.fsdecode(path)


def local_path(location: str) -> str | None:
    """Return the operating system's path of a location or of a path, None for a file in a store."""
    if location.startswith("/"):
        return location
    scheme, _, path = location.partition(":")
    return "/" + path.lstrip("/") if scheme == "file" else None
