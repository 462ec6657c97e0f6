"""Tables of a lake that its datasets file does not declare, such as tables of a renamed dataset.

No run makes them again, but commands read them and blends serve them as before.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from typing import TYPE_CHECKING

from factory.counted import counted
from factory.errors import FactoryError
from factory.lake.names import TableName, raw
from factory.settings import Settings

if TYPE_CHECKING:  # importing Dagster takes half a second, which a listing without a datasets file need not
    import dagster as dg


def undeclared_tables(
    settings: Settings, tables: Iterable[TableName], definitions: dg.Definitions | None = None
) -> list[TableName]:
    """Return the members of `tables` that no asset makes; none without a datasets file.

    A file that cannot be read is named on stderr. `definitions` are the file's, if they are loaded.
    """
    candidates = list(tables)
    if settings.datasets is None or not candidates:
        return []
    if definitions is None:
        try:
            from jobs.definitions import defs
        except FactoryError as error:
            sys.stderr.write(f"Undeclared tables are not marked: {error}\n")
            return []
        definitions = defs
    keys = {key.to_user_string() for key in definitions.resolve_asset_graph().get_all_asset_keys()}
    return [table for table in candidates if str(_made_with(table)) not in keys]


def _made_with(table: TableName) -> TableName:
    """The table with the asset that makes this one: rows of registered files come with the raw table."""
    return raw(table.name) if table.namespace == "registered" else table


def undeclared_line(settings: Settings, tables: list[TableName]) -> str:
    """Return one sentence on undeclared tables, empty if there are none."""
    if not tables:
        return ""
    example = f", such as {tables[0]}" if len(tables) > 1 else f", {tables[0]}"
    verb, pronoun = ("are", "them") if len(tables) > 1 else ("is", "it")
    return (
        f"{counted(len(tables), 'table')} of the lake{example}, {verb} not declared in {settings.datasets}: "
        f"no run makes {pronoun} again; `factory tables` marks {pronoun}."
    )
