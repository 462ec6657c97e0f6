"""The outcomes of one item: what its kind yields, checked against the kind's schema and within bounds.

A record of another schema, or two records of one key, are mistakes of the kind and end the run. An
exception or too much output at one document refuses that document and no other.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import pyarrow as pa

from factory.errors import ConfigurationError
from factory.synthesis.kind import ItemOutcome, NewRecord, Refusal, WorkerKind, WorkItem

MAX_RECORD_BYTES = 16 << 20  # of a text
MAX_ITEM_BYTES = 64 << 20  # of all outcomes of an item
MAX_OUTCOMES = 100_000  # of an item
KILLED_AFTER = 3  # workers that died at an item, and are on record
_SAMPLE_BYTES = 1024
_DETAIL_CHARACTERS = 500

NO_TEXT, RAISED, KILLED_WORKER = "no_text", "raised", "killed_worker"
TOO_LARGE, TOO_MUCH, NOT_UNICODE = "too_large", "too_much", "not_unicode"
REPOSITORY_TOO_LARGE = "repository_too_large"


class InvalidRecord(ConfigurationError):
    """A kind yields what its schema does not have; the message names kind, item and column."""


class RepositoryTooLarge(Exception):
    """The repository of an item has more text than `WorkItem.neighbors` reads."""


def outcomes_of(name: str, kind: WorkerKind, document: WorkItem) -> list[ItemOutcome]:
    """Return the outcomes of `item` by `kind`, called `name`; refusals where it fails or exceeds a bound.

    Raises InvalidRecord. MemoryError is passed on: it says more about the machine than about the item.
    """
    outcomes: list[ItemOutcome] = []
    n_bytes = 0
    keys: set[str] = set()
    try:
        for outcome in kind(document):
            valid = _checked(name, kind, document, outcome)
            if isinstance(valid, NewRecord):
                if valid.key in keys:
                    raise InvalidRecord(
                        f"Kind `{name}` yields two records with key `{valid.key}` for item {document.key}. "
                        "Give each record of an item a key of its own."
                    )
                keys.add(valid.key)
                n_bytes += len(valid.text)
            else:
                n_bytes += len(valid.detail) + len(valid.sample)
            outcomes.append(valid)
            if n_bytes > MAX_ITEM_BYTES or len(outcomes) > MAX_OUTCOMES:
                return [_too_much(document)]
    except (InvalidRecord, MemoryError):
        raise
    except RepositoryTooLarge as error:
        return [_refused(document, REPOSITORY_TOO_LARGE, str(error))]
    except (Exception, SystemExit) as error:
        return [_refused(document, RAISED, _line_of(error))]
    return outcomes


def refusal_of_killer(document: WorkItem, item_seconds: int) -> Refusal:
    """Return the refusal of an item at which `KILLED_AFTER` workers died, or were ended at its time limit."""
    detail = f"{KILLED_AFTER} workers died while they worked on it, or exceeded its {item_seconds:,} s."
    return _refused(document, KILLED_WORKER, detail)


def refusal_of_textless(document: WorkItem) -> Refusal:
    """Return the refusal of a document without a text, such as a picture."""
    return Refusal("", NO_TEXT, f"Document {document.key} has no text.")


def _checked(name: str, kind: WorkerKind, document: WorkItem, outcome: object) -> ItemOutcome:
    """Return an outcome as it is stored; raises InvalidRecord."""
    if isinstance(outcome, Refusal):
        return Refusal(
            _unicode(outcome.key),
            _unicode(outcome.reason),
            _unicode(outcome.detail[:_DETAIL_CHARACTERS]),
            outcome.sample[:_SAMPLE_BYTES],
        )
    if not isinstance(outcome, NewRecord):
        raise InvalidRecord(
            f"Kind `{name}` yields {type(outcome).__name__} for item {document.key}. "
            "Yield NewRecord or Refusal."
        )
    for problem in _differences(kind.schema, outcome):
        raise InvalidRecord(f"Kind `{name}` yields a record for item {document.key} {problem}")
    texts = [
        outcome.key,
        outcome.text,
        *(cell for cell in outcome.values.values() if isinstance(cell, str)),
    ]
    if not all(map(_is_unicode, texts)):
        return Refusal(_unicode(outcome.key), NOT_UNICODE, "The record has half of a surrogate pair.")
    n_bytes = sum(len(text.encode()) for text in texts)
    if n_bytes > MAX_RECORD_BYTES:
        detail = f"The record has {n_bytes:,} bytes; a record may have {MAX_RECORD_BYTES:,}."
        return Refusal(outcome.key[:_SAMPLE_BYTES], TOO_LARGE, detail, outcome.text.encode()[:_SAMPLE_BYTES])
    return outcome


def _differences(schema: pa.Schema, record: NewRecord) -> Iterator[str]:
    """Yield each way in which a record differs from the schema of its kind, as the end of a sentence."""
    for column in ("key", "text"):
        cell = getattr(record, column)
        if not isinstance(cell, str):
            yield f"whose column `{column}` is {type(cell).__name__}. Make it a text."
    for column in record.values:
        if column not in schema.names:
            yield f"with column `{column}`, which its schema lacks. Add it to the schema, or leave it out."
    for column in schema:
        cell = record.values.get(column.name)
        if cell is None and not column.nullable:
            yield f"without column `{column.name}`, which its schema requires. Give it a value."
        elif cell is not None and not _fits(cell, column.type):
            yield (
                f"whose column `{column.name}` is {type(cell).__name__}, and {column.type} by the schema. "
                "Correct one of them."
            )


def _fits(cell: object, kind: pa.DataType) -> bool:
    if pa.types.is_boolean(kind):
        return isinstance(cell, bool)
    if pa.types.is_integer(kind):
        return isinstance(cell, int) and not isinstance(cell, bool)
    if pa.types.is_floating(kind):
        return isinstance(cell, float) and math.isfinite(cell)
    return isinstance(cell, str)


def _too_much(document: WorkItem) -> Refusal:
    detail = f"It yields more than {MAX_OUTCOMES:,} outcomes, or more than {MAX_ITEM_BYTES:,} bytes."
    return _refused(document, TOO_MUCH, detail)


def _refused(document: WorkItem, reason: str, detail: str) -> Refusal:
    """Return a refusal of a whole item, which has the empty key."""
    return Refusal("", reason, _unicode(detail[:_DETAIL_CHARACTERS]), document.text.encode()[:_SAMPLE_BYTES])


def _line_of(error: BaseException) -> str:
    """Return the class and the first line of an exception."""
    line = next(iter(str(error).strip().splitlines()), "")
    return f"{type(error).__name__}: {line}" if line else type(error).__name__


def _is_unicode(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _unicode(text: str) -> str:
    return text.encode(errors="replace").decode()
