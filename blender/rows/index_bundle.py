"""What opening a blend of many sources reads, in one file beside the page indexes.

    checksum   of all that follows
    head       how long the list is
    list       JSON: name and bytes of each file
    contents   one after another, aligned to 64 bytes as indexes want it

A source is opened from four small files (`index_files`): of three hundred sources to open so many takes as
long as all that is done with them. They never change but for ordinals that were checked meanwhile, so copies
are as good, and what is not here, or no longer, is read where it lies.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping

_SUM, _HEAD, _ALIGNED = 32, 8, 64


def pack_bundle(files: Mapping[str, bytes]) -> bytes:
    """Files by name as the content of one."""
    listed = json.dumps([[name, len(content)] for name, content in files.items()]).encode()
    parts = [len(listed).to_bytes(_HEAD, "little"), listed]
    end = _SUM + _HEAD + len(listed)
    for content in files.values():
        parts += [bytes(-end % _ALIGNED), content]
        end += -end % _ALIGNED + len(content)
    joined = b"".join(parts)
    return hashlib.blake2b(joined, digest_size=_SUM).digest() + joined


def unpack_bundle(content: bytes) -> dict[str, memoryview]:
    """The files that `pack_bundle` was given, where they lie; none of what is not whole."""
    whole = memoryview(content)
    if (
        len(content) < _SUM + _HEAD
        or hashlib.blake2b(whole[_SUM:], digest_size=_SUM).digest() != whole[:_SUM]
    ):
        return {}
    end = _SUM + _HEAD + int.from_bytes(whole[_SUM : _SUM + _HEAD], "little")
    found = {}
    for name, n_bytes in json.loads(bytes(whole[_SUM + _HEAD : end])):
        begin = end + -end % _ALIGNED
        end = begin + n_bytes
        found[name] = whole[begin:end]
    return found
