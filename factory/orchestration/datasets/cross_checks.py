"""Checks of a datasets file across its entries: names, groups, decisions, tokenizers, paths and the blend."""

from __future__ import annotations

from typing import Any

from factory.lake import names
from factory.orchestration.datasets.dataset import Dataset, Variant
from factory.orchestration.datasets.file import DatasetsFile
from factory.orchestration.datasets.located_yaml import InvalidValue
from factory.orchestration.datasets.partition_paths import PARTITION
from factory.packing.pack import PackConfig
from factory.suggestions import unknown_name


def check_entries(file: DatasetsFile) -> None:
    """Raise InvalidValue for repeated or unknown names, and for datasets that do not fit together."""
    first_of_group = _check_datasets(file)
    _check_decisions(file)
    _check_groups(file, first_of_group)
    _check_tokenizers(file)
    _check_models(file)
    _check_paths(file)
    _check_from(file)
    _check_blend(file)


def _check_datasets(file: DatasetsFile) -> dict[str, Dataset]:
    """Return the first dataset of each group.

    Raises InvalidValue for a repeated name, and for a group of two kinds.
    """
    number_of: dict[str, int] = {}
    first_of_group: dict[str, Dataset] = {}
    for number, entry in enumerate(file.datasets):
        first_number = number_of.setdefault(entry.name, number)
        if first_number != number:
            raise InvalidValue(
                ("datasets", number, "name"),
                f"`{entry.name}` is the name of datasets[{first_number}] already. Give each dataset its own.",
            )
        first = first_of_group.setdefault(entry.dedup_group(), entry)
        if first.kind != entry.kind:
            raise InvalidValue(
                ("datasets", number, "group"),
                f"`{entry.dedup_group()}` holds `{first.name}`, which is {first.kind}, and `{entry.name}` is "
                f"{entry.kind}. Give it another group.",
            )
    return first_of_group


def _check_decisions(file: DatasetsFile) -> None:
    """Raise InvalidValue if variants of one name, which share a group, are decided differently."""
    first_of_group: dict[str, tuple[str, Variant]] = {}
    for number, entry in enumerate(file.datasets):
        for name, variant in entry.variants.items():
            dataset, group = names.variant(entry.name, name), entry.dedup_group(name)
            first_dataset, first = first_of_group.setdefault(group, (dataset, variant))
            if (first.threshold, first.keep) != (variant.threshold, variant.keep):
                raise InvalidValue(
                    ("datasets", number, "variants", name),
                    f"`{first_dataset}` has {_decides_by(first)} and `{dataset}` has {_decides_by(variant)}, "
                    "and variants of one name in one group are decided together. Give one another name.",
                )
            if variant.shares_comparisons and group in file.groups:
                raise InvalidValue(
                    ("groups", group),
                    f"`{dataset}` takes the comparisons of `{entry.dedup_group()}`, so its group has no "
                    "options. Leave them out.",
                )


def _decides_by(variant: Variant) -> str:
    options = [f"{name} {getattr(variant, name)}" for name in ("threshold", "keep") if getattr(variant, name)]
    return " and ".join(options) or "filters of its own"


def _check_groups(file: DatasetsFile, first_of_group: dict[str, Dataset]) -> None:
    variant_groups = {entry.dedup_group(name) for entry in file.datasets for name in entry.variants}
    groups = first_of_group.keys() | variant_groups
    for name, options in file.groups.items():
        if name not in groups:
            raise InvalidValue(("groups", name), unknown_name("group", name, sorted(groups)))
        if "kind" in options:
            raise InvalidValue(
                ("groups", name, "kind"), "A group has the kind of its datasets. Leave it out."
            )
        kind = first_of_group[names.base(name)].kind
        if "repositories" in options and kind != "code":
            raise InvalidValue(
                ("groups", name, "repositories"),
                f"`{name}` is {kind}, which has no repositories. Leave it out.",
            )


