"""The packed table that somebody means who names another one, and the columns that a blend of it delivers."""

from __future__ import annotations

from collections.abc import Sequence

from factory.lake.names import TableName
from factory.lake.schemas.images import IMAGES
from factory.lake.tables import Lake
from factory.suggestions import nearest, quoted

NAMESPACE = "packed"

_MOST = 12  # tables in a sentence


def delivered_columns(lake: Lake, table: TableName) -> tuple[str, ...]:
    """Return the columns that a blend of a packed table delivers by default: tokens, and its pictures."""
    if lake.exists(table) and IMAGES in lake.table(table).schema().column_names:
        return ("tokens", IMAGES)
    return ("tokens",)


def unpacked_sentence(table: str, names: Sequence[TableName]) -> str:
    """Say that an existing table is not packed, and which table to blend or to make."""
    target = f"{NAMESPACE}.{_dataset(table)}"
    exists = target in map(str, names)
    remedy = f"Blend `{target}`." if exists else f"Run `factory materialize {target}`, then blend that table."
    return f"Table `{table}` is not packed, and a blend reads packed rows. {remedy}"


def unknown_sentence(table: str, names: Sequence[TableName]) -> str:
    """Say that no table is called `table`, and which one of `names` is probably meant."""
    unknown, dataset = f"The lake has no table `{table}`.", _dataset(table)
    candidates = [name.name for name in names if name.namespace == NAMESPACE]
    stages = [str(name) for name in names if name.name == dataset]
    if dataset not in candidates and stages:
        return (
            f"{unknown} Dataset `{dataset}` has {quoted(stages)} and is not packed yet. Run `factory "
            f"materialize {NAMESPACE}.{dataset}` first."
        )
    if near := nearest(dataset, candidates, n=1):
        return f"{unknown} Did you mean `{NAMESPACE}.{near[0]}`? `factory tables` lists the lake's tables."
    if not candidates:
        return f"{unknown} It has no packed table at all. Make one: `factory materialize 'packed.*'`."
    listing = quoted(f"{NAMESPACE}.{name}" for name in candidates[:_MOST])
    return f"{unknown} Packed tables are {listing}; `factory tables` lists all tables."


def _dataset(table: str) -> str:
    return table.rpartition(".")[2].lower()
