"""The declaration of an asset, and the result that its function returns."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TypeAlias

from pyspark.sql import DataFrame

from factory.counted import counted
from factory.ingest.left_out import left_out_phrase
from factory.ingest.listing import first_records
from factory.ingest.readers import MAX_REJECTED, Ingested, Registered
from factory.lake.names import TableName
from factory.lake.schemas.base import TableSchema
from factory.lake.schemas.ingest import LIMIT
from factory.orchestration.table.charts.counting import Chart
from factory.orchestration.table.charts.totals import Figures
from factory.orchestration.table.checks import Check
from factory.spark.session import ROWS_PER_ARROW_BATCH
from spark_udfs.ingest.place import Place

Derived = Callable[[DataFrame], DataFrame]
FilesOf = Callable[[str | None], Sequence[Path | Place]]  # the files and folders of a partition
AssetResult: TypeAlias = "DataFrame | Tables | Ingested"  # the return type of an asset's function

_LEFT_OUT = "files left out: "  # begins the name of a fact, which an ending ends
_RECORDS_LEFT_OUT = "rejected records left out"
_MAX_SHOWN = 20  # files listed in the metadata of a materialization


@dataclass(frozen=True)
class Tables:
    """The result of an asset with side tables, table properties or scratch to release.

    `side_tables` holds the side tables by suffix: a DataFrame, or a function of the main table's rows as
    written. `properties` belong to the table, `said` to the snapshot of a table written as a whole. `release`
    is called once everything is written. `registered` replaces `rows` on disk: every reader sees the same
    rows, and the texts stay in the user's files. `facts` become metadata of the materialization, and the run
    prints `note` in the table's line. At most the share `max_rejected` of rows, or of the files of `inputs`
    (by partition), may be rejected (`factory.orchestration.table.rejections`).
    """

    rows: DataFrame
    side_tables: dict[str, DataFrame | Derived] = field(default_factory=dict)
    properties: dict[str, str] = field(default_factory=dict)
    said: dict[str, str] = field(default_factory=dict)
    release: Callable[[], object] = lambda: None
    registered: Registered | None = None
    facts: Mapping[str, str | int] = field(default_factory=dict)
    note: str = ""
    max_rejected: float = MAX_REJECTED
    inputs: Mapping[str | None, Ingested] = field(default_factory=dict)

    @classmethod
    def of(cls, made: AssetResult) -> Tables:
        """Normalize the return value of an asset's function."""
        if isinstance(made, Ingested):
            return cls._read(made)
        return made if isinstance(made, Tables) else cls(made)

    @classmethod
    def _read(cls, found: Ingested) -> Tables:
        facts: dict[str, str | int] = {}
        if found.limit is not None:
            facts["limit"] = first_records(found.limit)
        facts = together([facts, *map(_files_left_out, found.each_reading())])
        if found.registered is not None:
            facts["registered files"] = len(found.registered.files)
        if found.rewritten:
            shown = list(found.rewritten.items())[:_MAX_SHOWN]
            facts["rewritten files"] = len(found.rewritten)
            facts["why rewritten"] = "; ".join(f"{name}: {reason}" for name, reason in shown)
        return cls(
            found.documents,
            {"rejected": found.rejected},
            release=found.release,
            registered=found.registered,
            said={} if found.limit is None else {LIMIT: str(found.limit)},
            facts=facts,
            note=note_of(facts),
            max_rejected=found.max_rejected,
            inputs={None: found},
        )

    def leaving_out(self, readings: Sequence[Ingested]) -> Tables:
        """Return the same tables with facts on readings that gave their documents alone.

        Their rejected records are in no table, so their number is a fact, like the files that they left out.
        """
        n_rejected = sum(reading.count_rejected() for reading in readings)
        records = {_RECORDS_LEFT_OUT: n_rejected} if n_rejected else {}
        merged_facts = together([self.facts, *map(_files_left_out, readings), records])
        return replace(self, facts=merged_facts, note=note_of(merged_facts))

    def releasing(self, further: Callable[[], None]) -> Tables:
        """Return the same tables with one more function to free their inputs."""

        def release() -> None:
            self.release()
            further()

        return replace(self, release=release)

    def rewritten(self) -> Tables:
        """Return the same tables with texts in the rows; registered files cannot be replaced by partition."""
        if self.registered is None:
            return self
        facts = dict(self.facts)
        n_files = facts.pop("registered files")
        why = {"rewritten files": n_files, "why rewritten": "files of a partitioned table are not registered"}
        return replace(self, registered=None, facts=together([why, facts]))


