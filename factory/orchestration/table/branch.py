"""An audit branch: its check violations, row counts and content fingerprints.

A small branch is read in this process; Spark answers SQL checks and reads every larger branch.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from factory.lake.fingerprint import Fingerprint, fingerprints
from factory.lake.publish import Audit
from factory.lake.tables import Lake
from factory.lake_spark.audit import contents, head_of
from factory.orchestration.table.checks import in_files, repeated, violations
from factory.orchestration.table.declaration import Output
from factory.orchestration.table.rows import Rows, rows_at


@dataclass
class Branch:
    """An audit branch with all rows written; `keys` are the written partitions, None for a whole table."""

    spark: SparkSession
    lake: Lake
    audit: Audit
    output: Output
    keys: Sequence[str] | None

    @property
    def rows(self) -> DataFrame:
        """All rows in Spark, including the partitions that this run did not write."""
        return self.read.frame()

    def in_files(self) -> dict[str, list[str]]:
        """Return the violations of each file check over the whole table, as sentences by check name."""
        return in_files(self.lake.table(self.audit.table), self._head, self.output.checks)

    def violations(self) -> dict[str, float]:
        """Return the figure of each row check, over the whole table or over the rows of this run."""
        found: dict[str, float] = {}
        asked = []
        for check in self.output.checks:
            if check.files:
                continue
            keys = self.read.read_locally(check.columns) if check.distinct else None
            if keys is None:
                asked.append(check)
            else:
                found[check.name] = _repeats(list(keys))
        whole, of_run = ([check for check in asked if check.whole is is_whole] for is_whole in (True, False))
        found |= violations(self.rows, whole) if whole else {}
        found |= violations(self.made, of_run) if of_run else {}
        return found

    def repeated(self) -> str:
        """Name a few keys that more than one row has, and say what to change."""
        return repeated(self.rows, self.output.schema)

    def count_by(self, *columns: str) -> Counter[tuple[str | None, ...]]:
        """Count the rows of this run by `columns` and partition."""
        if not columns and self.keys is None:
            return Counter({(None,): self.lake.published_at(self.audit.table, self._head).rows})
        asked = [*columns, "partition"]
        batches = self.read.read_locally(asked)
        if batches is None:
            counted = self.made.groupBy(*asked).count().collect()
            return Counter({tuple(row[name] for name in asked): row["count"] for row in counted})
        found: Counter[tuple[str | None, ...]] = Counter()
        for batch in batches:
            groups = pa.Table.from_batches([batch]).group_by(asked).aggregate([([], "count_all")])
            for row in groups.to_pylist():
                if self.keys is None or row["partition"] in self.keys:
                    found[tuple(row[name] for name in asked)] += row["count_all"]
        return found

    def content(self) -> Fingerprint:
        """Return the content fingerprint of all rows."""
        return sum(self._contents(lambda: self.rows).values(), Fingerprint())

    def replaced(self) -> dict[str, Fingerprint]:
        """Return the content fingerprint of every partition that this run wrote."""
        found = self._contents(lambda: self.made)
        return {key: found.get(key, Fingerprint()) for key in self.keys or ()}

    def _contents(self, rows: Callable[[], DataFrame]) -> dict[str | None, Fingerprint]:
        columns = self.output.schema.fingerprinted
        batches = self.read.read_locally([*columns, "partition"])
        if batches is None:
            return contents(rows(), self.output.schema)
        return fingerprints(batches, columns, by="partition")

    @property
    def made(self) -> DataFrame:
        """The rows that this run wrote: all of them, or its partitions."""
        return self.rows if self.keys is None else self.rows.where(F.col("partition").isin(list(self.keys)))

    @cached_property
    def _head(self) -> int:
        return head_of(self.lake, self.audit)

    @cached_property
    def read(self) -> Rows:
        """All rows; `seal` and `publish` do not change them."""
        return rows_at(self.spark, self.lake, self.audit.table, self._head, self.output.schema)


def _repeats(keys: Sequence[pa.RecordBatch]) -> int:
    """Count the rows beyond the first of each key; a row with a null counts, as in `count(DISTINCT ...)`."""
    if not keys:
        return 0
    rows = pa.Table.from_batches(keys)
    if rows.num_columns == 1 and pa.types.is_integer(rows[0].type):
        ordered = np.sort(rows[0].drop_null().to_numpy())  # cheaper than hashing them
        return rows.num_rows - int(np.count_nonzero(np.diff(ordered))) - min(1, len(ordered))
    distinct: int = rows.drop_null().group_by(rows.column_names).aggregate([]).num_rows
    return rows.num_rows - distinct
