"""The header of a `dagster.yaml`, which tells whether somebody has edited the file."""

from __future__ import annotations

import hashlib
import re

_HEADER = "# Written by the Model Factory ({digest}). Edit it freely: an edited file stays as it is.\n"
_WRITTEN = re.compile(r"# Written by the Model Factory \((\w+)\)\..*\n")


def with_header(body: str) -> str:
    """Return the text of a file with this body."""
    return _HEADER.format(digest=_digest(body)) + body


def unedited_body(text: str) -> str | None:
    """Return the body of a file as it was written; None for a file that was edited since."""
    header = _WRITTEN.match(text)
    if header is None or header[1] != _digest(text[header.end() :]):
        return None
    return text[header.end() :]


def _digest(body: str) -> str:
    return hashlib.blake2b(body.encode(), digest_size=6).hexdigest()
