"""The share of its input that a source rejected, and whether its run may publish the rest.

A bad record ends no run. But a source that yields no document, or rejects more rows or files than
`max_rejected` allows, was probably declared wrongly: its run fails before it publishes anything, with the
most common reason and one example.

One limit applies to two shares. A row is a document or a rejected record, also one that shares its row of the
table with others (`factory.lake.rejected`). A file of many records is lost if none of its records is a
document: a Parquet file of a million rows without the text column is one rejected row, so the share of rows
alone would hide it. Records that hold nothing to lose, such as empty ones and redirects, count in neither
share (`spark_udfs.ingest.rows.NOTHING_LOST`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass, field
from math import inf

from pyspark.sql import functions as F

from factory.errors import CheckFailed, ConfigurationError
from factory.lake.names import TableName
from factory.lake.rejected import N_RECORDS, count_rejected, place_of_record
from factory.lake.schemas.ingest import REJECTED
from factory.lake.tables import Lake
from factory.orchestration.table.branch import Branch
from factory.orchestration.table.declaration import Output
from spark_udfs.ingest.rows import NOTHING_LOST


@dataclass(frozen=True)
class Rejections:
    """Documents and rejected records of a table or of one of its partitions.

    `files` counts the files of many records, `lost_files` the ones without a document.
    """

    documents: int
    by_reason: Mapping[str, int] = field(default_factory=dict)
    files: int = 0
    lost_files: int = 0

    @property
    def rejected(self) -> int:
        """The number of rejected records."""
        return sum(self.by_reason.values())

    def excess(self, max_rejected: float) -> str | None:
        """Return a clause on the share that exceeds the limit, None if neither does, as with no limit."""
        if self.rejected and not self.documents and max_rejected < inf:
            return f"no row is a document ({self.rejected:,} rejected)"
        lost = self.rejected - sum(self.by_reason.get(reason, 0) for reason in NOTHING_LOST)
        for noun, part, whole in (
            ("rows", lost, lost + self.documents),
            ("files", self.lost_files, self.files),
        ):
            if whole and part / whole > max_rejected:
                verb = "are rejected" if noun == "rows" else "give no document"
                share = f"{part / whole:.1%}, and `max_rejected` allows {max_rejected:.1%}"
                return f"{part:,} of {whole:,} {noun} {verb} ({share})"
        return None


def count_rejections(
    documents: Branch, rejected: Branch, files: Mapping[str | None, tuple[int, int]]
) -> dict[str | None, Rejections]:
    """Count documents and rejected records by partition; `files` are the counts of files and lost files."""
    n_documents = documents.count_by()
    reasons: dict[str | None, Counter[str]] = {}
    for (reason, n_records, partition), n in rejected.count_by("reason", N_RECORDS).items():
        reasons.setdefault(partition, Counter())[str(reason)] += n * int(n_records or 1)
    return {
        key: Rejections(n_documents[(key,)], reasons.get(key, {}), *files.get(key, (0, 0)))
        for key in documents.keys or (None,)
    }


def require_documents(
    table: TableName,
    found: Mapping[str | None, Rejections],
    rejected: Branch,
    max_rejected: float,
) -> None:
    """Raise CheckFailed if the table or a partition rejected more than `max_rejected` of its input."""
    for key, of in found.items():
        if excess := of.excess(max_rejected):
            source = str(table) if key is None else f"{table}, partition {key}"
            raise CheckFailed(f"In {source}, {excess}. {_most_common(rejected, key, of)}")


def require_rows(
    table: TableName, counts: Mapping[str | None, Rejections], of_frames: Container[str | None]
) -> None:
    """Raise ConfigurationError for a DataFrame without rows; `of_frames` are the partitions made of one."""
    for key, rejections in counts.items():
        if key in of_frames and not rejections.documents and not rejections.rejected:
            part = "" if key is None else f" of partition {key}"
            raise ConfigurationError(
                f"The DataFrame of {table}{part} has no row, so main is as it was. Correct what its function "
                "reads, or leave it out of the run."
            )


def _most_common(rejected: Branch, key: str | None, of: Rejections) -> str:
    """Return a sentence with the most common reason and the first record, by key, that has it."""
    reason, n = min(of.by_reason.items(), key=lambda it: (it[0] in NOTHING_LOST, -it[1], it[0]))
    rows = rejected.made.where((F.col("reason") == reason) & F.col("partition").eqNullSafe(key))
    first = rows.agg(F.min(F.struct("key", "location", "detail", "file")).alias("at")).first()
    assert first is not None
    at = f"`{first.at.key}` at {place_of_record(first.at.location, first.at.file, first.at.key)}"
    return f"The most common reason is `{reason}` ({n:,}), for example {at}: {first.at.detail}"


def n_rejected(lake: Lake, outputs: Sequence[Output]) -> int | None:
    """Return the number of published rejected records, None for an asset that reads no input."""
    table = next((output.table for output in outputs if output.schema.columns == REJECTED.columns), None)
    return None if table is None else sum(count_rejected(lake, table).values())


def facts(found: Sequence[Rejections]) -> dict[str, int]:
    """Return the sums over all partitions as Dagster metadata."""
    return {
        "rejected": sum(part.rejected for part in found),
        "files without a document": sum(part.lost_files for part in found),
    }
