"""JSON that carries a checksum of itself, as its last field or element."""

from __future__ import annotations

import hashlib

_FIELD, _ELEMENT = b',"sum":"', b',"sum '


def with_checksum(content: bytes) -> bytes:
    """An object or a list of JSON with the checksum of its bytes at its end."""
    end = content[-1:]
    mark = _FIELD if end == b"}" else _ELEMENT
    return content[:-1] + mark + _sum(content) + b'"' + end


def verified_content(content: bytes, *, optional: bool = False) -> bytes:
    """What `with_checksum` was given; raises ValueError where it is not as it was.

    An `optional` checksum may be missing, as in what was written before there was one.
    """
    mark = _FIELD if content[-1:] == b"}" else _ELEMENT
    body, found, said = content.rpartition(mark)
    if not found:
        if optional:
            return content
        raise ValueError("it has no checksum")
    original = body + content[-1:]
    if said[:-2] != _sum(original):
        raise ValueError("its checksum is of other bytes")
    return original


def _sum(content: bytes) -> bytes:
    return hashlib.blake2b(content, digest_size=16).hexdigest().encode()
