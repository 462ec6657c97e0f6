"""Paths that cannot be read where they are: addresses of unknown schemes, variables, and other patterns."""

from __future__ import annotations

import os
import re

from spark_udfs.ingest.matching import MatchingFiles
from spark_udfs.ingest.place import Place

_ADDRESS = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*):/{1,2}(.*)")
_WILDCARD = re.compile(r"\[[^]]+\]|\{[^{}]*,[^{}]*\}")
_SCHEMES = {"s3a": "s3", "s3n": "s3", "gcs": "gs", "azure": "az"}  # as inputs write them


def why_unsupported(path: str) -> str | None:
    """Return why a path that does not exist cannot be read, and what to do; None for a plain path."""
    if address := _ADDRESS.fullmatch(path):
        return _address(path, address[1].lower(), address[2].lstrip("/"))
    if "$" in path:
        return f"Variables in `paths` are not supported yet: `{path}`. Write the path itself."
    if _WILDCARD.search(path):
        return f"Patterns in `paths` have `*`, `?` and `**` alone: `{path}`. Write a list of paths."
    return None


def _address(path: str, scheme: str, rest: str) -> str:
    if scheme == "file":
        return f"`{path}` is an address. Write the path, `/{rest}`."
    if scheme in _SCHEMES:
        return f"`{path}` has a scheme of Hadoop. Write `{_SCHEMES[scheme]}://{rest}`."
    return f"Addresses of `{scheme}` are not supported yet: `{path}`. Copy or mount it, and name that folder."


def why_missing(name: str, place: Place) -> str | None:
    """Return the fault of a place that does not exist, `name` as the user wrote it; None for a plain path."""
    if isinstance(place, MatchingFiles):
        if place.folder.kind() is None:
            return f"`{name}` has no folder: `{place.folder.display()}` does not exist. Correct it."
        return f"No file matches `{name}`. Correct the pattern: `*` stays in a name, `**/` is any folders."
    if target := place.link_target():
        return f"`{name}` is a link to `{target}`, which does not exist. Correct or remove it."
    return why_unsupported(name)


def why_unreadable(error: OSError) -> str:
    """Return why the operating system refuses a path, and what to do."""
    path = os.fsdecode(error.filename) if error.filename is not None else "The file"
    cause = error.strerror or "unknown cause"
    return f"`{path}` cannot be read ({cause}). Let this user read it, or leave it out."
