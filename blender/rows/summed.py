"""Bytes behind a checksum of themselves: `BLAKE2b-256 | content`."""

from __future__ import annotations

import hashlib

SUM_BYTES = 32


def summed(content: bytes) -> bytes:
    """The content behind its checksum."""
    return hashlib.blake2b(content, digest_size=SUM_BYTES).digest() + content


def verified(stored: bytes | memoryview | None) -> memoryview | None:
    """The content without its checksum; None if there is none, or the two disagree."""
    if stored is None:
        return None
    content = memoryview(stored)[SUM_BYTES:]
    return content if hashlib.blake2b(content, digest_size=SUM_BYTES).digest() == stored[:SUM_BYTES] else None
