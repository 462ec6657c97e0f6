"""The configuration of an asset as readable values, and the difference of two configurations.

    values({"threshold": 0.8, "limits": {"word_count": [50, None]}})
        # {"threshold": "0.8", "limits/word_count": "[50,null]"}
    difference({"limits/word_count": "[50,null]"}, {"limits/word_count": "[100,null]"})
        # "word_count 50 -> 100"
    difference(values({"rules": [{"name": "c4"}]}), values({"rules": [{"name": "c4"}, {"name": "code"}]}))
        # "+code"

The hash of the configuration decides whether a table is stale. These values only say what changed, so they
are bounded: a long value is a hash, and so is each field of a configuration that is large even compressed.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from pydantic import BaseModel

from factory.lake.lineage import compact_text

Config = BaseModel | Mapping[str, Any] | None

_LONGEST_VALUE = 200  # characters; a longer one is a hash
_MOST_BYTES = 4_096  # of all values, packed as in the summary of a snapshot; 80 rules have 2,300
_DIGEST = "#"
_ENTRY = "="  # before the name of an entry of a list
_SHOWN = 4  # differences that a phrase names


def plain(config: Config) -> dict[str, Any]:
    """Return the configuration as values of JSON."""
    if config is None:
        return {}
    return config.model_dump(mode="json") if isinstance(config, BaseModel) else dict(config)


def values(config: Config) -> dict[str, str]:
    """Return each value as JSON, by its path; an entry of a list that has a `name` is a part of its path."""
    fields = plain(config)
    flat = dict(_flat(fields, ""))
    if len(compact_text(flat)) > _MOST_BYTES:
        flat = {name: _digest(json.dumps(field, sort_keys=True)) for name, field in fields.items()}
    return flat


def difference(before: Mapping[str, str], now: Mapping[str, str]) -> str:
    """Return what changed, in one phrase; empty if the values do not tell."""
    phrases = list(dict.fromkeys(_differences(before, now)))
    rest = len(phrases) - _SHOWN
    return ", ".join([*phrases[:_SHOWN], *([f"{rest} more"] if rest > 0 else [])])


def _flat(node: Any, path: str) -> Iterator[tuple[str, str]]:
    below = f"{path}/" if path else ""
    if isinstance(node, Mapping) and node:
        for name, part in node.items():
            yield from _flat(part, f"{below}{name}")
    elif _is_list_of_entries(node):
        yield path, _json([part["name"] for part in node])  # whole: it tells new entries from changed ones
        for part in node:
            rest = {name: field for name, field in part.items() if name != "name"}
            yield from _flat(rest, f"{below}{_ENTRY}{part['name']}")
    else:
        yield path, _text(node)


def _is_list_of_entries(node: Any) -> bool:
    if not isinstance(node, Sequence) or isinstance(node, str) or not node:
        return False
    return all(isinstance(part, Mapping) and "name" in part for part in node)


def _json(leaf: Any) -> str:
    return json.dumps(leaf, sort_keys=True, separators=(",", ":"), ensure_ascii=False)


def _text(leaf: Any) -> str:
    text = _json(leaf)
    return text if len(text) <= _LONGEST_VALUE else _digest(text)


def _digest(text: str) -> str:
    return _DIGEST + hashlib.blake2b(text.encode(), digest_size=6).hexdigest()


def _differences(before: Mapping[str, str], now: Mapping[str, str]) -> Iterator[str]:
    """Yield a phrase for each path that differs; parts of an entry that came or went are one phrase."""
    whole: list[str] = []
    for path in sorted(before.keys() | now.keys()):
        if before.get(path) == now.get(path) or path.startswith(tuple(whole)):
            continue
        name = _name(path)
        if _has_parts(f"{path}/", before, now) and _is_digest(before.get(path), now.get(path)):
            whole.append(f"{path}/")  # one of them was too long to be recorded part by part
            yield f"{name} changed"
            continue
        if path not in now or path not in before:
            if _has_parts(f"{path}/", before, now):  # it was empty, or is: its parts tell
                continue
            yield f"{'-' if path in before else '+'}{name}"
            continue
        old, new = _parsed(before[path]), _parsed(now[path])
        new_words, old_words = _entries(new, old), _entries(old, new)
        with_parts = [
            entry for entry in (*new_words, *old_words) if _has_parts(f"{path}/{_ENTRY}{entry}/", before, now)
        ]
        whole += [f"{path}/{_ENTRY}{entry}/" for entry in with_parts]
        if with_parts:
            yield from (f"+{entry}" for entry in new_words)
            yield from (f"-{entry}" for entry in old_words)
        elif new_words or old_words:
            entries = (*(f"+{entry}" for entry in new_words), *(f"-{entry}" for entry in old_words))
            yield f"{name} {' '.join(entries)}"
        else:
            yield _changed(name, old, new)


def _changed(name: str, old: Any, new: Any) -> str:
    if _DIGEST in (str(old)[:1], str(new)[:1]):
        return f"{name} changed"
    if isinstance(old, list) and isinstance(new, list):
        if sorted(map(str, old)) == sorted(map(str, new)):
            return f"{name} in another order"
        differing = [pair for pair in zip(old, new, strict=False) if pair[0] != pair[1]]
        if len(old) == len(new) and len(differing) == 1:
            [(old, new)] = differing
    return f"{name} {_shown(old)} -> {_shown(new)}"


def _entries(words: Any, others: Any) -> list[str]:
    """The words of one list that another lacks; none unless both are lists of words."""
    lists = (words, others)
    if not all(
        isinstance(entries, list) and all(isinstance(word, str) for word in entries) for entries in lists
    ):
        return []
    return [word for word in words if word not in others]


def _has_parts(prefix: str, *configurations: Mapping[str, str]) -> bool:
    return any(path.startswith(prefix) for config in configurations for path in config)


def _is_digest(*texts: str | None) -> bool:
    return any(text is not None and text.startswith(_DIGEST) for text in texts)


def _name(path: str) -> str:
    """The name that people wrote: of an entry's `limit`, the entry's."""
    *above, last = path.split("/")
    if not above or not above[-1].startswith(_ENTRY):
        return last
    entry = above[-1].removeprefix(_ENTRY)
    return entry if last == "limit" else f"{entry} {last}"


def _parsed(text: str) -> Any:
    return text if text.startswith(_DIGEST) else json.loads(text)


def _shown(leaf: Any) -> str:
    if leaf is None:
        return "none"
    return leaf if isinstance(leaf, str) and leaf else json.dumps(leaf, ensure_ascii=False)
