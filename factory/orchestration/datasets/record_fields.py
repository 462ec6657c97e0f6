"""Which fields of records hold the text and the key, by their names and their first values.

The text is a field of a usual name, else several fields of usual names together, else the longest field of
words. Identifiers, hashes and addresses are no texts, even where no other field holds text.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from typing import Any

from factory.orchestration.datasets.formats import MessageFields
from spark_udfs.ingest.records import FirstRecords

TEXT_FIELDS = ("text", "content", "body", "document", "raw_content", "markdown", "article", "code")
_TOGETHER = (  # fields that make a text together, in the order of the text
    ("instruction", "input", "output"),
    ("instruction", "context", "response"),
    ("instruction", "output"),
    ("instruction", "response"),
    ("prompt", "completion"),
    ("prompt", "response"),
    ("question", "context", "answer"),
    ("question", "answer"),
    ("question", "response"),
    ("query", "response"),
    ("query", "answer"),
    ("problem", "solution"),
)
_KEY_WORDS = (
    *("id", "uid", "uuid", "guid", "key", "hash", "hexsha", "sha", "sha1", "sha256", "md5", "digest"),
    *("doi", "pmid", "pmcid", "isbn", "arxiv", "url", "uri", "link", "permalink", "path", "filename"),
    *("identifier", "docid", "docno", "number", "no", "nr"),
)
_MOST_KEY_LETTERS = 200  # a longer value is a text; addresses of pages are shorter
_MANY_RECORDS = 100  # in which values that all differ hardly do so by chance
_BLANK_OR_WIDE = re.compile(r"\S\s+\S|[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u9fff]")
_MESSAGES = (
    MessageFields(),
    MessageFields(role="from", content="value", roles={"human": "user", "gpt": "assistant"}),
)
_WORDS = re.compile(r"[A-Z]?[a-z]+[0-9]*|[A-Z]+(?![a-z])[0-9]*")


def text_field(first: FirstRecords) -> str | None:
    """Return the field that seems to hold the text: one of a usual name, else the longest one of words."""
    if (usual := usual_text_field(first)) is not None:
        return usual
    wordy = [name for name in first.texts if _has_words(first, name)]
    return max(wordy, key=lambda name: first.texts[name], default=None) or _unknown_text(first)


def usual_text_field(first: FirstRecords) -> str | None:
    """Return the first field of a usual name of texts, which is not part of an object; None without one."""
    return next((name for name in TEXT_FIELDS if name in first.texts), None)


def template_fields(first: FirstRecords) -> tuple[str, ...] | None:
    """Return the fields that form a text together, such as a question and its answer."""
    names = {name.lower(): name for name in first.texts}
    usual = (together for together in _TOGETHER if names.keys() >= set(together))
    together = next(usual, None) if usual_text_field(first) is None else None
    return together and tuple(names[name] for name in together)


def _has_words(first: FirstRecords, name: str) -> bool:
    """Whether values of a field have blanks between words, or letters of a script that needs none.

    A field with unreadable values counts as a text, unless it has no letters.
    """
    cells = first.values.get(name, first.beginnings.get(name))
    if cells is None:
        return first.texts[name] > 0
    texts = [cell for cell in cells if isinstance(cell, str)]
    return sum(_BLANK_OR_WIDE.search(text) is not None for text in texts) * 2 > len(texts)


def _unknown_text(first: FirstRecords) -> str | None:
    """Return the field of single words that has a usual name below an object, or none of a key."""
    names = sorted(first.texts, key=lambda name: -first.texts[name])
    usual = (name for name in names if name.rpartition(".")[2] in TEXT_FIELDS)
    return next(usual, None) or next((name for name in names if _rank(name) is None), None)


def messages_field(first: FirstRecords) -> MessageFields | None:
    """Return the field that holds conversations, with its messages' fields; None if there is a usual text."""
    if any(name in first.texts for name in TEXT_FIELDS):
        return None
    return next(
        (
            fields.model_copy(update={"field": name})
            for name, parts in first.lists.items()
            for fields in _MESSAGES
            if {fields.role, fields.content} <= parts
        ),
        None,
    )


def key_field(files: Sequence[FirstRecords], others: Iterable[str | None]) -> str | None:
    """Return a field outside `others` with a distinct value in each record, None without one.

    A name such as `uid` or `ID#` counts from the first record on. Any other field counts with many records,
    if its values are words without blanks, or whole numbers without gaps.
    """
    others = set(others)
    names = dict.fromkeys(chain.from_iterable(first.values for first in files))
    candidates = [name for name in names if name not in others and _identifies(list(_values(files, name)))]
    if telling := [(rank, name) for name in candidates if (rank := _rank(name)) is not None]:
        return min(telling, key=lambda candidate: candidate[0])[1]
    return next((name for name in candidates if _is_code(list(_values(files, name)))), None)


def _values(files: Sequence[FirstRecords], name: str) -> Iterator[Any]:
    for first in files:
        yield from first.values.get(name, [None] * first.n_records)


def _identifies(values: Sequence[Any]) -> bool:
    """Whether all values differ, and each may be a key."""
    return bool(values) and all(map(_may_be_key, values)) and len(set(map(str, values))) == len(values)


def _may_be_key(cell: Any) -> bool:
    if isinstance(cell, str):
        return 0 < len(cell) <= _MOST_KEY_LETTERS and "\n" not in cell
    return isinstance(cell, int) and not isinstance(cell, bool)


def _rank(name: str) -> tuple[int, int] | None:
    """Return how much a name tells of a key, less for more: `id` before `user_id`; None for nothing."""
    words = [word.lower() for word in _WORDS.findall(name)]
    places = [_KEY_WORDS.index(word) for word in words if word in _KEY_WORDS]
    return (min(places), len(words)) if places else None


def _is_code(values: Sequence[Any]) -> bool:
    if len(values) < _MANY_RECORDS:
        return False
    if all(isinstance(cell, int) for cell in values):
        return max(values) - min(values) < 2 * len(values)
    return all(isinstance(cell, str) and not re.search(r"\s", cell) for cell in values)
