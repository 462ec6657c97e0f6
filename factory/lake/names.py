"""Table names: which stage writes which namespace and table.

A table is `namespace.name`. The key of its asset is this name in one part, and the argument `raw_python_code`
of an asset means the table `raw.python_code`.

A variant is a dataset named after another: `web__strict` reads `raw.web` and has every later table to itself.
Filter rounds before the last write `filtered.web_r1`, `filtered.web_r2` and so on; the last round has the
plain name. The values of a rule that reads tables are a part of a round's signals, `signals.web_by_quality`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import partial

from factory.errors import ConfigurationError
from factory.suggestions import unknown_name

INGEST, FILTERS, CLUSTERS, DEDUP = "ingest", "filters", "clusters", "dedup"
DEPSORT, MODELS, PACKING = "depsort", "models", "packing"
IMAGES, SYNTHESIS = "images", "synthesis"
OWN = "own"  # the namespace of the tables that users declare, and the name in place of their stage

STAGE_OF_NAMESPACE = {
    "raw": INGEST,
    "registered": INGEST,
    "facts": INGEST,
    "images": IMAGES,
    OWN: OWN,
    "signals": FILTERS,
    "filtered": FILTERS,
    "clusters": CLUSTERS,
    "dedup": DEDUP,
    "deduplicated": DEDUP,
    "depsort": DEPSORT,
    "sorted": DEPSORT,
    "models": MODELS,
    "tokenized": PACKING,
    "packed": PACKING,
    "synthesis": SYNTHESIS,
}

VARIANT = "__"  # between the names of a dataset and its variant
# Suffixes of side tables.
PARTS = ("rejected", "symbols", "dependencies", "placements", "verdicts", "limits", "rows", "validation")
# Suffixes of the tables beside the clusters of a dataset.
CLUSTER_PARTS = (
    *("embedder", "vectors", "coarse", "fine", "cells", "proxy", "losses", "verdicts"),
    *("categories", "balance", "distribution"),
)
_VALIDATION = "_validation"
BY = "_by_"  # between the names of a round and of a rule with signals of its own

_PART = re.compile(r"[a-z][a-z0-9_]*")
_ROUND = re.compile(r"_r[1-9][0-9]*$")


@dataclass(frozen=True, order=True)
class TableName:
    """A table of the lake, `namespace.name`."""

    namespace: str
    name: str

    def __post_init__(self) -> None:
        if self.namespace not in STAGE_OF_NAMESPACE:
            raise ConfigurationError(unknown_name("namespace", self.namespace, STAGE_OF_NAMESPACE))
        if not _PART.fullmatch(self.name):
            raise ConfigurationError(
                f"`{self.name}` is not a table name. Use lower-case letters, digits and underscores."
            )

    def __str__(self) -> str:
        return f"{self.namespace}.{self.name}"

    @property
    def stage(self) -> str:
        """The stage that writes the table."""
        return STAGE_OF_NAMESPACE[self.namespace]

    @property
    def identifier(self) -> tuple[str, str]:
        """The identifier for PyIceberg."""
        return (self.namespace, self.name)

    def suffixed(self, suffix: str) -> TableName:
        """Return the side table, e.g. `raw.web` -> `raw.web_rejected`."""
        return TableName(self.namespace, f"{self.name}_{suffix}")

    @classmethod
    def parse(cls, text: str) -> TableName:
        """Parse `raw.web`; raise ConfigurationError for anything else."""
        namespace, dot, name = text.partition(".")
        if not dot:
            raise ConfigurationError(
                f"`{text}` is not a table. Write it as namespace.name, for example raw.web."
            )
        return cls(namespace, name)

    @classmethod
    def from_argument(cls, argument: str) -> TableName:
        """Return the table that an asset's argument names: `raw_web` -> `raw.web`."""
        namespace, underscore, name = argument.partition("_")
        if not underscore:
            raise ConfigurationError(f"Argument `{argument}` names no table. Write it as namespace_name.")
        return cls(namespace, name)


def dataset(name: str) -> str:
    """Return `name` if it is a valid name of a dataset or variant, `web` or `web__strict`.

    Raises ConfigurationError for other names and for names reserved for side tables.
    """
    of, variant, variant_name = name.partition(VARIANT)
    for part in (of, variant_name) if variant else (of,):
        if not _PART.fullmatch(part) or VARIANT in part or part.endswith("_"):
            raise ConfigurationError(
                f"`{name}` is not a dataset name. Use lower-case letters, digits and single underscores; "
                "two underscores begin the name of a variant, as in web__strict."
            )
        taken = _ROUND.search(part) or re.search(f"_({'|'.join(PARTS)})$|{BY}", part)
        if taken:
            raise ConfigurationError(
                f"`{name}` is not a dataset name, because names in `{taken[0]}` are reserved for further "
                "tables of a dataset. Choose another."
            )
    return name


