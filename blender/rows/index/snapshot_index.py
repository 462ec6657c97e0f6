"""Files and ordinals of a snapshot, in the order of the ordinals, from the page index or the table.

A new snapshot costs its manifests and the footer of each unknown file: statistics tell the ordinals of a row
group, and the column is read where they do not form a run. After an append only the footers of the new files
are read.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from blender.arrays import as_numpy
from blender.errors import InvalidBlend
from blender.rows.index.column_pages import scans
from blender.rows.index.index_files import IndexFiles
from blender.rows.index.ordinals import runs_of
from blender.rows.lake_files import LakeFiles
from blender.rows.snapshot_facts import SnapshotFacts
from blender.rows.snapshot_files import TableFile, snapshot_files
from factory import _native

if TYPE_CHECKING:
    from pyiceberg.table import Table

Ints = npt.NDArray[np.int64]

ORDINAL = "ordinal"


def snapshot_index(
    indexes: IndexFiles, data_files: LakeFiles, facts: SnapshotFacts, load: Callable[[], Table]
) -> tuple[list[TableFile], Ints]:
    """The files and their runs (`blender.rows.index.ordinals`); run it inside `reading`.

    `load` returns the table, and is called only for a snapshot that has no index yet.
    """
    record = indexes.of_snapshot(facts.key, "files.json")
    kept, runs = indexes.get_record(record), indexes.get_numbers(_numbers(indexes, facts))
    if kept is not None and runs is not None:
        return [TableFile(*file) for file in kept], runs
    files = snapshot_files(load(), facts.snapshot_id)
    of_files = _runs(indexes, data_files, files)
    order = sorted(range(len(files)), key=lambda it: (int(of_files[it][:, 0].min()), files[it].path))
    files, of_files = [files[it] for it in order], [of_files[it] for it in order]
    starts = np.cumsum([0, *(file.n_rows for file in files)])
    shifted = [runs + np.array([0, 0, start, 0]) for runs, start in zip(of_files, starts, strict=False)]
    runs = np.concatenate([np.empty((0, 4), dtype=np.int64), *shifted])
    put_runs(indexes, facts, runs)
    indexes.put_record(record, [[file.path, file.n_bytes, file.n_rows] for file in files])
    return files, runs


def kept_files(indexes: IndexFiles, facts: SnapshotFacts) -> list[str]:
    """The index files that `snapshot_index` reads for a known snapshot."""
    return [indexes.of_snapshot(facts.key, "files.json"), _numbers(indexes, facts)]


def put_runs(indexes: IndexFiles, facts: SnapshotFacts, runs: Ints) -> None:
    """Store the runs of a snapshot in place of its previous ones."""
    indexes.put_numbers(_numbers(indexes, facts), runs)


def _numbers(indexes: IndexFiles, facts: SnapshotFacts) -> str:
    return indexes.of_snapshot(facts.key, "ordinals")


def _runs(indexes: IndexFiles, data_files: LakeFiles, files: Sequence[TableFile]) -> list[Ints]:
    """The runs of each file, counted from its own first row."""
    paths = [indexes.ordinals_of_file(file) for file in files]
    found = [indexes.get_numbers(path) for path in paths]
    unknown = [number for number, runs in enumerate(found) if runs is None]
    scanned = scans(data_files, [files[number] for number in unknown], ORDINAL)
    for number, scan in zip(unknown, scanned, strict=True):
        if scan is None:
            raise InvalidBlend(f"File {files[number].path} lacks column `{ORDINAL}`. Write the table again.")
        content = _native.join_pages(ORDINAL, [scan])
        indexes.put_index(indexes.of_file(files[number], ORDINAL), content)
        index = _native.PageIndex(content, data_files.fetch_for([files[number].path]))
        found[number] = runs = _scanned(scan, index)
        indexes.put_numbers(paths[number], runs)
    return [runs for runs in found if runs is not None]


def _scanned(scan: _native.PageScan, index: _native.PageIndex) -> Ints:
    runs, row = [], 0
    for n_rows, bounds in scan.row_groups:
        if bounds is not None and bounds[1] - bounds[0] + 1 == n_rows:
            runs.append(np.array([[bounds[0], n_rows, row, 0]], dtype=np.int64))
        else:
            ordinals = as_numpy(index.read_rows(np.arange(row, row + n_rows))).astype(np.int64)
            runs.append(runs_of(ordinals, row))
        row += n_rows
    return np.concatenate(runs)
