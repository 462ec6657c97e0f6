"""A table of documents, as a person names it."""

from __future__ import annotations

from factory.lake import names
from factory.lake.names import TableName


def documents_table(name: str) -> TableName:
    """Return the raw table of a dataset, or the table `namespace.name`.

    Raises ConfigurationError for a name that is neither.
    """
    return TableName.parse(name) if "." in name else names.raw(names.dataset(name))
