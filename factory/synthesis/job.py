"""A job: a kind of worker, the table and the number of its items, and the id of its queue.

The id is a hash of all that decides the records: the content of the source, the kind with its version and
options, the seed, the time limit of an item, and the cut into slices. The size, the priority and the snapshot
are no part of it. Equal content on two lakes has the same queue, and a job that grows keeps the slices that
it has.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from factory.errors import ConfigurationError, DamagedFile, first_line

SLICE_ITEMS = 64
MOST_SLICE_ITEMS = 100_000  # whose outcomes are in memory together
ITEM_SECONDS = 600
_FORMAT = 1  # of queues; a change of the order of items or of results is a new one


class InvalidJob(ConfigurationError):
    """A job cannot be run as it is declared."""


@dataclass(frozen=True, order=True)
class Slice:
    """The items from `begin` to before `end`, as positions in the order of the source."""

    begin: int
    end: int

    @property
    def name(self) -> str:
        """The name in the queue; names sort as positions do."""
        return f"{self.begin:012}-{self.end:012}"

    @classmethod
    def parse(cls, name: str) -> Slice:
        """Return the slice with a name; raises ValueError."""
        begin, _, end = name.partition("-")
        return cls(int(begin), int(end))

    def __len__(self) -> int:
        return self.end - self.begin


@dataclass(frozen=True)
class Job:
    """One request for records.

    `source` names a table with the columns of raw documents, and `content` is the fingerprint of its
    `snapshot`. `kind` is a registered name or `file.py:Name`; `options` are values of JSON. Raises InvalidJob
    for values that cannot be worked on.
    """

    dataset: str
    source: str
    snapshot: int
    content: str
    kind: str
    version: str
    size: int
    options: Mapping[str, object] = field(default_factory=dict)
    seed: int = 0
    priority: int = 0
    slice_items: int = SLICE_ITEMS
    item_seconds: int = ITEM_SECONDS
    """The time at one item after which a worker is ended, as if it had died there."""

    def __post_init__(self) -> None:
        if self.size < 1:
            raise InvalidJob(
                f"Dataset `{self.dataset}` asks for {self.size:,} items. Ask for at least one, by `size`."
            )
        if not 1 <= self.slice_items <= MOST_SLICE_ITEMS:
            raise InvalidJob(
                f"Dataset `{self.dataset}` has slices of {self.slice_items:,} items. "
                f"Use 1 to {MOST_SLICE_ITEMS:,}."
            )
        if self.item_seconds < 1:
            raise InvalidJob(
                f"Dataset `{self.dataset}` gives an item {self.item_seconds:,} s. Give it one at least."
            )
        try:
            _canonical(self.options)
        except (TypeError, ValueError) as error:
            raise InvalidJob(
                f"The options of dataset `{self.dataset}` cannot be written as JSON ({first_line(error)}). "
                "Use texts, numbers, true, false, null, lists and maps of these."
            ) from error

    @property
    def identity(self) -> Mapping[str, object]:
        """All that decides the records, and nothing else."""
        return {
            "format": _FORMAT,
            "content": self.content,
            "kind": self.kind,
            "version": self.version,
            "options": dict(self.options),
            "seed": self.seed,
            "slice_items": self.slice_items,
            "item_seconds": self.item_seconds,
        }

    @property
    def id(self) -> str:
        """The name of the queue: 32 hexadecimal digits."""
        return hashlib.blake2b(_canonical(self.identity).encode(), digest_size=16).hexdigest()

    def slices(self) -> list[Slice]:
        """Return the slices of the items that are asked for, in order; the last may be shorter."""
        step = self.slice_items
        return [Slice(begin, min(begin + step, self.size)) for begin in range(0, self.size, step)]

    def identity_json(self) -> bytes:
        """Return the part that never changes, with the names of the dataset and of the source."""
        return _canonical({"dataset": self.dataset, "source": self.source, **self.identity}).encode()

    def request_json(self) -> bytes:
        """Return the part that a later run may change."""
        request = {"size": self.size, "priority": self.priority, "snapshot": self.snapshot}
        return _canonical(request).encode()

    def with_size(self, size: int) -> Job:
        """Return the same job for another number of items."""
        return replace(self, size=size)

    @classmethod
    def parse(cls, identity: bytes, request: bytes) -> Job:
        """Return the job of both parts; raises DamagedFile for parts that no queue has stored."""
        try:
            parts = json.loads(identity) | json.loads(request)
            if parts.pop("format") != _FORMAT:
                raise ValueError("it is of another version of the Model Factory")
            return cls(**parts)
        except (ValueError, TypeError, LookupError, AttributeError) as error:
            raise DamagedFile(
                f"A job in the warehouse cannot be read ({first_line(error)}). Materialize its dataset again."
            ) from error


def _canonical(part: object) -> str:
    return json.dumps(part, sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False)
