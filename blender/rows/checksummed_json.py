"""JSON with a checksum of itself as its last field or element."""

from __future__ import annotations

import hashlib

_FIELD, _ELEMENT = b',"sum":"', b',"sum '


def with_checksum(content: bytes) -> bytes:
    """A JSON object or list with the checksum of its bytes appended."""
    end = content[-1:]
    mark = _FIELD if end == b"}" else _ELEMENT
    return content[:-1] + mark + _sum(content) + b'"' + end


def verified_content(content: bytes, *, optional: bool = False) -> bytes:
    """The JSON without its checksum; raises ValueError if the two disagree.

    An `optional` checksum may be missing: files written before checksums existed have none.
    """
    mark = _FIELD if content[-1:] == b"}" else _ELEMENT
    body, found, checksum = content.rpartition(mark)
    if not found:
        if optional:
            return content
        raise ValueError("it has no checksum")
    original = body + content[-1:]
    if checksum != _sum(original) + b'"' + content[-1:]:  # a flipped quote behind the sum counts too
        raise ValueError("its checksum does not match")
    return original


def _sum(content: bytes) -> bytes:
    return hashlib.blake2b(content, digest_size=16).hexdigest().encode()
