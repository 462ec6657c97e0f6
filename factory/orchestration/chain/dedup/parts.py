"""The tables of a dedup group: how each is declared, and which documents may be compared."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import dagster as dg

from factory.errors import ConfigurationError
from factory.lake import names
from factory.lake.names import TableName
from factory.lake.schemas.base import TableSchema
from factory.orchestration.chain.link import Chain
from factory.orchestration.chain.texts import Member, Texts
from factory.orchestration.groups import comparison_group
from factory.orchestration.table.declaration import AssetResult
from factory.orchestration.table.table_asset import table_asset
from factory.spark.session import NARROW_ROWS_PER_ARROW_BATCH

COMPARED = ("bags", "vocabulary", "signatures", "buckets", "edges")
"""Parts that a variant shares with its group."""


def members_apart(group: str, datasets: Sequence[str | Chain]) -> tuple[Member, ...]:
    """Return the members of a group.

    Raises ConfigurationError for no datasets, for one dataset twice, and for two variants of one dataset.
    """
    if not datasets:
        raise ConfigurationError(f"Dedup group `{group}` has no datasets. Name at least one.")
    members = tuple(map(_member, datasets))
    by_base: dict[str, str] = {}
    for dataset in (member.dataset for member in members):
        if names.base(dataset) not in by_base:
            by_base[names.base(dataset)] = dataset
            continue
        other = by_base[names.base(dataset)]
        if other == dataset:
            raise ConfigurationError(f"Dedup group `{group}` names `{dataset}` twice. Name it once.")
        raise ConfigurationError(
            f"Dedup group `{group}` holds `{other}` and `{dataset}`, which have the same documents. "
            "Give each variant a group of its own."
        )
    return members


def _member(dataset: str | Chain) -> Member:
    """The member at the end of a chain, or of a dataset that only filters its raw documents."""
    if isinstance(dataset, Chain):
        return Member.at_end_of(dataset)
    return Member(names.dataset(dataset), names.raw(dataset), names.filtered(dataset))


@dataclass(frozen=True)
class Declaring:
    """Declares the tables `dedup.<group>_<part>` of a group.

    They read those parts that the group `compared` made up to the edges: of the group itself, or of the group
    that it is a variant of.
    """

    group: str
    compared: str
    texts: Texts
    owners: tuple[str, ...] = ()
    graph_group: str | None = None

    def __call__(  # type: ignore[no-untyped-def]
        self,
        part: str,
        schema: TableSchema,
        *parts: str,
        reads_texts: bool = False,
        tables: Mapping[str, TableName] | None = None,
        **options,
    ):
        """The decorator of a part that reads other `parts`.

        The function also gets the documents if it `reads_texts`, and `tables` by argument. Its docstring,
        with the name of the group, is the description.
        """
        upstream = {
            other: names.dedup(self.compared if other in COMPARED else self.group, other) for other in parts
        }

        def declare(function: Callable[..., AssetResult]) -> dg.AssetsDefinition:
            about = (inspect.getdoc(function) or "").rstrip(".")
            return table_asset(
                namespace="dedup",
                name=f"{self.group}_{part}",
                schema=schema,
                upstream=upstream | (self.texts.tables if reads_texts else {}) | dict(tables or {}),
                description=f"{about}, in dedup group `{self.group}`.",
                owners=self.owners,
                asset_group=comparison_group(self.group),
                graph_group=self.graph_group,
                # Texts and bags bypass these batches.
                **{"rows_per_batch": NARROW_ROWS_PER_ARROW_BATCH, **options},
            )(function)

        return declare