def variant(of: str, name: str) -> str:
    """Return the dataset name of variant `name` of dataset `of`."""
    return dataset(f"{of}{VARIANT}{name}")


def variants(tables: Iterable[TableName], of: str) -> list[str]:
    """Return the variants of dataset `of` with verdicts or deduplicated documents in `tables`, sorted."""
    of_datasets = ("filtered", "deduplicated")
    found = {table.name for table in tables if table.namespace in of_datasets and not is_in_round(table.name)}
    return sorted(name for name in found if name.startswith(f"{of}{VARIANT}"))


def base(dataset: str) -> str:
    """Return the dataset with the raw table: `web` for web, web__strict and web_r1."""
    return _ROUND.sub("", dataset).partition(VARIANT)[0]


def in_round(dataset: str, number: int, of: int) -> str:
    """Return the table name of round `number` (from 1) of `of`; the last round has the dataset's name."""
    return dataset if number == of else f"{dataset}_r{number}"


def is_in_round(name: str) -> bool:
    """Whether the name belongs to a round before the last."""
    return _ROUND.search(name) is not None


def signals(name: str, part: str = "") -> TableName:
    """A part of the signals of a round or dataset; the rules that read documents alone have the part ""."""
    return TableName("signals", f"{name}{BY}{part}" if part else name)


def limits(name: str) -> TableName:
    """The limits of a round that are shares of its documents."""
    return TableName("signals", f"{name}_limits")


# The tables that are named after their dataset or model.
registered = partial(TableName, "registered")
filtered = partial(TableName, "filtered")
deduplicated = partial(TableName, "deduplicated")
sorted_table = partial(TableName, "sorted")
model = partial(TableName, "models")
tokenized = partial(TableName, "tokenized")
packed = partial(TableName, "packed")


def raw(dataset: str) -> TableName:
    """The documents of a dataset; variants share their dataset's table."""
    return TableName("raw", base(dataset))


def facts(dataset: str) -> TableName:
    """What others know about the documents of a dataset; variants share their dataset's table."""
    return TableName("facts", base(dataset))


def synthesis(dataset: str) -> TableName:
    """The documents that a job works on, and what became of each; variants share their dataset's table."""
    return TableName("synthesis", base(dataset))


def images(dataset: str) -> TableName:
    """The facts of the pictures of a dataset; variants share their dataset's table."""
    return TableName("images", base(dataset))


def rejected(dataset: str) -> TableName:
    """The bad records of a dataset; variants share their dataset's table."""
    return TableName("raw", f"{base(dataset)}_rejected")


def dedup(group: str, part: str) -> TableName:
    """A table of a dedup group, e.g. `dedup.<group>_decisions` for part `decisions`."""
    return TableName("dedup", f"{group}_{part}")


def clusters(dataset: str, part: str = "") -> TableName:
    """The clusters of a dataset's documents, or a further table, such as `clusters.<dataset>_coarse`."""
    return TableName("clusters", f"{dataset}_{part}" if part else dataset)


def holds_bad_records(table: TableName) -> bool:
    """Whether a table holds the bad records of a dataset."""
    return table.namespace == "raw" and table.name.endswith("_rejected")


def verdicts(tables: Iterable[TableName], dataset: str, namespace: str = "filtered") -> TableName:
    """The verdicts on a dataset's documents; a variant without its own shares its dataset's table."""
    own = TableName(namespace, dataset)
    return own if own in tables else TableName(namespace, base(dataset))


def depsort(dataset: str, part: str) -> TableName:
    """A table of the dependency sort: part is `symbols` or `dependencies`."""
    return TableName("depsort", f"{dataset}_{part}")


def validation(dataset: str) -> str:
    """Return the name under which the validation part of a dataset is packed."""
    return f"{dataset}{_VALIDATION}"


def is_validation(table: TableName) -> bool:
    """Whether a table holds the packed sequences of a validation part."""
    return table.namespace == "packed" and table.name.endswith(_VALIDATION)


def dataset_of_packed(table: TableName) -> str:
    """Return the dataset or variant of the documents in a packed table, of training or validation."""
    return table.name.removesuffix(_VALIDATION)


def packed_parts(tables: Iterable[TableName], dataset: str) -> list[str]:
    """Return the names of the packed parts of a dataset: its own, and its validation part's, if any."""
    parts = (dataset, validation(dataset))
    return [part for part in parts if part == dataset or packed(part) in tables]


def placements(dataset: str) -> TableName:
    """The segments of a packed dataset, or of its validation part."""
    return TableName("packed", f"{dataset}_placements")