def _check_tokenizers(file: DatasetsFile) -> None:
    tokenizers = {entry.tokenizer for entry in file.datasets}
    for name in file.tokenizers:
        if name not in tokenizers:
            raise InvalidValue(("tokenizers", name), unknown_name("tokenizer", name, sorted(tokenizers)))


def _check_models(file: DatasetsFile) -> None:
    """Raise InvalidValue for a name that two models have, or that a rule has already."""
    kind_of = dict.fromkeys((entry.tokenizer for entry in file.datasets), "tokenizers")
    for kind, name in file.entries():
        if name in kind_of:
            raise InvalidValue(
                (kind, name), f"`{name}` is among `{kind_of[name]}` already. Choose another name."
            )
        kind_of[name] = kind


def _check_paths(file: DatasetsFile) -> None:
    for number, entry in enumerate(file.datasets):
        by_name = entry.partitions is not None and entry.partitions.by != "folder"
        for path_number, path in enumerate(entry.paths):
            place = ("datasets", number, "paths", path_number)
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


def _check_from(file: DatasetsFile) -> None:
    """Raise InvalidValue for a dataset from one that does not exist, is made from it, or holds out others."""
    dataset_of = {entry.name: entry.from_ for entry in file.datasets}
    for number, entry in enumerate(file.datasets):
        above = [entry.name]
        while (parent := dataset_of[above[-1]]) is not None:
            if parent not in dataset_of:
                raise InvalidValue(("datasets", number, "from"), unknown_name("dataset", parent, dataset_of))
            if parent in above:
                ring = [f"`{name}`" for name in [*above[above.index(parent) :], parent]]
                way = f"{ring[0]} reads {', which reads '.join(ring[1:])}"
                raise InvalidValue(("datasets", number, "from"), f"{way}. Name another dataset.")
            above.append(parent)
    shares = {entry.name: entry.validation for entry in file.datasets}
    for number, entry in enumerate(file.datasets):
        if entry.from_ is not None and entry.validation != shares[entry.from_]:
            share = shares[entry.from_]
            remedy = f"Write `validation: {share}` here too" if share is not None else "Give both one share"
            raise InvalidValue(
                ("datasets", number, "validation"),
                f"`{entry.name}` is made from `{entry.from_}`, and with another `validation` texts that one "
                f"of them holds out would train in the other. {remedy}.",
            )


def _check_blend(file: DatasetsFile) -> None:
    tokenizer_of = {name: entry.tokenizer for entry in file.datasets for name in entry.with_variants()}
    first = next(iter(file.blend.weights), None)
    for name in file.blend.weights:
        place = ("blend", "weights", name)
        part_of = [dataset for dataset in tokenizer_of if name == names.validation(dataset)]
        if part_of:
            raise InvalidValue(
                place,
                f"This is the validation part of `{part_of[0]}`, and the demo's blend is for training. Leave "
                "it out.",
            )
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
    lengths = {name: length for entry in file.datasets for name, length in _lengths(entry).items()}
    first, *others = file.blend.weights or [entry.name for entry in file.datasets]
    for name in others:
        if lengths[name] != lengths[first]:
            raise InvalidValue(
                ("blend", "weights", name) if file.blend.weights else ("blend",),
                f"Rows of `{name}` hold {lengths[name]} tokens and those of `{first}` {lengths[first]}: the "
                "shorter ones would be padded. Give both the same `packing: {sequence_length: ...}`, leave "
                "one out of `weights`, or say `pad: true`.",
            )


def _lengths(entry: Dataset) -> dict[str, Any]:
    """Tokens of a full row, by the names of the dataset and its variants."""
    packing_of = {entry.name: entry.packing}
    for name, variant in entry.variants.items():
        packing_of[names.variant(entry.name, name)] = variant.packing or entry.packing
    default = PackConfig().sequence_length
    return {name: packing.get("sequence_length", default) for name, packing in packing_of.items()}
