"""How much of its input a source rejected, and whether its run may publish what is left.

A bad record ends no run, but a source that gives no document, or loses more of its rows or files than
`max_rejected` allows, is most likely read with the wrong declaration. Its run fails before anything is
published, with the most common reason and one place where it was found.

Two shares are compared with the same limit. A row is a document or a rejected record. A file of many records
is lost if none of its records is a document: a Parquet file without the column of the text is one rejected
row, however many rows it has, so the share of rows alone would hide it. Records rejected as `empty` count in
neither share, since nothing is lost with them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from pyspark.sql import functions as F

from factory.errors import CheckFailed
from factory.lake.names import TableName
from factory.orchestration.asset.branch import Branch

EMPTY = "empty"  # the reason of records that hold nothing


@dataclass(frozen=True)
class Rejections:
    """What became of the input of a table or of one of its partitions.

    `files` are those that hold many records, `lost_files` the ones of them without a document.
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
        """A clause for what exceeds the limit, None where nothing does."""
        if self.rejected and not self.documents:
            return f"no row is a document, {self.rejected:,} are rejected"
        lost = self.rejected - self.by_reason.get(EMPTY, 0)
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
    """What became of the input, by partition; `files` gives the number of files and of lost ones."""
    n_documents = documents.count_by()
    reasons: dict[str | None, Counter[str]] = {}
    for (reason, partition), n in rejected.count_by("reason").items():
        reasons.setdefault(partition, Counter())[str(reason)] = n
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
    """Raise CheckFailed for a table or partition that rejected more than `max_rejected` of its input."""
    for key, of in found.items():
        if excess := of.excess(max_rejected):
            source = str(table) if key is None else f"{table}, partition {key}"
            raise CheckFailed(f"Of {source} {excess}. {_most_common(rejected, key, of)}")


def _most_common(rejected: Branch, key: str | None, of: Rejections) -> str:
    """A sentence with the most common reason, and the first record by key that has it."""
    reason, n = min(of.by_reason.items(), key=lambda it: (it[0] == EMPTY, -it[1], it[0]))
    rows = rejected.made.where((F.col("reason") == reason) & F.col("partition").eqNullSafe(key))
    first = rows.agg(F.min(F.struct("key", "place", "detail")).alias("at")).first()
    assert first is not None
    at = f"`{first.at.key}` at {first.at.place}"
    return f"The most common reason is `{reason}` ({n:,}), as of {at}: {first.at.detail}"


def facts(found: Sequence[Rejections]) -> dict[str, int]:
    """The figures of all partitions as Dagster shows them."""
    return {
        "rejected": sum(of.rejected for of in found),
        "files without a document": sum(of.lost_files for of in found),
    }
