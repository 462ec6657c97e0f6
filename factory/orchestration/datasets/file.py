"""The whole datasets file, `datasets.yaml`, as a pydantic model: the sum of the formats and the parts.

    datasets:
      - name: notes
        kind: prose
        format: files
        paths: notes
        include: "**/*.md"
        limits: {word_count: [20, 100_000]}
        variants:
          long: {limits: {word_count: [200, 100_000]}}

Fields have the meaning of the arguments of the same name of `Ingests`, `Round`, `DedupConfig` and
`PackConfig`. A dataset has the fields of its format (`factory.orchestration.datasets.formats`) and of every
part (`factory.orchestration.declare.registry`). `factory.orchestration.datasets.assets` turns the file into
assets.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Annotated, Any, Union

from pydantic import Field, create_model, field_validator, model_validator

from factory.frozen_model import FrozenModel
from factory.lake import names
from factory.orchestration.datasets import formats
from factory.orchestration.datasets.declared_paths import declared_paths
from factory.orchestration.declare.ingest_dataset import Dataset
from factory.orchestration.declare.located_yaml import LocatedYaml
from factory.orchestration.declare.part import Declared, Entry, Part
from factory.orchestration.declare.registry import PARTS


class DatasetsFile(FrozenModel):
    """The whole file; the parts add their sections."""

    datasets: tuple[Dataset, ...] = Field(min_length=1, description="the datasets")

    @field_validator("datasets")
    @classmethod
    def _pages_for_another_dataset_are_kept(cls, datasets: tuple[Dataset, ...]) -> tuple[Dataset, ...]:
        parents = {entry.from_ for entry in datasets if entry.reader.of_pages}
        return tuple(
            entry.model_copy(update={"markup": "keep"})
            if entry.name in parents and entry.markup is None and not entry.reader.of_pages
            else entry
            for entry in datasets
        )

    @model_validator(mode="before")
    @classmethod
    def _fields_and_no_list(cls, values: Any) -> Any:
        if isinstance(values, list):
            raise ValueError(
                "The file is a list. Begin it with `datasets:`, and put the list below that line."
            )
        return values


def datasets_file() -> type[DatasetsFile]:
    """Return the model of a file with the fields of all formats and parts."""
    return _file(formats.FORMATS, tuple(PARTS))


def read_declared(path: Path) -> Declared:
    """Return the file at `path` as its parts see it, checked across its entries.

    Raises ConfigurationError with a sentence for values that do not fit, for entries that do not fit together
    and for paths that do not exist. It needs no Dagster, so commands call it before they import more.
    """
    located = LocatedYaml.read(path)
    with located.naming_places():
        file = located.build(datasets_file())
        declared = Declared(located, file, tuple(_entries(file.datasets)))
        for part in PARTS:
            part.check(declared)
        for entry in declared.datasets:
            list(declared_paths(located, entry.place, entry.dataset))
    return declared


@cache
def _file(entry_types: Sequence[type[Dataset]], parts: Sequence[Part]) -> type[DatasetsFile]:
    variant: Any = _joined("Variant", (), (part.variant for part in parts))
    variants: Any = (dict[str, variant], Dataset.model_fields["variants"])
    datasets: Any = tuple(
        _joined(entry_type.__name__, (entry_type,), (part.dataset for part in parts), variants=variants)
        for entry_type in entry_types
    )
    entry = Annotated[Union[datasets], Field(discriminator="format")]  # noqa: UP007 (a tuple of classes)
    field: Any = (tuple[entry, ...], DatasetsFile.model_fields["datasets"])
    model: type[DatasetsFile] = _joined(
        "DatasetsFile", (DatasetsFile,), (part.file for part in parts), datasets=field
    )
    return model


def _joined(
    name: str, own: Sequence[type[FrozenModel]], fields: Iterable[type[FrozenModel]], **further: Any
) -> Any:
    """Return a model with the fields of `own` and, before them, of `fields` in their order."""
    bases = (*own, *reversed([model for model in fields if model is not FrozenModel]))
    return create_model(name, __base__=bases, __doc__=bases[0].__doc__, **further)


def _entries(datasets: Sequence[Any]) -> Iterator[Entry]:
    """Yield the entry of each dataset, followed by its variants."""
    for number, dataset in enumerate(datasets):
        yield Entry(dataset.name, ("datasets", number), dataset, dataset)
        for name, variant in dataset.variants.items():
            place = ("datasets", number, "variants", name)
            table_name = names.variant(dataset.name, name)
            yield Entry(table_name, place, variant, dataset, name, variant.shares_comparisons)
