"""The corpus of a Python file: the assets that it declares with `factory.api`.

    ASSETS = [articles, notes, *GROUP.assets, *NOTES]

`ASSETS` lists them; without that list every asset with a name in the file counts. A Python file takes the
place of a datasets file in every command: `factory materialize -f my_tables.py '*'`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from types import ModuleType

import dagster as dg
from pyspark.cloudpickle import register_pickle_by_value

from factory.errors import ConfigurationError, FactoryError
from factory.lake import names
from factory.models.python_file import run_file
from factory.orchestration.datasets.corpus import Corpus
from factory.orchestration.host.definitions import require_writers
from factory.orchestration.keys import table_of

ENDING = ".py"
_LIST = "ASSETS"


def python_corpus(path: Path) -> Corpus:
    """Return the corpus of a file; raises ConfigurationError for a file that fails or declares no asset."""
    assets = tuple(_assets(path, _module(path)))
    if not assets:
        raise ConfigurationError(
            f"{path.name} declares no asset. Decorate a function with `@table_asset(...)` or `@source(...)`."
        )
    try:
        require_writers(assets)
    except ConfigurationError as error:
        raise ConfigurationError(f"{path.name}: {error}") from error
    tables = [table_of(key) for asset in assets for key in asset.keys]
    sequences = sorted(
        table.name for table in tables if table.namespace == "packed" and _is_dataset(table.name)
    )
    raw = [table for table in tables if table.namespace == "raw" and not names.holds_bad_records(table)]
    datasets = dict.fromkeys([*sorted(table.name for table in raw), *sequences])
    groups = sorted(
        table.name.removesuffix("_decisions")
        for table in tables
        if table.namespace == "dedup" and table.name.endswith("_decisions")
    )
    return Corpus(
        title=f"the assets of {path.name}",
        assets=assets,
        datasets=tuple(datasets),
        groups=tuple(groups),
        weights=dict.fromkeys(sequences, 1),
    )


def _module(path: Path) -> ModuleType:
    """Run the file; its functions travel to Spark's workers, which need no copy of it."""
    try:
        module = run_file(path)
    except ConfigurationError as error:
        if isinstance(error.__cause__, FactoryError):
            raise ConfigurationError(f"{path.name}: {error.__cause__}") from error
        raise
    register_pickle_by_value(module)
    return module


def _assets(path: Path, module: ModuleType) -> Iterator[dg.AssetsDefinition]:
    """Yield the assets of a file, each once."""
    entries = getattr(module, _LIST, None)
    if entries is None:
        objects = [entry for entry in vars(module).values() if isinstance(entry, dg.AssetsDefinition)]
    else:
        objects = list(entries) if isinstance(entries, Iterable) else [entries]
    for entry in dict.fromkeys(objects):
        if not isinstance(entry, dg.AssetsDefinition):
            raise ConfigurationError(
                f"{_LIST} of {path.name} holds {type(entry).__name__}, which is no asset. Write `*` before a "
                "list, and before `assets` of a dedup group."
            )
        yield entry


def _is_dataset(name: str) -> bool:
    try:
        return names.dataset(name) == name and not name.endswith("_validation")
    except ConfigurationError:  # a side table
        return False
