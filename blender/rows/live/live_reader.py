"""Rows of a table that grows. Readers wait for rows that are missing, and rows once read never change.

Appends continue a live table's ordinals. A reader follows the newest snapshot. Before it moves from one to
the next it checks that every existing ordinal is still the same row: each snapshot in between was an append
or a compaction (Iceberg's `append` and `replace`) or, if those have expired, every file of the old snapshot
is a file of the new one. Anything else is an error: an overwrite, a rollback, a lost history, an append that
does not declare tokens of the same tokenizer. The progress is recorded with the blend, so that a Blender that
was stopped knows where to continue.

Under the shuffle `window` only complete windows count as rows, because an incomplete one has no order yet.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol

from blender.call_context import CallContext
from blender.errors import SourceGone
from blender.rows.live.live_progress import LiveProgress, hashes
from blender.rows.snapshot_files import snapshot_files
from blender.rows.snapshot_reader import SnapshotReader
from factory.lake.schemas.packing import SEQUENCE_LENGTH, TOKEN_BYTES, TOKENIZER_ID
from factory.lake.tables import said_of

if TYPE_CHECKING:
    from pyiceberg.table import Table
    from pyiceberg.table.snapshots import Snapshot

POLL_S = 0.5  # between two looks at a table while a reader waits for its rows
_LOOK_S = 30.0  # between other looks: a reader cannot follow a history that expires between two of them
_ADDED = "added-records"


class ProgressRecord(Protocol):
    """The progress of a live source, by any Blender, recorded with the blend."""

    def last(self) -> LiveProgress | None:
        """The newest snapshot that rows were read from."""

    def record(self, progress: LiveProgress) -> None:
        """Record a snapshot before any of its rows is read."""


class LiveReader:
    """Follows a table by its snapshots; safe for many threads.

    `load` returns the current table, `open_at` its rows at a snapshot, and `pinned` is the first snapshot to
    follow. Raises SourceGone if existing rows may have changed.
    """

    now: SnapshotReader
    """The rows at the newest known snapshot; the source has only those below `n_rows`."""
    progress: LiveProgress
    """The rows and files of the table at `now`."""

    def __init__(
        self,
        name: str,
        pinned: int,
        window_rows: int,
        load: Callable[[], Table],
        open_at: Callable[[Table, int], SnapshotReader],
        record: ProgressRecord,
        *,
        tokens: bool = True,
    ) -> None:
        """With `tokens`, appends must have the tokenizer of the existing rows."""
        self.pinned = pinned
        self._name, self._window_rows = name, max(1, window_rows)
        self._load, self._open_at, self._record = load, open_at, record
        self._tokens = tokens
        self._looking = threading.Lock()
        self._looked_at = time.monotonic()
        self.now, self.progress = self._first()

    @property
    def n_rows(self) -> int:
        """Rows of complete windows."""
        return self.now.n_rows // self._window_rows * self._window_rows

    def compacted(self) -> SnapshotReader:
        """The newest rows, for a reader that found the files of an older snapshot removed."""
        self.look()
        return self.now

    def wait(self, rows: int, call: CallContext) -> None:
        """Wait until `rows` rows can be read; raises Stalled at the call's deadline."""
        if time.monotonic() - self._looked_at > _LOOK_S:
            self.look()
        while self.n_rows < rows:
            self.look()
            if self.n_rows < rows:
                call.wait(POLL_S, lambda: self._stalled(rows))

    def look(self) -> None:
        """Accept appended rows; raises SourceGone for any other change."""
        since = time.monotonic()
        with self._looking:
            if self._looked_at >= since:
                return  # another thread looked while this one waited
            table = self._load()
            snapshot = table.current_snapshot()
            if snapshot is None or snapshot.snapshot_id != self.now.snapshot_id:
                self.now, self.progress = self._go_on(table, snapshot, self.progress)
            self._looked_at = time.monotonic()

    def _first(self) -> tuple[SnapshotReader, LiveProgress]:
        table, since = self._load(), self._record.last() or LiveProgress(0, 0, self.pinned)
        snapshot = table.current_snapshot()
        if snapshot is not None and snapshot.snapshot_id == since.snapshot:
            return self._opened(table, snapshot)
        return self._go_on(table, snapshot, since)

    def _go_on(
        self, table: Table, snapshot: Snapshot | None, since: LiveProgress
    ) -> tuple[SnapshotReader, LiveProgress]:
        if snapshot is None:
            raise self._changed(f"no longer has snapshot {since.snapshot} nor any other")
        self._check_descent(table, snapshot, since)
        now, progress = self._opened(table, snapshot)
        self._record.record(progress)
        return now, progress

    def _opened(self, table: Table, snapshot: Snapshot) -> tuple[SnapshotReader, LiveProgress]:
        now = self._open_at(table, snapshot.snapshot_id)
        return now, LiveProgress(
            now.n_rows, snapshot.sequence_number or 0, now.snapshot_id, hashes(now.paths)
        )

    def _check_descent(self, table: Table, snapshot: Snapshot, since: LiveProgress) -> None:
        from pyiceberg.table.snapshots import Operation

        one = snapshot
        while one.snapshot_id != since.snapshot:
            operation = one.summary.operation if one.summary is not None else None
            if operation not in (Operation.APPEND, Operation.REPLACE):
                did = operation.value if operation is not None else "an unknown operation"
                raise self._changed(f"went through `{did}` at snapshot {one.snapshot_id}")
            if operation is Operation.APPEND and self._tokens:
                self._check_tokens(table, one)
            parent = one.parent_snapshot_id
            before = None if parent is None else table.snapshot_by_id(parent)
            if before is None:  # the first snapshot, or an expired parent: engines mark both alike
                return self._check_files(table, snapshot, since)
            one = before
        return None

    def _check_tokens(self, table: Table, one: Snapshot) -> None:
        """Raise SourceGone for an append with another tokenizer than the pinned snapshot's."""
        pinned, summary = table.snapshot_by_id(self.pinned), one.summary
        if pinned is None or summary is None or not int(summary.additional_properties.get(_ADDED, "0")):
            return
        known, added = said_of(table, pinned), summary.additional_properties
        sizes = [name for name in (TOKEN_BYTES, SEQUENCE_LENGTH) if name in added and name in known]
        for of in (TOKENIZER_ID, *sizes):
            if added.get(of) != known.get(of):
                raise SourceGone(
                    f"Live source `{self._name}` has `{of}` {known.get(of, 'unknown')} at snapshot "
                    f"{self.pinned}, and what snapshot {one.snapshot_id} appends has "
                    f"{added.get(of, 'unknown')}. Append tokens of the same tokenizer only and say so in the "
                    "snapshot's properties; to read what is there now, pack it again and make another blend."
                )

    def _check_files(self, table: Table, snapshot: Snapshot, since: LiveProgress) -> None:
        before = since.files
        if before is None:
            if table.snapshot_by_id(since.snapshot) is None:
                raise self._changed(f"lost snapshot {since.snapshot} and what happened since")
            before = _files(table, since.snapshot)
        if not before <= _files(table, snapshot.snapshot_id):
            raise self._changed(
                f"has other files than at snapshot {since.snapshot}, from which no appends and compactions "
                "lead here"
            )

    def _changed(self, what: str) -> SourceGone:
        return SourceGone(
            f"Live source `{self._name}`: its table {what}, so its rows may differ from the served ones. "
            "Only append to it and compact it, and keep its snapshots for a while; to read what is there "
            "now, make a blend with another seed."
        )

    def _stalled(self, rows: int) -> str:
        window = f" in complete windows of {self._window_rows:,}" if self._window_rows > 1 else ""
        return (
            f"Live source `{self._name}` has {self.n_rows:,} rows{window} at snapshot "
            f"{self.now.snapshot_id}, {rows:,} were asked for. Append more, or wait longer."
        )


def _files(table: Table, snapshot: int) -> frozenset[bytes]:
    return hashes(file.path for file in snapshot_files(table, snapshot))
