"""The documents and rejected records of a reader as DataFrames, from one persisted scan."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import reduce

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from factory.errors import ConfigurationError
from spark_udfs.ingest.rows import NOTHING_LOST

# A tree of files holds pictures and archives besides texts, and half of a crawl may have no text, but a wrong
# declaration loses nearly everything.
MAX_REJECTED = 0.5


@dataclass(frozen=True)
class Registered:
    """Documents with texts that stay in Parquet `files`, which have `columns`.

    `rows` have the location of the text in place of the text.
    """

    rows: DataFrame
    files: Sequence[str]
    columns: pa.Schema


@dataclass(frozen=True)
class Ingested:
    """The documents of an input (`RAW`) and its rejected records (`REJECTED`), from one persisted `scan`.

    `again` has the rows of parts that were read again, because they began inside a record, and `records` all
    rows with these in place of theirs. `empty` means that there was no file to read, `of_many_records` that a
    file may hold several documents, `of_frame` that the input is a DataFrame, so that only a run tells
    whether it has rows. `registered` replaces `documents` for files that can stay where they are; `rewritten`
    has the reason for every other Parquet file. A run that publishes the documents fails if more than the
    share `max_rejected` of the rows or files is rejected. `state` is the state of the paths before they were
    read, empty for an installation. With a `limit` only the first so many records were read; without one
    `left_out` has the number of files that were not read, by ending. With `readings` a function made the
    documents from the documents of these, among them this one as it was (`with_documents`).
    """

    documents: DataFrame
    rejected: DataFrame
    scan: DataFrame
    again: DataFrame | None = None
    records: DataFrame | None = None
    empty: bool = False
    of_many_records: bool = True
    of_frame: bool = False
    registered: Registered | None = None
    rewritten: Mapping[str, str] = field(default_factory=dict)
    max_rejected: float = MAX_REJECTED
    state: str = ""
    limit: int | None = None
    left_out: Mapping[str, int] = field(default_factory=dict)
    readings: tuple[Ingested, ...] = ()

    def with_documents(self, documents: DataFrame, *others: Ingested) -> Ingested:
        """Return the same with `documents` that a function made from its own and from documents of `others`.

        A `@source` that returns it publishes these rows, and the rejected records of all these readers, of
        each once. `others` may have such documents themselves.
        """
        of_every_reader = (reading for own in (self, *others) for reading in own.each_reading())
        readings = tuple({id(reading.scan): reading for reading in of_every_reader}.values())
        return replace(
            self,
            documents=documents,
            rejected=reduce(DataFrame.unionByName, [reading.rejected for reading in readings]),
            empty=all(reading.empty for reading in readings),
            registered=None,
            readings=readings,
        )

    def each_reading(self) -> tuple[Ingested, ...]:
        """Return the results of readers that the documents are from, each with the rows of its own scan."""
        return self.readings or (self,)

    def count_rejected(self) -> int:
        """Return the number of rejected records; this reads the input, unless it has been read."""
        total = self.rejected.agg(F.sum(F.coalesce("n_records", F.lit(1))).alias("n")).first()
        assert total is not None
        return int(total.n or 0)

    def limited(self, max_rejected: float) -> Ingested:
        """Return the same with another limit; raises ConfigurationError unless it is a share."""
        if not 0 <= max_rejected <= 1:
            raise ConfigurationError(f"`max_rejected` is {max_rejected}, which is not a share. Use 0 to 1.")
        return replace(self, max_rejected=max_rejected)

    def count_files(self) -> tuple[int, int]:
        """Return how many files of many records were read, and how many of them yielded no document."""
        counts = [reading._count_own_files() for reading in self.each_reading()]
        return sum(files for files, _ in counts), sum(n_lost for _, n_lost in counts)

    def _count_own_files(self) -> tuple[int, int]:
        if not self.of_many_records:
            return 0, 0
        is_document = F.col("reason").isNull()
        records = self.scan if self.records is None else self.records
        by_file = records.where("file IS NOT NULL AND doc_id IS NOT NULL").groupBy("source", "file")
        states = by_file.agg(
            F.max(is_document).alias("has_document"),
            F.max(is_document | ~F.col("reason").isin(*NOTHING_LOST)).alias("held"),
        )
        lost = F.count_if(F.col("held") & ~F.col("has_document"))
        counted = states.agg(F.count("*").alias("files"), lost.alias("lost")).first()
        assert counted is not None
        return counted.files, counted.lost

    def release(self) -> None:
        """Free the persisted rows; later use of the DataFrames reads the input again."""
        self.scan.unpersist()
        if self.again is not None:
            self.again.unpersist()
