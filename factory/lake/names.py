"""The law of table names: which stage writes which namespace and table.

A table is `namespace.name`. An asset's key is the same pair, so the argument `raw_python_code` of an
asset means the table `raw.python_code`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from factory.errors import ConfigurationError

INGEST, FILTERS, CLUSTERS, DEDUP, DEPSORT, PACKING = (
    "ingest",
    "filters",
    "clusters",
    "dedup",
    "depsort",
    "packing",
)

STAGE_OF_NAMESPACE = {
    "raw": INGEST,
    "registered": INGEST,
    "signals": FILTERS,
    "filtered": FILTERS,
    "clusters": CLUSTERS,
    "dedup": DEDUP,
    "deduplicated": DEDUP,
    "depsort": DEPSORT,
    "sorted": DEPSORT,
    "models": PACKING,  # the tokenizer is trained by the stage that uses it
    "tokenized": PACKING,
    "packed": PACKING,
    "synthesis": "synthesis",
}

_PART = re.compile(r"[a-z][a-z0-9_]*")


@dataclass(frozen=True, order=True)
class TableName:
    """A table of the lake, `namespace.name`."""

    namespace: str
    name: str

    def __post_init__(self) -> None:
        if self.namespace not in STAGE_OF_NAMESPACE:
            known = ", ".join(sorted(STAGE_OF_NAMESPACE))
            raise ConfigurationError(f"`{self.namespace}` is no namespace of the lake. Use one of: {known}.")
        if not _PART.fullmatch(self.name):
            raise ConfigurationError(
                f"`{self.name}` is no table name. Use lower-case letters, digits and underscores."
            )

    def __str__(self) -> str:
        return f"{self.namespace}.{self.name}"

    @property
    def stage(self) -> str:
        """The stage whose code writes the table."""
        return STAGE_OF_NAMESPACE[self.namespace]

    @property
    def identifier(self) -> tuple[str, str]:
        """The identifier PyIceberg takes."""
        return (self.namespace, self.name)

    def suffixed(self, suffix: str) -> TableName:
        """The table beside this one, e.g. `raw.web` -> `raw.web_rejected`."""
        return TableName(self.namespace, f"{self.name}_{suffix}")

    @classmethod
    def parse(cls, text: str) -> TableName:
        """`raw.web` -> TableName; raises ConfigurationError for anything else."""
        namespace, dot, name = text.partition(".")
        if not dot:
            raise ConfigurationError(
                f"`{text}` is no table. Write it as namespace.name, for example raw.web."
            )
        return cls(namespace, name)

    @classmethod
    def from_argument(cls, argument: str) -> TableName:
        """`raw_web` -> `raw.web`: the table an asset's argument names."""
        namespace, underscore, name = argument.partition("_")
        if not underscore:
            raise ConfigurationError(f"Argument `{argument}` names no table. Write it as namespace_name.")
        return cls(namespace, name)


def raw(dataset: str) -> TableName:
    return TableName("raw", dataset)


def rejected(dataset: str) -> TableName:
    return TableName("raw", f"{dataset}_rejected")


def signals(dataset: str) -> TableName:
    return TableName("signals", dataset)


def filtered(dataset: str) -> TableName:
    return TableName("filtered", dataset)


def dedup(group: str, part: str) -> TableName:
    """A table of a dedup group, e.g. `dedup.<group>_decisions` for part `decisions`."""
    return TableName("dedup", f"{group}_{part}")


def deduplicated(dataset: str) -> TableName:
    return TableName("deduplicated", dataset)


def depsort(dataset: str, part: str) -> TableName:
    """A table of the dependency sort: part is `symbols` or `dependencies`."""
    return TableName("depsort", f"{dataset}_{part}")


def in_order(dataset: str) -> TableName:
    return TableName("sorted", dataset)


def model(name: str) -> TableName:
    return TableName("models", name)


def tokenized(dataset: str) -> TableName:
    return TableName("tokenized", dataset)


def packed(dataset: str) -> TableName:
    return TableName("packed", dataset)


def placements(dataset: str) -> TableName:
    return TableName("packed", f"{dataset}_placements")
