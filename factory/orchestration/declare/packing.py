"""The part of packing: its options, and the share that is packed apart."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from pydantic import Field

from factory.orchestration.declare.ingest_dataset import PartFields
from factory.orchestration.declare.located_yaml import InvalidValue
from factory.orchestration.declare.models_tokenizers import TokenizerEntry, TokenizerFields, TokenizersSection
from factory.orchestration.declare.part import Declared, Entry, Part
from factory.packing.pack import PackConfig
from factory.packing.samples import SampleConfig

if TYPE_CHECKING:
    from factory.orchestration.chain.link import Link


class VariantPacking(PartFields):
    """How the sequences of a dataset or variant are packed."""

    packing: dict[str, Any] = Field(
        default={},
        description="options of `PackConfig`; with `samples: true` of `SampleConfig`, a document a row",
    )


class DatasetPacking(VariantPacking):
    """How a dataset is packed, also in its variants."""

    validation: float | None = Field(
        default=None, gt=0, lt=1, description="share of its repositories or documents that is packed apart"
    )


class PackingPart(Part):
    """Tokens, packed into sequences."""

    dataset = DatasetPacking
    variant = VariantPacking

    def check(self, file: Declared) -> None:
        """Raise InvalidValue for a dataset that trains on documents that its source holds out."""
        shares = {entry.name: entry.fields(DatasetPacking).validation for entry in file.datasets}
        for entry in file.datasets:
            source = entry.dataset.from_
            if source is None or shares[entry.name] == shares[source]:
                continue
            share = shares[source]
            remedy = f"Write `validation: {share}` here too" if share is not None else "Give both one share"
            raise InvalidValue(
                (*entry.place, "validation"),
                f"`{entry.name}` is made from `{source}`, and with another `validation` texts that one "
                f"of them holds out would train in the other. {remedy}.",
            )

    def links(self, entry: Entry, file: Declared) -> Sequence[Link]:
        from factory.orchestration.chain.packing import Packing

        name = entry.dataset_fields(TokenizerFields).tokenizer
        tokenizer = file.section(TokenizersSection).tokenizers.get(name, TokenizerEntry())
        validation = entry.dataset_fields(DatasetPacking).validation
        image = tokenizer.image if entry.dataset.has_images else None
        return [Packing(name, _config(entry, file), tokenizer.around, validation, image)]

    def comment(self, kind: str) -> Iterator[str]:  # noqa: ARG002
        yield "# packing: {sequence_length: 8192}"


def sequence_length(entry: Entry) -> Any:
    """Return the tokens of a full row of a dataset or variant."""
    return _options(entry).get("sequence_length", PackConfig().sequence_length)


def has_samples(entry: Entry) -> bool:
    """Whether a row of a dataset or variant is one document, of any length."""
    return entry.dataset.has_images or _options(entry).get("samples") is True


def _options(entry: Entry) -> dict[str, Any]:
    return entry.fields(VariantPacking).packing or entry.dataset_fields(VariantPacking).packing


def _config(entry: Entry, file: Declared) -> PackConfig | SampleConfig:
    """Return the configuration of a dataset or variant; raises InvalidValue for one that it cannot have."""
    place = (*(entry.place if entry.fields(VariantPacking).packing else entry.place[:2]), "packing")
    options = _options(entry)
    if "token_bytes" in options:
        raise InvalidValue((*place, "token_bytes"), "It follows from the tokenizer. Leave it out.")
    samples = options.get("samples", entry.dataset.has_images)
    if not isinstance(samples, bool):
        raise InvalidValue((*place, "samples"), f"`{samples}` is neither true nor false. Write one of them.")
    if entry.dataset.has_images and not samples:
        raise InvalidValue(
            (*place, "samples"),
            f"Documents of `{entry.base}` have pictures, so each is a row of its own, and the loader packs "
            "them. Leave it out.",
        )
    others = {name: options[name] for name in options if name != "samples"}
    if samples:
        return file.located.part(place, SampleConfig, others)
    return file.located.part(place, PackConfig, others)
