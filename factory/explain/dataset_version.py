"""The tables that decided on the documents of a dataset, each at the snapshot that was read."""

from __future__ import annotations

from dataclasses import dataclass

from factory.errors import TableNotFound
from factory.lake import names
from factory.lake.names import TableName
from factory.lake.tables import Lake, Published
from factory.suggestions import unknown_name


@dataclass(frozen=True)
class Pinned:
    """A table at a snapshot."""

    table: TableName
    snapshot_id: int
    rows: int


@dataclass(frozen=True)
class DatasetVersion:
    """The snapshots behind a table `deduplicated.<dataset>`.

    `raw` has every document, `verdicts` the filters' verdict on each, `decisions` the choice among similar
    documents; `compared` are the raw tables of all datasets of the dedup group.
    """

    dataset: str
    kept: Pinned
    raw: Pinned
    verdicts: Pinned
    decisions: Pinned
    compared: tuple[Pinned, ...]

    @classmethod
    def newest(cls, lake: Lake, dataset: str) -> DatasetVersion:
        """Return the newest version of `dataset`, or of a variant such as `web__strict`.

        Raises TableNotFound if it was never deduplicated, or if an upstream snapshot has expired.
        """
        table = names.deduplicated(names.dataset(dataset))
        known = [it.name for it in lake.names() if it.namespace == table.namespace]
        if known and table.name not in known:
            raise TableNotFound(unknown_name("deduplicated dataset", dataset, known))
        kept = lake.published(table)
        decisions = _upstream(lake, kept, next((it for it in _tables(kept) if it.namespace == "dedup"), None))
        made_of = _tables(decisions)
        return cls(
            dataset=dataset,
            kept=_pinned(kept),
            raw=_pinned(_upstream(lake, kept, names.raw(dataset))),
            verdicts=_pinned(_upstream(lake, decisions, names.verdicts(made_of, dataset))),
            decisions=_pinned(decisions),
            compared=tuple(
                _pinned(_upstream(lake, decisions, it)) for it in made_of if it.namespace == "raw"
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


def _pinned(published: Published) -> Pinned:
    return Pinned(published.table, published.snapshot_id, published.rows)
