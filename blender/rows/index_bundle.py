"""One file with copies of all small index files that opening a blend of many sources reads.

    checksum   of all that follows
    head       length of the list
    list       JSON: name and bytes of each file
    contents   one after another, aligned to 64 bytes as indexes require

A source is opened from four small files (`index_files`), and opening the files of three hundred sources takes
as long as everything else. These files never change, except that ordinals get checked, so copies are as good.
A file without a copy is read from its own place.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping

_SUM, _HEAD, _ALIGNED = 32, 8, 64


def pack_bundle(files: Mapping[str, bytes]) -> bytes:
    """The content of a bundle of files by name."""
    listed = json.dumps([[name, len(content)] for name, content in files.items()]).encode()
    parts = [len(listed).to_bytes(_HEAD, "little"), listed]
    end = _SUM + _HEAD + len(listed)
    for content in files.values():
        parts += [bytes(-end % _ALIGNED), content]
        end += -end % _ALIGNED + len(content)
    joined = b"".join(parts)
    return hashlib.blake2b(joined, digest_size=_SUM).digest() + joined


def unpack_bundle(content: bytes) -> dict[str, memoryview]:
    """The files of a bundle, as views of `content`; no files if the bundle is damaged."""
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
