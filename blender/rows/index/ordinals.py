"""The row of each ordinal in a snapshot, for any order of its files.

    run       ordinals first .. first + n - 1 are the rows from `row` on, in order
    checked   whether the column itself was read; otherwise a row group's statistics suggest the run

In a row group of packing, the least and the greatest ordinal are as far apart as the group has rows, so such
a group is taken for a run. A compaction or another engine may have reordered its rows. An unchecked run is
therefore compared with the column: at first the requested rows only, and soon the whole run. A run that
proves false is split into the runs it contains.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from blender.errors import InvalidBlend, SourceGone

Ints = npt.NDArray[np.int64]

_READ_WHOLE = 1024  # longest run that is checked whole at the first look
_LOOKS = 32  # checks of single rows of a longer run before the whole run is read


class _Runs(NamedTuple):
    first: Ints
    row: Ints
    length: Ints
    checked: npt.NDArray[np.bool_]

    @property
    def table(self) -> Ints:
        """The form that `Ordinals` takes."""
        return np.stack([self.first, self.length, self.row, self.checked.astype(np.int64)], axis=1)


class Ordinals:
    """The runs of a snapshot; safe for many threads."""

    def __init__(
        self,
        runs: Ints,
        read: Callable[[Ints], Ints],
        read_runs: Callable[[Ints, Ints], Sequence[Ints]],
        table: str,
        keep: Callable[[Ints], None],
    ) -> None:
        """`runs` [n, 4]: first ordinal, rows, row, 1 if checked; `read` returns the ordinals of rows.

        `read_runs` returns the ordinals of whole runs, by their first rows and lengths, for a fraction of the
        CPU. `keep` stores the runs each time the number of checked ones doubles, and when all are checked:
        files never change, so nobody checks them again. Raises InvalidBlend unless the ordinals are 0 .. n-1,
        each once.
        """
        self._keep = keep
        self._table = table
        self._read = read
        self._read_runs = read_runs
        self._lock = threading.Lock()
        self._looks: Counter[int] = Counter()
        if len(runs) == 1 and runs[0, 0] == 0:  # like most tables of a blend of hundreds
            self.n_rows = int(runs[0, 1])
        else:
            runs = runs[np.argsort(runs[:, 0], kind="stable")]
            self.n_rows = _whole(runs, table)
        self._runs = _Runs(runs[:, 0], runs[:, 2], runs[:, 1], runs[:, 3] == 1)
        self._all_checked = bool(self._runs.checked.all())
        self._kept = int(self._runs.checked.sum())

    def check(self) -> None:
        """Check every run by reading all ordinals."""
        while not self._all_checked:
            runs = self._runs
            numbers = np.flatnonzero(~runs.checked)
            self._replace(runs, numbers.tolist(), self._mended(runs, numbers.tolist()))

    def rows(self, ordinals: Ints) -> Ints:
        """The row of each ordinal below `n_rows`; raises SourceGone for a repeated ordinal."""
        while True:
            runs = self._runs
            run = np.searchsorted(runs.first, ordinals, side="right") - 1
            rows: Ints = ordinals - runs.first[run] + runs.row[run]
            if self._all_checked or self._hold(runs, run, ordinals, rows):
                return rows

    def _hold(self, runs: _Runs, run: Ints, ordinals: Ints, rows: Ints) -> bool:
        """Whether the rows have these ordinals; false runs are split."""
        doubtful = np.flatnonzero(~runs.checked[run])
        if not len(doubtful):
            return True
        looked_at, n = np.unique(run[doubtful], return_counts=True)
        with self._lock:
            for number, looks in zip(looked_at.tolist(), n.tolist(), strict=True):
                self._looks[int(runs.first[number])] += looks
            whole = [
                number
                for number in looked_at.tolist()
                if runs.length[number] <= _READ_WHOLE or self._looks[int(runs.first[number])] > _LOOKS
            ]
        single = doubtful[~np.isin(run[doubtful], whole)]
        if len(single):
            wrong = self._read(rows[single]) != ordinals[single]
            whole += np.unique(run[single[wrong]]).tolist()
        mended = self._mended(runs, whole)
        if whole:
            self._replace(runs, whole, mended)
        return all(len(one) == 1 for one in mended)

    def _mended(self, runs: _Runs, numbers: Sequence[int]) -> list[Ints]:
        """The true runs inside each of these runs, by the ordinals in the column."""
        if not numbers:
            return []
        chosen = np.array(numbers)
        read = self._read_runs(runs.row[chosen], runs.length[chosen])
        return [self._split(runs, *it) for it in zip(numbers, read, strict=True)]

    def _split(self, runs: _Runs, number: int, ordinals: Ints) -> Ints:
        first, row, length = (int(column[number]) for column in runs[:3])
        found = runs_of(ordinals, row)
        ascending = found[np.argsort(found[:, 0], kind="stable")]
        expected = first + np.concatenate([[0], np.cumsum(ascending[:-1, 1])])
        if not np.array_equal(ascending[:, 0], expected):
            wrong = int(np.flatnonzero(ascending[:, 0] != expected)[0])
            raise SourceGone(
                f"Table {self._table} holds an ordinal twice among {first:,} to {first + length - 1:,} (near "
                f"{int(expected[wrong]):,}), which its files' statistics do not show. Write the table again."
            )
        return ascending

    def _replace(self, seen: _Runs, numbers: Sequence[int], mended: Sequence[Ints]) -> None:
        with self._lock:
            if self._runs is not seen:
                return  # another thread split runs meanwhile; `rows` looks again
            if all(len(one) == 1 for one in mended):
                seen.checked[list(numbers)] = True
                self._changed()
                return
            kept = np.ones(len(seen.first), dtype=bool)
            kept[list(numbers)] = False
            runs = np.concatenate([seen.table[kept], *mended])
            runs = runs[np.argsort(runs[:, 0], kind="stable")]
            self._runs = _Runs(runs[:, 0], runs[:, 2], runs[:, 1], runs[:, 3] == 1)
            self._changed()

    def _changed(self) -> None:
        n_checked = int(self._runs.checked.sum())
        self._all_checked = n_checked == len(self._runs.checked)
        if self._all_checked or n_checked >= 2 * self._kept:
            self._keep(self._runs.table)
            self._kept = n_checked


def _whole(runs: Ints, table: str) -> int:
    """The number of ordinals in ascending runs; raises InvalidBlend unless they are 0 .. n-1, each once."""
    ends = np.concatenate([[0], np.cumsum(runs[:, 1])])
    wrong = np.flatnonzero(runs[:, 0] != ends[:-1])
    if len(wrong):
        found, expected = int(runs[wrong[0], 0]), int(ends[wrong[0]])
        what = "is missing" if found > expected else "is there twice"
        raise InvalidBlend(
            f"Table {table}: ordinal {min(found, expected):,} {what}. "
            "Blender needs each of 0 .. n-1 once; write the table again."
        )
    return int(ends[-1])


def runs_of(ordinals: Ints, row: int) -> Ints:
    """Checked runs of the rows from `row` on with these ordinals, in the order of the rows; shape [n, 4]."""
    starts = np.flatnonzero(np.diff(ordinals, prepend=ordinals[:1] - 2) != 1)
    lengths = np.diff(starts, append=len(ordinals))
    return np.stack([ordinals[starts], lengths, row + starts, np.ones_like(starts)], axis=1)
