"""The corpus that a datasets file declares: the assets that `@table_asset` and `refine` would declare.

`corpus(path)` reads the file (`factory.orchestration.datasets.file` has its fields) and checks it across
entries, for example for repeated names or a group of two kinds. Errors name file, line and field.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import dagster as dg

from factory.dedup.config import DedupConfig
from factory.dedup.repository_config import RepositoryConfig
from factory.errors import ConfigurationError
from factory.ingest.readers import Ingested, Ingests
from factory.lake import names
from factory.orchestration.chain.dedup import DedupGroup, Kind, dedup_group, dedup_variant
from factory.orchestration.chain.ingest import source
from factory.orchestration.chain.link import Chain
from factory.orchestration.chain.models import tokenizer, tokenizer_from
from factory.orchestration.chain.refine import refine, variant
from factory.orchestration.datasets.corpus import Corpus
from factory.orchestration.datasets.file import Dataset, DatasetsFile, Tokenizer, Variant
from factory.orchestration.datasets.located_yaml import InvalidValue, LocatedYaml, Place
from factory.orchestration.datasets.no_files import no_file_to_read
from factory.orchestration.datasets.partition_paths import PARTITION, path_of
from factory.packing.pack import PackConfig
from factory.packing.tokenize import TokenizeConfig
from factory.suggestions import unknown_name


def corpus(path: Path) -> Corpus:
    """The corpus of a file; raises ConfigurationError with a sentence per error."""
    located = LocatedYaml.read(path)
    file = located.build(DatasetsFile)
    try:
        _check(file)
        return _corpus(located, file)
    except InvalidValue as wrong:
        raise ConfigurationError(located.sentence(wrong.place, wrong.said)) from wrong


def _check(file: DatasetsFile) -> None:
    """Raise InvalidValue for repeated or unknown names, and for datasets that do not fit together."""
    line_of: dict[str, int] = {}
    kinds: dict[str, Dataset] = {}
    for number, entry in enumerate(file.datasets):
        other = line_of.setdefault(entry.name, number)
        if other != number:
            raise InvalidValue(
                ("datasets", number, "name"),
                f"`{entry.name}` is the name of datasets[{other}] already. Give each dataset its own.",
            )
        like = kinds.setdefault(_group(entry), entry)
        if like.kind != entry.kind:
            raise InvalidValue(
                ("datasets", number, "group"),
                f"`{_group(entry)}` holds `{like.name}`, which is {like.kind}, and `{entry.name}` is "
                f"{entry.kind}. Give it another group.",
            )
    _check_decisions(file)
    groups = set(kinds) | {_group(it, of) for it in file.datasets for of in it.variants}
    for name, options in file.groups.items():
        if name not in groups:
            raise InvalidValue(("groups", name), unknown_name("group", name, sorted(groups)))
        if "kind" in options:
            raise InvalidValue(
                ("groups", name, "kind"), "A group has the kind of its datasets. Leave it out."
            )
        kind = kinds[names.base(name)].kind
        if "repositories" in options and kind != "code":
            raise InvalidValue(
                ("groups", name, "repositories"),
                f"`{name}` is {kind}, which has no repositories. Leave it out.",
            )
    tokenizers = {it.tokenizer for it in file.datasets}
    for name in file.tokenizers:
        if name not in tokenizers:
            raise InvalidValue(("tokenizers", name), unknown_name("tokenizer", name, sorted(tokenizers)))
    _check_paths(file)
    _check_blend(file)


def _check_decisions(file: DatasetsFile) -> None:
    """Raise InvalidValue if variants of one name, which share a group, are decided differently."""
    first: dict[str, tuple[str, Variant]] = {}
    for number, entry in enumerate(file.datasets):
        for name, given in entry.variants.items():
            dataset = names.variant(entry.name, name)
            other, like = first.setdefault(_group(entry, name), (dataset, given))
            place = ("datasets", number, "variants", name)
            if (like.threshold, like.keep) != (given.threshold, given.keep):
                raise InvalidValue(
                    place,
                    f"`{other}` has {_decides_by(like)} and `{dataset}` has {_decides_by(given)}, and "
                    "variants of one name in one group are decided together. Give one another name.",
                )
            if given.shares_comparisons and _group(entry, name) in file.groups:
                raise InvalidValue(
                    ("groups", _group(entry, name)),
                    f"`{dataset}` takes the comparisons of `{_group(entry)}`, so its group has no options. "
                    "Leave them out.",
                )


def _decides_by(given: Variant) -> str:
    differences = [f"{name} {getattr(given, name)}" for name in ("threshold", "keep") if getattr(given, name)]
    return " and ".join(differences) or "filters of its own"


def _check_paths(file: DatasetsFile) -> None:
    for number, entry in enumerate(file.datasets):
        for at, path in enumerate(entry.paths):
            place = ("datasets", number, "paths", at)
            by_name = entry.partitions is not None and entry.partitions.by != "folder"
            if by_name and PARTITION not in path:
                raise InvalidValue(
                    place,
                    f"`{path}` would be read for every partition. Write `{PARTITION}` in place of the key.",
                )
            if not by_name and PARTITION in path:
                raise InvalidValue(
                    place,
                    f"`{path}` contains `{PARTITION}`, but the dataset has no partitions by key or time. "
                    "Declare them in `partitions`, or name the folder above.",
                )


def _check_blend(file: DatasetsFile) -> None:
    tokenizer_of = {name: it.tokenizer for it in file.datasets for name in _with_variants(it)}
    first = next(iter(file.blend.weights), None)
    for name in file.blend.weights:
        place = ("blend", "weights", name)
        if name not in tokenizer_of:
            raise InvalidValue(place, unknown_name("dataset or variant", name, tokenizer_of))
        if first is not None and tokenizer_of[name] != tokenizer_of[first]:
            raise InvalidValue(
                place,
                f"`{name}` has tokenizer `{tokenizer_of[name]}` and `{first}` has `{tokenizer_of[first]}`. "
                "A blend needs one: give both datasets the same.",
            )
    if not file.blend.weights and len(set(tokenizer_of.values())) > 1:
        raise InvalidValue(
            ("blend",), "The datasets have several tokenizers. Name those of one blend in `weights`."
        )
    if not file.blend.pad:
        _check_lengths(file)


def _check_lengths(file: DatasetsFile) -> None:
    """Raise InvalidValue if the blend has rows of several lengths and does not set `pad`."""
    lengths = {name: length for it in file.datasets for name, length in _lengths(it).items()}
    blended = [*(file.blend.weights or [it.name for it in file.datasets])]
    for name in blended[1:]:
        first = blended[0]
        if lengths[name] != lengths[first]:
            raise InvalidValue(
                ("blend", "weights", name) if file.blend.weights else ("blend",),
                f"Rows of `{name}` hold {lengths[name]} tokens and those of `{first}` {lengths[first]}: the "
                "shorter ones would be padded. Give both the same `packing: {sequence_length: ...}`, leave "
                "one out of `weights`, or say `pad: true`.",
            )


def _lengths(entry: Dataset) -> dict[str, Any]:
    """Tokens of a full row, by the names of the dataset and its variants."""
    given = {entry.name: entry.packing}
    for name, of in entry.variants.items():
        given[names.variant(entry.name, name)] = of.packing or entry.packing
    default = PackConfig().sequence_length
    return {name: packing.get("sequence_length", default) for name, packing in given.items()}


def _corpus(located: LocatedYaml, file: DatasetsFile) -> Corpus:
    groups = _groups(located, file)
    assets: list[dg.AssetsDefinition] = [it for group in groups.values() for it in group.assets]
    trained: dict[str, list[str]] = defaultdict(list)
    partitions = {it.name: it.partitions.build(it.name) for it in file.datasets if it.partitions is not None}
    for number, entry in enumerate(file.datasets):
        trained[entry.tokenizer].append(entry.name)
        assets.append(_source(located, number, entry, partitions.get(entry.name)))
        around = file.tokenizers.get(entry.tokenizer, Tokenizer()).around
        for chain in _chains(located, number, entry, groups, around, partitions.get(entry.name)):
            assets += chain
    for name, datasets in trained.items():
        assets.append(_tokenizer(located, name, datasets, file.tokenizers.get(name, Tokenizer())))
    return Corpus(
        title=f"the datasets of {located.path.name} ({', '.join(it.name for it in file.datasets)})",
        assets=tuple(assets),
        datasets=tuple(name for it in file.datasets for name in _with_variants(it)),
        groups=tuple(groups),
        weights=file.blend.weights or {it.name: 1 for it in file.datasets},
        seed=file.blend.seed,
        pad=file.blend.pad,
        paths={
            entry.name: tuple(_paths(located, ("datasets", number, "paths"), entry))
            for number, entry in enumerate(file.datasets)
        },
        partitions=partitions,
    )


def _with_variants(entry: Dataset) -> list[str]:
    return [entry.name, *(names.variant(entry.name, it) for it in entry.variants)]


def _group(entry: Dataset, variant: str | None = None) -> str:
    """The dedup group of a dataset; variants of one name share a group."""
    group = entry.group or entry.kind
    return group if variant is None else names.variant(group, variant)


def _groups(located: LocatedYaml, file: DatasetsFile) -> dict[str, DedupGroup]:
    """Every dedup group by name; the groups of variants default to the options of the first.

    A variant that only decides differently shares all comparisons: its threshold joins the sweep of the base
    group.
    """
    members: dict[str, list[str]] = defaultdict(list)
    kinds: dict[str, Kind] = {}
    decided: dict[str, dict[str, Variant]] = defaultdict(dict)  # by group, by variant
    for entry in file.datasets:
        kinds |= {_group(entry, of): entry.kind for of in (None, *entry.variants)}
        members[_group(entry)].append(entry.name)
        for name, given in entry.variants.items():
            if given.shares_comparisons:
                decided[_group(entry)][name] = given
            else:
                members[_group(entry, name)].append(names.variant(entry.name, name))
    found = {}
    for name, datasets in sorted(members.items()):
        options_of = name if name in file.groups else names.base(name)
        place: Place = ("groups", options_of)
        options = {**file.groups.get(options_of, {}), "kind": kinds[name]}
        repositories = _repositories(located, (*place, "repositories"), options)
        config = located.part(place, DedupConfig, options)
        variants = decided[name]
        swept = sorted(
            {*config.sweep, *(it.threshold for it in variants.values() if it.threshold is not None)}
        )
        found[name] = dedup_group(
            name,
            datasets,
            kind=kinds[name],
            config=config.model_copy(update={"sweep": tuple(swept)}),
            repositories=repositories,
            owners=_owners(file, datasets),
        )
        for variant_name, given in variants.items():
            group = dedup_variant(found[name], variant_name, given.threshold, given.keep)
            found[group.name] = group
    return dict(sorted(found.items()))


def _owners(file: DatasetsFile, datasets: Sequence[str]) -> list[str]:
    """The owners of `datasets`; a variant has the owners of its dataset."""
    bases = set(map(names.base, datasets))
    return sorted({owner for it in file.datasets if it.name in bases for owner in it.owners})


def _repositories(located: LocatedYaml, place: Place, options: dict[str, Any]) -> RepositoryConfig | None:
    """Remove and return the repository settings of `options`; in a file, topics can only be given by hand."""
    if "repositories" not in options:
        return None
    found = located.part(place, RepositoryConfig, options.pop("repositories"))
    if found.topics_table:
        raise InvalidValue(
            (*place, "topics_table"),
            f"No dataset of this file makes `{found.topics_table}`. Give `topics`, by repository, or declare "
            "the group in Python.",
        )
    return found


def _tokenizer(
    located: LocatedYaml, name: str, datasets: Sequence[str], options: Tokenizer
) -> dg.AssetsDefinition:
    if options.file is None:
        return tokenizer(name, datasets, vocabulary=options.vocabulary, around=options.around)
    path = located.path.parent / Path(options.file).expanduser()
    if not path.is_file():
        raise InvalidValue(
            ("tokenizers", name, "file"),
            f"There is no file `{options.file}`. Paths are relative to the folder of this file, "
            f"{located.path.parent}.",
        )
    return tokenizer_from(path, name, around=options.around)


def _source(
    located: LocatedYaml, number: int, entry: Dataset, partitions: dg.PartitionsDefinition[str] | None
) -> dg.AssetsDefinition:
    """The asset that reads a dataset, partition by partition if the dataset is partitioned."""
    place: Place = ("datasets", number, "paths")
    paths = list(_paths(located, place, entry))

    def read(ingests: Ingests, partition: str | None) -> Ingested:
        at = paths if partition is None else [path_of(path, partition) for path in paths]
        there = [path for path in at if path.exists()]
        found = entry.read(ingests, there) if there else None
        if found is None or found.empty:
            said = no_file_to_read(entry, at, located.path.parent)
            raise ConfigurationError(located.sentence(place, said))
        return found.limited(entry.max_rejected)

    declare = source(
        name=entry.name,
        config=entry.reading(),
        description=f"The documents of `{entry.name}`, read as {located.path.name} says: "
        f"{(type(entry).__doc__ or '').lower()}",
        owners=entry.owners,
        partitions_def=partitions,
    )

    def documents(ingests: Ingests) -> Ingested:
        return read(ingests, None)

    def of_partition(ingests: Ingests, partition: str) -> Ingested:
        return read(ingests, partition)

    return declare(documents if partitions is None else of_partition)


def _paths(located: LocatedYaml, place: Place, entry: Dataset) -> Iterator[Path]:
    """Yield the absolute paths of a dataset; raises InvalidValue if a path or partition folder is missing."""
    for number, given in enumerate(entry.paths):
        try:
            path = located.path.parent / Path(given).expanduser()
            above = next(it for it in (path, *path.parents) if PARTITION not in str(it))
            exists = above.exists()
        except (OSError, RuntimeError) as error:  # too long a name, the home of an unknown user
            said = getattr(error, "strerror", None) or str(error).rstrip(".")
            raise InvalidValue(
                (*place, number), f"`{given}` cannot be looked at ({said}). Correct it."
            ) from error
        if not exists:
            raise InvalidValue(
                (*place, number),
                f"`{given}` does not exist. {_resolution(given, located.path.parent)}",
            )
        yield path


def _resolution(given: str, folder: Path) -> str:
    """Explain how a path in the file is resolved."""
    if given.startswith("~"):
        return f"`~` is a home folder: the path is {Path(given).expanduser()}. Correct it."
    return f"Paths are relative to the folder of this file, {folder}."


def _chains(
    located: LocatedYaml,
    number: int,
    entry: Dataset,
    groups: Mapping[str, DedupGroup],
    around: TokenizeConfig,
    partitions: dg.PartitionsDefinition[str] | None,
) -> Iterator[Chain]:
    """The chain after `raw`, for the dataset and its variants."""
    place: Place = ("datasets", number)

    def packing(below: Place, given: Mapping[str, Any]) -> PackConfig | None:
        if "token_bytes" in given:
            raise InvalidValue((*below, "token_bytes"), "It follows from the tokenizer. Leave it out.")
        return located.part(below, PackConfig, given) if given else None

    first = refine(
        entry.name,
        dedup_group=groups[_group(entry)],
        rounds=entry.in_rounds(),
        tokenizer=entry.tokenizer,
        packing=packing((*place, "packing"), entry.packing),
        around=around,
        owners=entry.owners,
        partitions_def=partitions,
    )
    yield first
    for name, given in entry.variants.items():
        yield variant(
            first,
            name,
            rounds=None if given.shares_comparisons else given.in_rounds(),
            dedup_group=groups[_group(entry, name)],
            packing=packing((*place, "variants", name, "packing"), given.packing),
        )
