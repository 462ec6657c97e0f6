"""The corpus that a datasets file declares: the assets that `@table_asset` and `refine` would declare.

`corpus(path)` reads the file, checks it across entries, and folds the parts
(`factory.orchestration.declare.registry`): each extends the chain of every dataset and variant by its links.
Errors name file, line and field.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain
from pathlib import Path

import dagster as dg
from pyspark.sql import DataFrame

from factory.errors import ConfigurationError
from factory.ingest.derived import read_again
from factory.ingest.readers import Ingested, Ingests
from factory.ingest.unsupported_paths import why_unreadable
from factory.orchestration.chain.ingest import made_from, source
from factory.orchestration.chain.link import Chain, linked
from factory.orchestration.chain.synthesis import JobDeclaration, synthesize
from factory.orchestration.datasets.column_types import misfit_checks
from factory.orchestration.datasets.corpus import Corpus
from factory.orchestration.datasets.declared_paths import declared_paths
from factory.orchestration.datasets.empty_fields import empty_field_checks
from factory.orchestration.datasets.file import read_declared
from factory.orchestration.datasets.no_files import files_to_read, no_file_to_read
from factory.orchestration.datasets.preview import preview
from factory.orchestration.datasets.python_file import ENDING, python_corpus
from factory.orchestration.datasets.upstream_checks import check_upstream
from factory.orchestration.declare.blend import BlendSection
from factory.orchestration.declare.ingest_dataset import Dataset
from factory.orchestration.declare.ingest_partition_paths import path_of
from factory.orchestration.declare.located_yaml import InvalidValue, LocatedYaml, YamlPath
from factory.orchestration.declare.part import Declared, Entry, Part
from factory.orchestration.declare.registry import PARTS
from factory.orchestration.declare.synthesis import Replicas, Synthesis
from factory.synthesis.replicas import usable_cores
from spark_udfs.ingest.place import Place


def corpus(path: Path) -> Corpus:
    """The corpus of a file, YAML or Python; raises ConfigurationError with a sentence per error."""
    if path.suffix == ENDING:
        return python_corpus(path)
    file = read_declared(path)
    with file.located.naming_places():
        return _corpus(file)


def _corpus(file: Declared) -> Corpus:
    of_no_dataset = _assets_of_parts(file)
    assets = [*chain.from_iterable(_assets_of(entry, file) for entry in file.entries), *of_no_dataset]
    check_upstream(file, assets)
    blend = file.section(BlendSection).blend
    datasets = ", ".join(entry.name for entry in file.datasets)
    return Corpus(
        title=f"the datasets of {file.located.path.name} ({datasets})",
        assets=tuple(assets),
        datasets=tuple(entry.name for entry in file.entries),
        groups=tuple(file.groups),
        weights=blend.weights or {entry.name: 1 for entry in file.datasets},
        seed=blend.seed,
        pad=blend.pad,
        paths={
            entry.name: tuple(declared_paths(file.located, entry.place, entry.dataset))
            for entry in file.datasets
            if entry.dataset.from_ is None
        },
        partitions={
            entry.name: partitions
            for entry in file.datasets
            if (partitions := file.chains[entry.name].partitions_def) is not None
        },
    )


def _assets_of_parts(file: Declared) -> list[dg.AssetsDefinition]:
    """Extend the chain of every entry part by part; return the assets of no single dataset.

    A variant that shares the comparisons of its dataset has its chain up to these.
    """
    for entry in file.entries:
        raw = Chain.from_raw(entry.base, entry.dataset.owners)
        file.chains[entry.name] = raw.for_variant(entry.name)
    assets: list[dg.AssetsDefinition] = []
    compared = False
    for part in PARTS:
        assets += part.assets(file)
        compared = compared or part.compares
        for entry in file.entries:
            if entry.shares_comparisons and not compared:
                _refuse_own_options(entry, part)
                file.chains[entry.name] = file.chains[entry.base].for_variant(entry.name)
            else:
                file.chains[entry.name] = linked(file.chains[entry.name], part.links(entry, file))
    return assets


def _refuse_own_options(entry: Entry, part: Part) -> None:
    """Raise InvalidValue if a variant that shares comparisons sets an option that comes before these."""
    for name in part.variant.model_fields:
        if name in entry.values.model_fields_set:
            raise InvalidValue(
                (*entry.place, name),
                f"`{entry.name}` takes the comparisons of `{entry.base}`, so it has no `{name}` of its "
                "own. Leave it out, or declare another variant for it.",
            )


def _assets_of(entry: Entry, file: Declared) -> Iterator[dg.AssetsDefinition]:
    """Yield the raw documents of a dataset, and the assets of its chain or of a variant's."""
    if entry.variant is None:
        yield from _raw_assets(entry, file)
    yield from file.chains[entry.name]


