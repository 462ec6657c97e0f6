"""What an audit branch holds: how often its checks are violated, and the fingerprints of its content.

A Spark job has a cost of its own however few the rows are, and a line has dozens of small tables. So a branch
of some megabytes is read here, once for all questions; what only SQL can say, and every larger branch, is
asked of Spark.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from factory.lake.fingerprint import Fingerprint, fingerprints
from factory.lake.publish import Audit
from factory.lake.stored import stored
from factory.lake.tables import Lake
from factory.lake_spark.audit import contents, head_of
from factory.lake_spark.read import read_at
from factory.orchestration.checks import repeated, violations
from factory.orchestration.declaration import Output

SMALL_BYTES = 32 << 20  # as compressed files; they unpack to some ten times as much


@dataclass
class Branch:
    """An audit branch with all its rows written; `keys` are the partitions made, None for a whole table."""

    spark: SparkSession
    lake: Lake
    audit: Audit
    output: Output
    keys: Sequence[str] | None

    @cached_property
    def rows(self) -> DataFrame:
        """All rows, those of partitions that stay included."""
        return read_at(self.spark, self.audit.table, self._head)

    def violations(self) -> dict[str, int]:
        """How many violations each check finds: in the whole table, or in the rows that were made."""
        found = {}
        asked = []
        for check in self.output.checks:
            if check.distinct and self._small is not None:
                found[check.name] = _repeats(self._small, check.columns)
            else:
                asked.append(check)
        found |= violations(self.rows, [check for check in asked if check.whole])
        return found | violations(self._made, [check for check in asked if not check.whole])

    def repeated(self) -> list[str]:
        """Some keys that more than one row has."""
        return repeated(self.rows, self.output.schema)

    def content(self) -> Fingerprint:
        """The content fingerprint of all rows."""
        return sum(self._contents(self.rows).values(), Fingerprint())

    def replaced(self) -> dict[str, Fingerprint]:
        """The content fingerprint of every partition that was made."""
        found = self._contents(self._made)
        return {key: found.get(key, Fingerprint()) for key in self.keys or ()}

    def _contents(self, rows: DataFrame) -> dict[str | None, Fingerprint]:
        if self._small is None:
            return contents(rows, self.output.schema)
        return fingerprints(self._small.to_batches(), self.output.schema.fingerprinted, by="partition")

    @property
    def _made(self) -> DataFrame:
        return self.rows if self.keys is None else self.rows.where(F.col("partition").isin(list(self.keys)))

    @cached_property
    def _head(self) -> int:
        return head_of(self.lake, self.audit)

    @cached_property
    def _small(self) -> pa.Table | None:
        """All rows, where they are few; the size of registered texts is not known here."""
        table = self.lake.table(self.audit.table)
        small = self.lake.published_at(self.audit.table, self._head).size_bytes <= SMALL_BYTES
        if not small:
            return None
        columns = self.output.schema.columns
        names = [*self.output.schema.fingerprinted, "partition"]
        return stored(table, self._head, pa.schema([columns.field(name) for name in names]))


def _repeats(rows: pa.Table, columns: Sequence[str]) -> int:
    """How many rows would have to go for no two to agree on `columns`; one with a null agrees, as in SQL."""
    distinct: int = rows.select(columns).drop_null().group_by(list(columns)).aggregate([]).num_rows
    return rows.num_rows - distinct
