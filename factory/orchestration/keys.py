"""The asset key of a table, and the table of a key.

A key is the table's full name in one part, `raw.web`, because Dagster's graph shows a key's last part only.
"""

from __future__ import annotations

import dagster as dg

from factory.lake.names import TableName


def key_of(table: TableName) -> dg.AssetKey:
    """Return the asset key of a table."""
    return dg.AssetKey(str(table))


def table_of(key: dg.AssetKey) -> TableName:
    """Return the table of an asset key; raise ConfigurationError for the key of anything else.

    Runs recorded before keys had one part have keys such as `raw/web`.
    """
    return TableName.parse(".".join(key.path))
