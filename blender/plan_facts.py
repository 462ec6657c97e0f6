"""What `blender.plan` asks of a blend: of each source its rows, their ranks, and the pages they lie in."""

from __future__ import annotations

from dataclasses import dataclass
from urllib.parse import urlparse
from urllib.request import url2pathname

import numpy as np
import numpy.typing as npt
import pyarrow.parquet as pq
from pyiceberg.conversions import from_bytes
from pyiceberg.manifest import DataFile
from pyiceberg.table import Table
from pyiceberg.types import LongType

from blender.blend import Blend, OpenSource
from blender.config import SEGMENT_LENGTHS
from blender.errors import NotPaged
from blender.pages import IndexMatrix, get_idx_matrix
from blender.plan import Choice, SourceFacts, choices, price
from blender.snapshot_index import ORDINAL
from blender.sources import SEGMENTS
from factory.lake.names import TableName
from factory.lake.tables import Lake

Ints = npt.NDArray[np.int64]

_SAMPLED = 32  # rows and pages looked at to learn their usual size


@dataclass(frozen=True)
class ColumnPages:
    """The pages of a column whose rows stand in the order of their ordinals."""

    matrix: IndexMatrix

    def of(self, ordinals: Ints) -> Ints:
        """The number of the page that holds each row."""
        distinct, which = np.unique(ordinals, return_inverse=True)
        page_of_row = self.matrix.native.page_of_row
        return np.array([page_of_row(row) for row in distinct.tolist()], dtype=np.int64)[which]

    def n_bytes(self, numbers: Ints) -> Ints:
        """The bytes of each page as it lies in its file."""
        ranges = (self.matrix.native.byte_ranges(number)[0] for number in numbers.tolist())
        return np.array([end - begin for begin, end in ranges], dtype=np.int64)


def plan(blend: Blend, lake: Lake, offset: int = 0, ranks: int = 1) -> list[Choice]:
    """Every shuffle of every source with rows in step `offset`, as `ranks` ranks would read it.

    Raises InvalidRequest for ranks that do not divide the step, EndOfData for a step beyond the last, and
    NotPaged for a table whose files are not read by page.
    """
    blend.step(offset, 0, ranks)  # what is wrong with the request is told by whoever serves it
    width = blend.mixture.rows_per_step(offset)
    first = blend.mixture.first_row(offset)
    of_row, _ = blend.mixture.place(first + np.arange(width))
    rank = np.arange(width) // (width // ranks)
    found: list[Choice] = []
    for number, source in enumerate(blend.sources):
        if (of_row == number).any():
            facts = _facts(source, lake.table(TableName.parse(source.config.table)), rank[of_row == number])
            configured = source.config.order
            found += [price(facts, it, source.seed, configured) for it in choices(facts, configured)]
    return found


def _facts(source: OpenSource, table: Table, rank_of_row: Ints) -> SourceFacts:
    reader, columns = source.reader, source.config.columns
    sampled = np.arange(min(_SAMPLED, reader.n_rows))
    paths = _paths(table, reader.snapshot_id)
    matrices = [get_idx_matrix(paths, leaf) for leaf in _leaves(paths[0], source)]
    widest = max(matrices, key=lambda it: ColumnPages(it).n_bytes(np.arange(min(_SAMPLED, len(it)))).sum())
    usual = np.median([page.n_rows for page in widest[:_SAMPLED]])
    return SourceFacts(
        name=source.config.name,
        n_rows=reader.n_rows,
        row_bytes=reader.read(sampled, columns).nbytes / len(sampled),
        page_rows=int(usual),
        rank_of_row=rank_of_row,
        columns=[ColumnPages(matrix) for matrix in matrices],
    )


def _leaves(path: str, source: OpenSource) -> list[str]:
    """The columns of a file that are read for a source, each by its path in Parquet."""
    schema = pq.read_metadata(path).schema
    paths = [schema.column(number).path for number in range(len(schema))]
    columns = {field.name for field in source.reader.fields(source.config.columns)}
    return [leaf for leaf in paths if leaf.split(".")[0] in columns or _is_length(leaf, columns)]


def _is_length(leaf: str, columns: set[str]) -> bool:
    return SEGMENT_LENGTHS in columns and leaf.startswith(f"{SEGMENTS}.") and leaf.endswith(".length")


def _paths(table: Table, snapshot_id: int) -> list[str]:
    """The data files of a snapshot in the order of their ordinals, which packing writes in ascending runs."""
    number = table.schema().find_field(ORDINAL).field_id
    files = [task.file for task in table.scan(snapshot_id=snapshot_id).plan_files()]

    def first(file: DataFile) -> tuple[int, str]:
        bound = file.lower_bounds.get(number)
        return (from_bytes(LongType(), bound) if bound is not None else 0, file.file_path)

    return [_local(file.file_path) for file in sorted(files, key=first)]


def _local(path: str) -> str:
    address = urlparse(path)
    if address.scheme not in ("", "file"):
        raise NotPaged(f"File {path} is in a store. Plan a blend where its tables are local files.")
    return url2pathname(address.path) if address.scheme else path
