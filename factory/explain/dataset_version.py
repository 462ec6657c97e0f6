"""The tables that decided on the documents of a dataset, each at the snapshot that was read."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from factory.errors import TableNotFound
from factory.explain.stages.removals import Read
from factory.lake import names
from factory.lake.names import TableName
from factory.lake.tables import Lake, Published, unknown_table
from factory.suggestions import unknown_name


@dataclass(frozen=True)
class PinnedTable:
    """A table at a snapshot."""

    table: TableName
    snapshot_id: int
    rows: int


@dataclass(frozen=True)
class DatasetVersion:
    """The snapshots behind a table `deduplicated.<dataset>`.

    `raw` has every document, each of `verdicts` the verdict of a stage, `decisions` the choice among similar
    documents; `compared` are the raw tables of all datasets of the dedup group.
    """

    dataset: str
    kept: PinnedTable
    raw: PinnedTable
    verdicts: tuple[PinnedTable, ...]
    decisions: PinnedTable
    compared: tuple[PinnedTable, ...]

    def read(self, lake: Lake, advance: Callable[[int], object]) -> Read:
        """The tables that decided, at their snapshots; `advance` gets numbers of rows read."""
        tables = (self.kept, self.raw, self.decisions, *self.verdicts, *self.compared)
        pinned = {version.table: version.snapshot_id for version in tables}
        return Read(lake, pinned.keys(), pinned, self.dataset, advance=advance)

    @classmethod
    def newest(cls, lake: Lake, dataset: str) -> DatasetVersion:
        """Return the newest version of `dataset`, or of a variant such as `web__strict`.

        Raises TableNotFound if it was never deduplicated, or if an upstream snapshot has expired.
        """
        table = names.deduplicated(names.dataset(dataset))
        deduplicated = [name.name for name in lake.names_in_file() if name.namespace == table.namespace]
        if not deduplicated:
            raise unknown_table(table)
        if table.name not in deduplicated:
            raise TableNotFound(unknown_name("deduplicated dataset", dataset, deduplicated))
        kept = lake.published(table)
        decided_by = next((source for source in _tables(kept) if source.namespace == "dedup"), None)
        decisions = _upstream(lake, kept, decided_by)
        return cls(
            dataset=dataset,
            kept=_pinned(kept),
            raw=_pinned(_upstream(lake, kept, names.raw(dataset))),
            verdicts=tuple(map(_pinned, _verdicts(lake, decisions, dataset))),
            decisions=_pinned(decisions),
            compared=tuple(
                _pinned(_upstream(lake, decisions, source))
                for source in _tables(decisions)
                if source.namespace == "raw"
            ),
        )


def _tables(published: Published) -> list[TableName]:
    return sorted(map(TableName.parse, published.lineage.upstream))


def _upstream(lake: Lake, published: Published, table: TableName | None) -> Published:
    """Return the state of `table` that `published` was made from."""
    if table is None or str(table) not in published.lineage.upstream:
        raise TableNotFound(
            f"{published.table} at snapshot {published.snapshot_id} does not record which "
            f"{table or 'decisions'} it was made from. Materialize it again: "
            f"factory materialize {published.table}."
        )
    return lake.published_at(table, published.lineage.upstream[str(table)])


def _verdicts(lake: Lake, published: Published, dataset: str) -> Iterator[Published]:
    """Yield the tables of verdicts on a dataset's documents that `published` was made from, last first."""
    for table in _tables(published):
        of_dataset = table.name in (dataset, names.base(dataset)) and table.namespace not in ("raw", "dedup")
        if of_dataset and "kept" in lake.table(table).schema().column_names:
            verdicts = _upstream(lake, published, table)
            yield verdicts
            yield from _verdicts(lake, verdicts, dataset)


def _pinned(published: Published) -> PinnedTable:
    return PinnedTable(published.table, published.snapshot_id, published.rows)
