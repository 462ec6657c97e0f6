"""The items of a job: the documents of a table at a snapshot, in an order that only their content decides.

The order is by a hash of the repository and revision, or of `doc_id` where there is none, then by a hash of
`doc_id`. So files, partitions and cores do not decide which documents a job of a given size has; a larger job
begins with the items of a smaller one; and a repository's files are neighbors, in one slice or two.

Enumerating reads four small columns and keeps 28 bytes a document. A text is read with its page when a worker
has its slice.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from factory.errors import ConfigurationError, SourceChanged
from factory.lake.files.damage import planning
from factory.lake.files.scan import rows_of_files
from factory.lake.names import TableName
from factory.lake.schemas.ingest import RAW, TEXT_AT
from factory.lake.tables import Lake
from factory.settings import Settings
from factory.synthesis.job import InvalidJob, Job
from factory.synthesis.kind import WorkItem
from factory.synthesis.outcomes import RepositoryTooLarge
from factory.synthesis.rows import DocumentReader

if TYPE_CHECKING:
    from pyiceberg.table import Table

MAX_REPOSITORY_BYTES = 64 << 20  # of texts that `WorkItem.neighbors` returns
_READ_BYTES = 32 << 20  # of texts in memory together, unless one is larger
_COLUMNS = pa.schema([RAW.columns.field(name) for name in ("doc_id", "repository", "revision", "n_bytes")])

Longs: TypeAlias = npt.NDArray[np.int64]


@dataclass(frozen=True)
class _Order:
    """The documents in order: the group and size of each, and its file and row."""

    groups: npt.NDArray[np.uint64]
    n_bytes: Longs
    files: npt.NDArray[np.int32]
    rows: npt.NDArray[np.int32]


class ItemSource:
    """The documents of a table at a snapshot, as items by position.

    Raises ConfigurationError for a table without the columns of documents, or with deleted rows, and
    DamagedFile with the name of a file that cannot be read.
    """

    def __init__(self, lake: Lake, table: TableName, snapshot: int, seed: int = 0) -> None:
        self._name, self._snapshot, self._seed = table, snapshot, seed
        self._table: Table = lake.table(table)
        missing = [name for name in RAW.columns.names[:4] if name not in self._table.schema().column_names]
        if missing:
            raise ConfigurationError(
                f"Table {table} has no column `{missing[0]}`, so it holds no documents to work on. "
                "Name a dataset, or a table such as raw.web."
            )
        with planning(self._table, self._table.snapshot_by_id(snapshot)):
            scan = self._table.scan(snapshot_id=snapshot)
            self._tasks = sorted(scan.plan_files(), key=lambda task: task.file.file_path)
        if any(task.delete_files for task in self._tasks):
            raise ConfigurationError(
                f"Table {table} has files with deleted rows, which have no positions. Materialize it again."
            )
        has_text_at = TEXT_AT.name in self._table.schema().column_names
        self._reader = DocumentReader(self._table.io.properties, in_place=has_text_at)
        self._repository: tuple[int, Mapping[str, str]] = (-1, {})

    def __len__(self) -> int:
        return sum(task.file.record_count for task in self._tasks)

    @cached_property
    def _order(self) -> _Order:
        parts: list[tuple[npt.NDArray[np.uint64], npt.NDArray[np.uint64], Longs, int]] = []
        for number, task in enumerate(self._tasks):
            for batch in rows_of_files(self._table, [task], _COLUMNS):
                parts.append((*_hashes(batch), batch["n_bytes"].to_numpy(zero_copy_only=False), number))
        if not parts:
            nothing = np.zeros(0, np.int32)
            return _Order(nothing.astype(np.uint64), nothing.astype(np.int64), nothing, nothing)
        groups, hashes, n_bytes = (np.concatenate([part[column] for part in parts]) for column in range(3))
        files = np.concatenate([np.full(len(part[0]), part[3], np.int32) for part in parts])
        # Tasks come one after another, so a row's number in its file is its distance from the file's first.
        first_rows = np.searchsorted(files, np.arange(len(self._tasks)))
        rows = (np.arange(len(files)) - first_rows[files]).astype(np.int32)
        order = np.lexsort((hashes, groups))
        return _Order(groups[order], n_bytes[order], files[order], rows[order])

    def items(self, begin: int, end: int) -> Iterator[tuple[WorkItem, bool]]:
        """Yield the items from position `begin` to before `end`, each with whether it has a text.

        Texts are read a few at a time. The text of a document without one, such as a picture, is empty.
        """
        for first, last in self._stretches(begin, end):
            for position, fields in enumerate(self._documents(first, last), first):
                has_text = fields["text"] is not None
                fields |= {"text": fields["text"] or "", "seed": _seed(self._seed, fields["doc_id"])}
                if fields["repository"] is not None:
                    fields["neighbors"] = partial(self._neighbors, position)
                yield WorkItem(**fields), has_text

    def _stretches(self, begin: int, end: int) -> Iterator[tuple[int, int]]:
        """Yield stretches of positions; the texts of one are in memory together."""
        first, total = begin, 0
        for position in range(begin, end):
            n_bytes = int(self._order.n_bytes[position])
            if total and total + n_bytes > _READ_BYTES:
                yield first, position
                first, total = position, 0
            total += n_bytes
        if first < end:
            yield first, end

    def _documents(self, begin: int, end: int) -> list[dict[str, Any]]:
        order = self._order
        paths = [self._tasks[file].file.file_path for file in order.files[begin:end]]
        return self._reader.read(paths, order.rows[begin:end].astype(np.int64))

    def _neighbors(self, position: int) -> Mapping[str, str]:
        """Return the texts of the repository of an item, by path; keeps the texts of the last repository."""
        group = self._order.groups[position]
        begin = int(np.searchsorted(self._order.groups, group, "left"))
        if self._repository[0] != begin:
            self._repository = (begin, self._texts_by_path(begin, group))
        return self._repository[1]

    def _texts_by_path(self, begin: int, group: np.uint64) -> Mapping[str, str]:
        end = int(np.searchsorted(self._order.groups, group, "right"))
        n_bytes = int(self._order.n_bytes[begin:end].sum())
        if n_bytes > MAX_REPOSITORY_BYTES:
            raise RepositoryTooLarge(
                f"Its repository has {end - begin:,} files of {n_bytes:,} bytes; "
                f"{MAX_REPOSITORY_BYTES:,} are read."
            )
        files: dict[str, str] = {}
        for row in self._documents(begin, end):
            if row["path"] is not None and row["text"] is not None:
                files.setdefault(row["path"], row["text"])
        return files


def open_source(settings: Settings, job: Job) -> ItemSource:
    """Return the items of a job; raises InvalidJob if the source has fewer than the job asks for.

    If the snapshot has expired, the newest one is read if it has the same content; else SourceChanged is
    raised.
    """
    lake, table = Lake(settings), TableName.parse(job.source)
    snapshot = job.snapshot
    if lake.table(table).snapshot_by_id(snapshot) is None:
        publication = lake.published(table)
        if str(publication.lineage.content) != job.content:
            raise SourceChanged(
                f"Table {table} has changed, and snapshot {snapshot} that dataset `{job.dataset}` reads has "
                "expired. Materialize the dataset again."
            )
        snapshot = publication.snapshot_id
    source = ItemSource(lake, table, snapshot, job.seed)
    require_size(job, source)
    return source


def require_size(job: Job, source: ItemSource) -> None:
    """Raise InvalidJob if a job asks for more items than its source has."""
    if job.size > len(source):
        raise InvalidJob(
            f"Dataset `{job.dataset}` asks for {job.size:,} items, and {job.source} has {len(source):,}. "
            f"Ask for at most as many."
        )


def _hashes(batch: pa.RecordBatch) -> tuple[npt.NDArray[np.uint64], npt.NDArray[np.uint64]]:
    """Return the hash of the group and of the id of each document."""
    ids = _hashed(batch["doc_id"].to_pylist())
    groups: dict[tuple[str, str | None], int] = {}
    columns = zip(batch["repository"].to_pylist(), batch["revision"].to_pylist(), ids[:, 1], strict=True)
    hashes = []
    for repository, revision, own in columns:
        if repository is None:
            hashes.append(int(own))
            continue
        key = (repository, revision)
        if key not in groups:
            groups[key] = int(_hashed([f"{repository}\0{revision or ''}"])[0, 1])
        hashes.append(groups[key])
    return np.array(hashes, np.uint64), ids[:, 0]


def _hashed(texts: Sequence[str]) -> npt.NDArray[np.uint64]:
    """Return two independent 64-bit hashes of each text."""
    digests = b"".join(hashlib.blake2b(text.encode(), digest_size=16).digest() for text in texts)
    return np.frombuffer(digests, "<u8").reshape(-1, 2).astype(np.uint64)


def _seed(seed: int, doc_id: str) -> int:
    digest = hashlib.blake2b(f"{seed}\0{doc_id}".encode(), digest_size=8).digest()
    return int.from_bytes(digest, "little") >> 1