def _raw_assets(entry: Entry, file: Declared) -> Iterator[dg.AssetsDefinition]:
    """Yield the assets of the raw documents: read from files, made from another dataset, or by a job."""
    dataset, partitions = entry.dataset, file.chains[entry.name].partitions_def
    if isinstance(dataset, Synthesis):
        yield from _synthesized(entry, dataset, file.folder)
    elif dataset.from_ is not None:
        yield _derived(dataset, dataset.from_, partitions)
    else:
        yield _source(file.located, entry.place, dataset, partitions)


def _source(
    located: LocatedYaml, above: YamlPath, entry: Dataset, partitions: dg.PartitionsDefinition[str] | None
) -> dg.AssetsDefinition:
    """The asset that reads a dataset, partition by partition if the dataset is partitioned."""
    place = (*above, "paths")
    every_path = list(declared_paths(located, above, entry))

    def paths_of(partition: str | None) -> list[Place]:
        if partition is None:
            return every_path
        return [path_of(path, partition) for path in every_path]

    def files(partition: str | None) -> list[Place]:
        return [path.canonical() for path in paths_of(partition) if path.kind() is not None]

    def read(ingests: Ingests, partition: str | None) -> Ingested:
        existing = files(partition)
        _refuse_mistakes(located, above, entry, existing)
        try:
            ingested = entry.read(ingests, existing) if existing else None
        except (ConfigurationError, OSError) as error:
            sentence = why_unreadable(error) if isinstance(error, OSError) else str(error)
            raise ConfigurationError(located.sentence(place, sentence)) from error
        if ingested is None or ingested.empty:
            message = no_file_to_read(entry, paths_of(partition), located.path.parent)
            raise ConfigurationError(located.sentence(place, message))
        return ingested.limited(entry.max_rejected)

    declare = source(
        name=entry.name,
        config=entry.reading(),
        description=f"The documents of `{entry.name}`, read as {located.path.name} says: "
        f"{(type(entry).__doc__ or '').lower()}",
        owners=entry.owners,
        partitions_def=partitions,
        files=lambda partition: entry.state_places(files(partition)),
        checks=[*misfit_checks(entry), *empty_field_checks(entry)],
        has_images=entry.has_images,
    )

    # The text of these functions is hashed into the code version of the table.
    def documents(ingests: Ingests) -> Ingested:
        return read(ingests, None)

    def of_partition(ingests: Ingests, partition: str) -> Ingested:
        return read(ingests, partition)

    return declare(documents if partitions is None else of_partition)


def _refuse_mistakes(yaml: LocatedYaml, above: YamlPath, entry: Dataset, paths: Sequence[Place]) -> None:
    """Raise ConfigurationError if no first record can be read, or if none has a field that is declared."""
    if not entry.reader.many_records:  # the reader names them, and trees are too large to list twice
        return
    if entry.max_rejected == 1:
        return
    files = list(files_to_read(entry, paths))
    sentences = [
        yaml.sentence((*above, *mistake.place), mistake.sentence)
        for mistake in preview(entry, files, yaml.path.parent).mistakes
        if mistake.ends_run
    ]
    if sentences:
        raise ConfigurationError("\n".join(sentences))


def _synthesized(entry: Entry, dataset: Synthesis, folder: Path) -> list[dg.AssetsDefinition]:
    """The assets of a job, which errors about its worker name by its place in the file."""
    n_cores = usable_cores()
    replicas = dataset.replicas or Replicas(most=n_cores, least=n_cores)
    caps = {"doc_id": dataset.caps.document, "repository": dataset.caps.repository}
    job = JobDeclaration(
        dataset=dataset.name,
        source=dataset.source_table,
        worker=dataset.worker,
        options=dataset.worker_options,
        folder=folder,
        size=dataset.size,
        seed=dataset.seed,
        slice_items=dataset.slice,
        item_seconds=dataset.item_seconds,
        priority=dataset.priority,
        least=replicas.least,
        most=replicas.most,
        caps={column: most for column, most in caps.items() if most is not None},
        max_rejected=dataset.max_rejected,
    )
    try:
        return synthesize(job, dataset.owners)
    except ConfigurationError as error:
        raise InvalidValue((*entry.place, "worker"), str(error)) from error


def _derived(
    entry: Dataset, parent: str, partitions: dg.PartitionsDefinition[str] | None
) -> dg.AssetsDefinition:
    """The asset that reads the texts of another dataset."""

    @made_from(
        parent,
        name=entry.name,
        config=entry.reading(),
        description=f"The documents of `{entry.name}`, made from `{parent}`: its texts as {entry.format}.",
        owners=entry.owners,
        partitions_def=partitions,
    )
    def documents(documents: DataFrame) -> Ingested:
        return read_again(documents, entry.name, entry.format, entry.options).limited(entry.max_rejected)

    return documents
