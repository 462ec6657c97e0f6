"""The quality of a dataset's packing: fill, split documents, visible dependencies.

A dependency is visible if it lies whole in its dependent's sequence, before it. The yardstick for that is
next-fit over the same documents: a new sequence when the next document does not fit, and for every revision
of a repository. The yardstick for the fill is `ceil(tokens / sequence length)`: no plan needs fewer
sequences.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from bench.packing.next_fit import next_fit_chunk

_ENDS = ("doc_id", "depends_on")


@dataclass(frozen=True)
class PackingMetrics:
    """Counts of a packed dataset, and the shares that follow from them."""

    n_documents: int
    n_tokens: int
    n_sequences: int
    sequence_length: int
    n_fitting: int
    """Documents of at most `sequence_length` tokens."""
    n_fitting_split: int
    """Fitting documents that lie in more than one piece."""
    n_dependencies: int
    n_visible: int
    n_visible_next_fit: int

    @property
    def least_sequences(self) -> int:
        """The fewest sequences of any plan."""
        return -(-self.n_tokens // self.sequence_length)

    @property
    def fill(self) -> float:
        """Share of the sequences' room that holds tokens."""
        return _share(self.n_tokens, self.n_sequences * self.sequence_length)

    @property
    def fill_of_best(self) -> float:
        """The fill as a share of the best fill of any plan."""
        return _share(self.least_sequences, self.n_sequences)

    @property
    def fitting_split_share(self) -> float:
        """Share of split documents among those that fit a sequence."""
        return _share(self.n_fitting_split, self.n_fitting, empty=0.0)

    @property
    def visible_share(self) -> float:
        """Share of visible dependencies."""
        return _share(self.n_visible, self.n_dependencies)

    @property
    def visible_share_next_fit(self) -> float:
        """Share of visible dependencies under next-fit."""
        return _share(self.n_visible_next_fit, self.n_dependencies)


def measure(
    packed: pa.Table, tokenized: pa.Table, dependencies: pa.Table | None, sequence_length: int
) -> PackingMetrics:
    """The metrics of the sequences `packed` (segments), made from `tokenized`; no tokens are needed."""
    segments = packed["segments"].combine_chunks()
    placed = segments.flatten()
    pieces = pa.table(
        {
            "sequence": pc.list_parent_indices(segments),
            "position": np.arange(len(placed)),
            "doc_id": placed.field("doc_id"),
            "length": placed.field("length"),
        }
    )
    documents = pieces.group_by("doc_id").aggregate([("length", "sum"), ("length", "count")])
    fitting = documents.filter(pc.field("length_sum") <= sequence_length)
    edges = visible = visible_next_fit = 0
    if dependencies is not None:
        edges, visible = visible_dependencies(pieces, dependencies)
        _, visible_next_fit = visible_dependencies(next_fit_chunk(tokenized, sequence_length), dependencies)
    return PackingMetrics(
        n_documents=documents.num_rows,
        n_tokens=pc.sum(pieces["length"]).as_py() or 0,
        n_sequences=packed.num_rows,
        sequence_length=sequence_length,
        n_fitting=fitting.num_rows,
        n_fitting_split=fitting.filter(pc.field("length_count") > 1).num_rows,
        n_dependencies=edges,
        n_visible=visible,
        n_visible_next_fit=visible_next_fit,
    )


def visible_dependencies(pieces: pa.Table, dependencies: pa.Table) -> tuple[int, int]:
    """The dependencies (doc_id, depends_on) between documents of `pieces`: how many, and how many visible.

    A piece is (sequence, position, doc_id, length); positions order the pieces of a sequence.
    """
    pieces = _strings(pieces, "doc_id")
    edges = _strings(dependencies.group_by(list(_ENDS)).aggregate([]), *_ENDS)
    for end in _ENDS:
        edges = edges.filter(pc.is_in(edges[end], pieces["doc_id"].combine_chunks()))
    counts = pieces.group_by("doc_id").aggregate([("length", "count")])
    whole = pieces.join(counts.filter(pc.field("length_count") == 1), "doc_id", join_type="inner")
    together = edges.join(pieces, "doc_id", join_type="inner").join(
        whole, ["depends_on", "sequence"], ["doc_id", "sequence"], "inner", right_suffix="_of_dependency"
    )
    before = together.filter(pc.field("position_of_dependency") < pc.field("position"))
    return edges.num_rows, before.group_by(list(_ENDS)).aggregate([]).num_rows


def _strings(rows: pa.Table, *columns: str) -> pa.Table:
    """Return `rows` with the same type of string in all `columns`, as joins require."""
    for name in columns:
        rows = rows.set_column(rows.schema.get_field_index(name), name, rows[name].cast(pa.string()))
    return rows


def _share(part: int, whole: int, empty: float = 1.0) -> float:
    return part / whole if whole else empty
