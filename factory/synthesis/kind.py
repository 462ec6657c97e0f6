"""A kind of worker: a pure function from an item, a document of the source, to records or refusals.

    class Upper:
        version = "1"
        schema = pa.schema([("n_words", pa.int64())])

        def __init__(self, options: Mapping[str, object]) -> None: ...

        def __call__(self, item: Item) -> Iterator[Outcome]:
            yield NewRecord("upper", item.text.upper(), {"n_words": len(item.text.split())})

The same item gives the same outcomes in every process, on every machine and at every attempt, so that a
slice that is worked on twice has the same rows. Times, attempts and hosts are no part of them: the queue
measures these itself.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Protocol, TypeAlias

import pyarrow as pa

Value: TypeAlias = str | int | float | bool | None


class Neighbors(Protocol):
    """The files of an item's repository, read when they are asked for."""

    def __call__(self) -> Mapping[str, str]:
        """Return the texts of the repository by path; empty for a document of no repository."""


def _alone() -> Mapping[str, str]:
    return {}


@dataclass(frozen=True)
class WorkItem:
    """A document of the source, as `raw` has it, and the seed of its randomness.

    `seed` has 63 bits and follows from the seed of the job and `doc_id`.
    """

    doc_id: str
    source: str
    key: str
    text: str
    language: str | None = None
    repository: str | None = None
    path: str | None = None
    metadata: Mapping[str, str] = field(default_factory=dict)
    seed: int = 0
    neighbors: Neighbors = _alone


@dataclass(frozen=True)
class NewRecord:
    """A document to be: `key` is unique among the records of its item; `values` has the kind's columns."""

    key: str
    text: str
    values: Mapping[str, Value] = field(default_factory=dict)


@dataclass(frozen=True)
class Refusal:
    """A result that is no document: a word to count by, a sentence for a person, and a sample."""

    key: str
    reason: str
    detail: str
    sample: bytes = b""


ItemOutcome: TypeAlias = NewRecord | Refusal


class WorkerKind(Protocol):
    """The work of a worker. It is made once in a process, from the options of its job.

    `version` is a part of the job: change it whenever the outcomes change. `schema` has the columns of
    `NewRecord.values`; they become facts in the `metadata` of the raw document.
    """

    version: str
    schema: pa.Schema

    def __call__(self, document: WorkItem) -> Iterator[ItemOutcome]:
        """Yield the outcomes of an item, in one order."""
