"""How good the packing of a dataset is: fill, documents split, dependencies visible.

A dependency is visible if it stands whole in a sequence that holds its dependent, before it. The yardstick
for that is next-fit over the same documents: a new sequence when the next document does not fit, and for
every revision of a repository. The yardstick for the fill is `ceil(tokens / sequence length)`: no plan needs
fewer sequences.
"""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from factory.lake.schemas import REPOSITORY
from spark_udfs.packing.pack import next_fit_chunk


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
    packed: DataFrame, tokenized: DataFrame, dependencies: DataFrame | None, sequence_length: int
) -> PackingMetrics:
    """The metrics of `packed`, made from `tokenized`; three actions, none of which reads tokens."""
    pieces = packed.select("ordinal", F.posexplode("segments").alias("position", "segment")).select(
        F.col("ordinal").cast("string").alias("sequence"), "position", "segment.doc_id", "segment.length"
    )
    documents = pieces.groupBy("doc_id").agg(F.sum("length").alias("length"), F.count("*").alias("pieces"))
    fits = F.col("length") <= sequence_length
    counts = documents.agg(
        F.count("*").alias("documents"),
        F.coalesce(F.sum("length"), F.lit(0)).alias("tokens"),
        F.count_if(fits).alias("fitting"),
        F.count_if(fits & (F.col("pieces") > 1)).alias("split"),
    ).crossJoin(packed.agg(F.count("*").alias("sequences")))
    total = counts.collect()[0]
    edges = visible = visible_next_fit = 0
    if dependencies is not None:
        edges, visible = _visible(pieces, dependencies)
        _, visible_next_fit = _visible(_next_fit(tokenized, sequence_length), dependencies)
    return PackingMetrics(
        n_documents=total.documents,
        n_tokens=total.tokens,
        n_sequences=total.sequences,
        sequence_length=sequence_length,
        n_fitting=total.fitting,
        n_fitting_split=total.split,
        n_dependencies=edges,
        n_visible=visible,
        n_visible_next_fit=visible_next_fit,
    )


def _visible(pieces: DataFrame, dependencies: DataFrame) -> tuple[int, int]:
    """The dependencies between documents of `pieces`: how many, and how many visible."""
    dependents = pieces.select("doc_id", "sequence", "position")
    whole = pieces.groupBy(F.col("doc_id").alias("depends_on")).agg(
        F.count("*").alias("pieces"),
        F.first("sequence").alias("at_sequence"),
        F.first("position").alias("at_position"),
    )
    seen = (
        (F.col("pieces") == 1)
        & (F.col("sequence") == F.col("at_sequence"))
        & (F.col("at_position") < F.col("position"))
    )
    edges = (
        dependencies.select("doc_id", "depends_on")
        .distinct()
        .join(dependents, "doc_id")
        .join(whole, "depends_on")
        .groupBy("doc_id", "depends_on")
        .agg(F.max(seen).alias("visible"))
    )
    counts = edges.agg(F.count("*").alias("edges"), F.count_if("visible").alias("visible")).collect()[0]
    return counts.edges, counts.visible


def _next_fit(tokenized: DataFrame, sequence_length: int) -> DataFrame:
    def plan(repository: pa.Table) -> pa.Table:
        pieces = next_fit_chunk(repository, sequence_length)
        key = "@".join(str(repository.column(name)[0]) for name in REPOSITORY)
        names = [f"{key}#{sequence}" for sequence in pieces.column("sequence")]
        return pieces.set_column(0, "sequence", pa.array(names, pa.string())).select(
            ["sequence", "position", "doc_id", "length"]
        )

    documents = tokenized.select("doc_id", *REPOSITORY, "position", "n_tokens")
    return documents.groupBy(*REPOSITORY).applyInArrow(
        plan, "sequence string, position long, doc_id string, length long"
    )


def _share(part: int, whole: int, empty: float = 1.0) -> float:
    return part / whole if whole else empty
