"""The corpus that a datasets file declares: the assets that `@table_asset` and `refine` would declare.

`corpus(path)` reads the file (`factory.orchestration.datasets.file` has its fields) and checks it across
entries (`factory.orchestration.datasets.cross_checks`), for example for repeated names or a group of two
kinds. Errors name file, line and field.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import Any

import dagster as dg
from pyspark.sql import DataFrame

from factory.errors import ConfigurationError
from factory.ingest.derived import read_again
from factory.ingest.readers import Ingested, Ingests
from factory.ingest.unsupported_paths import why_missing, why_unreadable
from factory.orchestration.chain.dedup.group import DedupGroup
from factory.orchestration.chain.ingest import made_from, source
from factory.orchestration.chain.ingest_facts import Facts
from factory.orchestration.chain.link import Chain
from factory.orchestration.chain.models.tokenizer import tokenizer, tokenizer_from
from factory.orchestration.chain.refine import refine, variant
from factory.orchestration.datasets.column_types import misfit_checks
from factory.orchestration.datasets.corpus import Corpus
from factory.orchestration.datasets.cross_checks import check_entries
from factory.orchestration.datasets.dataset import Dataset
from factory.orchestration.datasets.dedup_groups import dedup_groups
from factory.orchestration.datasets.empty_fields import empty_field_checks
from factory.orchestration.datasets.facts import check_facts
from factory.orchestration.datasets.file import DatasetsFile, TokenizerEntry
from factory.orchestration.datasets.formats import Chosen
from factory.orchestration.datasets.located_yaml import InvalidValue, LocatedYaml, YamlPath
from factory.orchestration.datasets.models import ModelEntry
from factory.orchestration.datasets.no_files import files_to_read, no_file_to_read
from factory.orchestration.datasets.partition_paths import PARTITION, path_of
from factory.orchestration.datasets.preview import preview
from factory.orchestration.datasets.upstream_checks import check_upstream
from factory.packing.pack import PackConfig
from factory.packing.tokenize import TokenizeConfig


def corpus(path: Path) -> Corpus:
    """The corpus of a file; raises ConfigurationError with a sentence per error."""
    located = LocatedYaml.read(path)
    file = located.build(DatasetsFile)
    try:
        check_entries(file)
        return _corpus(located, file)
    except InvalidValue as error:
        raise ConfigurationError(located.sentence(error.place, error.message)) from error


def _corpus(located: LocatedYaml, file: DatasetsFile) -> Corpus:
    groups = dedup_groups(located, file)
    assets: list[dg.AssetsDefinition] = [asset for group in groups.values() for asset in group.assets]
    datasets_of_tokenizer: dict[str, list[str]] = defaultdict(list)
    partitions = {
        entry.name: entry.partitions.build(entry.name)
        for entry in file.datasets
        if entry.partitions is not None
    }
    above = {entry.name: entry.from_ for entry in file.datasets}
    for name in above:
        root = name
        while (next_above := above[root]) is not None:
            root = next_above
        if root in partitions:
            partitions[name] = partitions[root]
    for number, entry in enumerate(file.datasets):
        datasets_of_tokenizer[entry.tokenizer].append(entry.name)
        partitions_def = partitions.get(entry.name)
        if entry.from_ is None:
            assets.append(_source(located, number, entry, partitions_def))
        else:
            assets.append(_derived(entry, entry.from_, partitions_def))
        assets += _facts(located, number, entry, partitions_def)
        around = file.tokenizers.get(entry.tokenizer, TokenizerEntry()).around
        for chain_of_dataset in _chains(located, number, entry, groups, around, partitions_def):
            assets += chain_of_dataset
    models = {place: _model(located, *place, model) for place, model in file.entries().items()}
    assets += models.values()
    for name, datasets in datasets_of_tokenizer.items():
        assets.append(_tokenizer(located, name, datasets, file.tokenizers.get(name, TokenizerEntry())))
    check_upstream(file, assets)
    return Corpus(
        title=f"the datasets of {located.path.name} ({', '.join(entry.name for entry in file.datasets)})",
        assets=tuple(assets),
        datasets=tuple(name for entry in file.datasets for name in entry.with_variants()),
        groups=tuple(groups),
        weights=file.blend.weights or {entry.name: 1 for entry in file.datasets},
        seed=file.blend.seed,
        pad=file.blend.pad,
        paths={
            entry.name: tuple(_paths(located, ("datasets", number, "paths"), entry))
            for number, entry in enumerate(file.datasets)
            if entry.from_ is None
        },
        partitions=partitions,
    )


def _model(located: LocatedYaml, kind: str, name: str, entry: ModelEntry) -> dg.AssetsDefinition:
    try:
        return entry.declare(name, located.path.parent).asset
    except ConfigurationError as error:
        raise InvalidValue((kind, name), str(error)) from error


def _tokenizer(
    located: LocatedYaml, name: str, datasets: Sequence[str], options: TokenizerEntry
) -> dg.AssetsDefinition:
    if options.file is None:
        return tokenizer(name, datasets, vocabulary=options.vocabulary, around=options.around)
    path = located.path.parent / Path(options.file).expanduser()
    if not path.is_file():
        raise InvalidValue(
            ("tokenizers", name, "file"),
            f"There is no file `{options.file}`. Paths are relative to the folder of this file, "
            f"{located.path.parent.resolve()}.",
        )
    return tokenizer_from(path, name, around=options.around)


def _source(
    located: LocatedYaml, number: int, entry: Dataset, partitions: dg.PartitionsDefinition[str] | None
) -> dg.AssetsDefinition:
    """The asset that reads a dataset, partition by partition if the dataset is partitioned."""
    place: YamlPath = ("datasets", number, "paths")
    declared_paths = list(_paths(located, place, entry))

    def paths_of(partition: str | None) -> list[Path]:
        if partition is None:
            return declared_paths
        return [path_of(path, partition) for path in declared_paths]

    def files(partition: str | None) -> list[Path]:
        return [path for path in paths_of(partition) if path.exists()]

    def read(ingests: Ingests, partition: str | None) -> Ingested:
        existing = files(partition)
        _refuse_mistakes(located, number, entry, existing)
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
        files=files,
        checks=[*misfit_checks(entry), *empty_field_checks(entry)],
    )

    # The text of these functions is hashed into the code version of the table.
    def documents(ingests: Ingests) -> Ingested:
        return read(ingests, None)

    def of_partition(ingests: Ingests, partition: str) -> Ingested:
        return read(ingests, partition)

    return declare(documents if partitions is None else of_partition)


def _refuse_mistakes(yaml: LocatedYaml, number: int, entry: Dataset, paths: Sequence[Path]) -> None:
    """Raise ConfigurationError if no first record can be read, or if none has a field that is declared."""
    if not entry.reader.many_records:  # the reader names them, and trees are too large to list twice
        return
    if entry.max_rejected == 1:
        return
    files = list(files_to_read(entry, paths))
    sentences = [
        yaml.sentence(("datasets", number, *mistake.place), mistake.sentence)
        for mistake in preview(entry, files, yaml.path.parent).mistakes
        if mistake.ends_run
    ]
    if sentences:
        raise ConfigurationError("\n".join(sentences))


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


def _facts(
    yaml: LocatedYaml, number: int, entry: Dataset, partitions: dg.PartitionsDefinition[str] | None
) -> Iterator[dg.AssetsDefinition]:
    """The assets of a dataset's facts; raises InvalidValue for facts that do not exist."""
    folder = yaml.path.parent
    rounds = [*entry.in_rounds(), *chain(*(variant.in_rounds() for variant in entry.variants.values()))]
    try:
        check_facts(entry.facts, rounds, folder)
    except ConfigurationError as error:
        raise InvalidValue(("datasets", number, "facts"), str(error)) from error
    if entry.facts:
        link = Facts([facts.source(folder) for facts in entry.facts])
        yield from link.extend(Chain.from_raw(entry.name, entry.owners, partitions))