def _files_left_out(reading: Ingested) -> dict[str, str | int]:
    return {f"{_LEFT_OUT}{ending}": n for ending, n in reading.left_out.items()}


def note_of(facts: Mapping[str, str | int]) -> str:
    """Return the facts that a run prints in the table's line: the limit, and files and records left out."""
    counts = {name: n for name, n in facts.items() if name.startswith(_LEFT_OUT) and isinstance(n, int)}
    most_first = sorted(counts, key=lambda name: (-counts[name], name))
    n_by_ending = {name.removeprefix(_LEFT_OUT): counts[name] for name in most_first}
    n_records = facts.get(_RECORDS_LEFT_OUT)
    records = f"{counted(int(n_records), 'rejected record')} of its readers left out" if n_records else ""
    return "; ".join(filter(None, [str(facts.get("limit", "")), left_out_phrase(n_by_ending), records]))


def together(facts: Sequence[Mapping[str, str | int]]) -> dict[str, str | int]:
    """Merge the facts of several tables: add up numbers, join distinct sentences."""
    found: dict[str, str | int] = {}
    for name in dict.fromkeys(name for table_facts in facts for name in table_facts):
        values = [table_facts[name] for table_facts in facts if name in table_facts]
        said = list(dict.fromkeys(str(value) for value in values if isinstance(value, str)))
        if said:
            more = f"; and {len(said) - _MAX_SHOWN} more" if len(said) > _MAX_SHOWN else ""
            found[name] = "; ".join(said[:_MAX_SHOWN]) + more
        else:
            found[name] = sum(value for value in values if isinstance(value, int))
    return found


@dataclass(frozen=True)
class Output:
    """One table an asset writes."""

    table: TableName
    schema: TableSchema
    checks: Sequence[Check]
    chart: Chart
    figures: Figures


@dataclass(frozen=True)
class OnDemand:
    """When a run makes a table that only people read, and which costs a small corpus more than it tells.

    A run makes it if it selects the table by name, or none of its upstream tables; or if `counted_table`,
    which the run has made by then, has at least `rows` rows, which `noun` names: `distinct text`.
    """

    counted_table: TableName
    rows: int
    noun: str

    @property
    def condition(self) -> str:
        """When it is made without being asked for, as a phrase."""
        return f"made from {counted(self.rows, self.noun)} on"


@dataclass(frozen=True)
class Declaration:
    """The arguments of `table_asset`, resolved; `outputs` ends with the main table.

    `group` is the dataset, variant, dedup group or models that the table belongs to.
    `config` is the hash of the configuration, `values` are its values as text. `code` has a hash of each part
    of the code, by name.
    """

    table: TableName
    group: str
    outputs: tuple[Output, ...]
    upstream: dict[str, TableName]
    code_version: str
    config: str
    values: Mapping[str, str] = field(default_factory=dict)
    code: Mapping[str, str] = field(default_factory=dict)
    files: FilesOf | None = None
    growth: float = 1
    lasting: bool = False
    until: frozenset[TableName] = frozenset()
    on_demand: OnDemand | None = None
    rows_per_batch: int = ROWS_PER_ARROW_BATCH


@dataclass(frozen=True)
class PartitionSelection:
    """The part of a table that a run writes: partitions by key, or the whole table (the single key None).

    `copartitioned` are the upstream tables with the partitions of the asset. `every` means that the run
    replaces all rows of the table.
    """

    keys: tuple[str | None, ...] = (None,)
    copartitioned: frozenset[TableName] = frozenset()
    every: bool = True

    @property
    def partitions(self) -> list[str] | None:
        """The keys of the partitions, None for a whole table."""
        keys = [key for key in self.keys if key is not None]
        return keys if len(keys) == len(self.keys) else None

    def only(self, keys: Iterable[str | None]) -> PartitionSelection:
        """Narrow the selection to `keys`."""
        only = tuple(keys)
        return replace(self, keys=only, every=self.every and len(only) == len(self.keys))
