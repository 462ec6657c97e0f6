"""One file with copies of all small index files that opening a blend of many sources reads.

    checksum   of all that follows
    head       length of the list
    list       JSON: name and bytes of each file
    contents   one after another, aligned to 64 bytes as indexes require

A source is opened from four small files (`index_files`), and opening the files of three hundred sources takes
as long as everything else. These files never change, except that ordinals get checked, so copies are as good.
A file without a copy is read from its own path.
"""

from __future__ import annotations

import json
from collections.abc import Mapping

from blender.rows.summed import SUM_BYTES, summed, verified

_HEAD, _ALIGNED = 8, 64


def pack_bundle(files: Mapping[str, bytes]) -> bytes:
    """The content of a bundle of files by name."""
    listed = json.dumps([[name, len(content)] for name, content in files.items()]).encode()
    parts = [len(listed).to_bytes(_HEAD, "little"), listed]
    end = SUM_BYTES + _HEAD + len(listed)
    for content in files.values():
        parts += [bytes(-end % _ALIGNED), content]
        end += -end % _ALIGNED + len(content)
    return summed(b"".join(parts))


def unpack_bundle(content: bytes) -> dict[str, memoryview]:
    """The files of a bundle, as views of `content`; no files if the bundle is damaged."""
    if verified(content) is None:
        return {}
    whole, begin = memoryview(content), SUM_BYTES + _HEAD
    end = begin + int.from_bytes(whole[SUM_BYTES:begin], "little")
    found = {}
    for name, n_bytes in json.loads(bytes(whole[begin:end])):
        begin = end + -end % _ALIGNED
        end = begin + n_bytes
        found[name] = whole[begin:end]
    return found