def _paths(located: LocatedYaml, place: YamlPath, entry: Dataset) -> Iterator[Path]:
    """Yield the absolute paths of a dataset; raises InvalidValue if a path or partition folder is missing."""
    for number, written in enumerate(entry.paths):
        try:
            path = located.path.parent / Path(written).expanduser()
            above = next(folder for folder in (path, *path.parents) if PARTITION not in str(folder))
            exists = above.exists()
        except (OSError, RuntimeError) as error:  # too long a name, the home of an unknown user
            reason = getattr(error, "strerror", None) or str(error).rstrip(".")
            raise InvalidValue(
                (*place, number), f"`{written}` cannot be looked at ({reason}). Correct it."
            ) from error
        if not exists:
            raise InvalidValue((*place, number), _why_missing(written, path, entry, located.path.parent))
        yield path


def _why_missing(name: str, path: Path, entry: Dataset, folder: Path) -> str:
    """Say why a path of the file does not exist, and how it is resolved."""
    patterns = () if isinstance(entry, Chosen) else entry.patterns
    if sentence := why_missing(name, path, patterns):
        return sentence
    if name.startswith("~"):
        return f"`{name}` does not exist. `~` is a home folder: the path is {path}. Correct it."
    return f"`{name}` does not exist. Paths are relative to the folder of this file, {folder}."


def _chains(
    located: LocatedYaml,
    number: int,
    entry: Dataset,
    groups: Mapping[str, DedupGroup],
    around: TokenizeConfig,
    partitions: dg.PartitionsDefinition[str] | None,
) -> Iterator[Chain]:
    """The chain after `raw`, for the dataset and its variants."""
    place: YamlPath = ("datasets", number)

    def packing(below: YamlPath, options: Mapping[str, Any]) -> PackConfig | None:
        if "token_bytes" in options:
            raise InvalidValue((*below, "token_bytes"), "It follows from the tokenizer. Leave it out.")
        return located.part(below, PackConfig, options) if options else None

    of_dataset = refine(
        entry.name,
        dedup_group=groups[entry.dedup_group()],
        rounds=entry.in_rounds(),
        tokenizer=entry.tokenizer,
        packing=packing((*place, "packing"), entry.packing),
        around=around,
        validation=entry.validation,
        owners=entry.owners,
        partitions_def=partitions,
    )
    yield of_dataset
    for name, options in entry.variants.items():
        yield variant(
            of_dataset,
            name,
            rounds=None if options.shares_comparisons else options.in_rounds(),
            dedup_group=groups[entry.dedup_group(name)],
            packing=packing((*place, "variants", name, "packing"), options.packing),
        )
