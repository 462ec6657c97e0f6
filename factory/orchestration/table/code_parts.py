"""Which parts of an asset's code changed, in words.

The code version decides whether a table is stale. The parts only say why, so each takes six bytes of a
snapshot's summary: three of its name's hash and three of its content's. Names are known again from the code
that is there now, so a part that is gone has no name.

    before = text_of({"factory/filters/rules/c4.py": "1f", "kernel decide": "77"})
    difference(before, {"factory/filters/rules/c4.py": "2e", "kernel decide": "77"})
        # "code of factory/filters/rules/c4.py changed"
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Mapping

from factory.counted import conjunction, counted

_HASH_BYTES = 3
_MOST_PARTS = 600  # 4,500 characters; a stage has some 100
_SHOWN = 3


def text_of(parts: Mapping[str, str]) -> str:
    """Return the parts as text, empty if there are too many; each has a name and a hash of its content."""
    if len(parts) > _MOST_PARTS:
        return ""
    return base64.b85encode(b"".join(sorted(_hash(name) + _hash(parts[name]) for name in parts))).decode()


def difference(before: str, now: Mapping[str, str]) -> str:
    """Return what changed since `before`, a result of `text_of`, in one phrase; empty if that is unknown."""
    content = base64.b85decode(before)
    pairs = [content[start : start + 2 * _HASH_BYTES] for start in range(0, len(content), 2 * _HASH_BYTES)]
    contents = {pair[:_HASH_BYTES]: pair[_HASH_BYTES:] for pair in pairs}
    if not contents:
        return ""
    new = [name for name in sorted(now) if _hash(name) not in contents]
    differing = [
        name for name in sorted(now) if contents.get(_hash(name), _hash(now[name])) != _hash(now[name])
    ]
    phrases = [*_phrase(differing, "changed"), *_phrase(new, "is new" if len(new) == 1 else "are new")]
    return f"code of {', '.join(phrases)}" if phrases else ""


def _phrase(names: list[str], how: str) -> list[str]:
    rest = len(names) - _SHOWN
    words = [*names[:_SHOWN], *([counted(rest, "other")] if rest > 0 else [])]
    return [f"{conjunction(words)} {how}"] if names else []


def _hash(text: str) -> bytes:
    return hashlib.blake2b(text.encode(), digest_size=_HASH_BYTES).digest()
