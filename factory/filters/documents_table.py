"""A table of documents, as a person names it."""

from __future__ import annotations

from factory.errors import ConfigurationError
from factory.lake import names
from factory.lake.names import TableName

_WITH_TEXTS = ("raw", "deduplicated")


def documents_table(name: str) -> TableName:
    """Return the raw table of a dataset, or the table `namespace.name`.

    Raises ConfigurationError for a name that is neither, and for a table that holds no texts.
    """
    table = TableName.parse(name) if "." in name else names.raw(names.dataset(name))
    if table.namespace not in _WITH_TEXTS:
        raise ConfigurationError(
            f"{table} holds no texts. Name a dataset, or its table in {' or '.join(_WITH_TEXTS)}."
        )
    return table
