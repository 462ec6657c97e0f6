"""The part of the blend that the demo serves: weights, seed and padding."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from factory.frozen_model import FrozenModel
from factory.lake import names
from factory.orchestration.declare.located_yaml import InvalidValue
from factory.orchestration.declare.models_tokenizers import TokenizerFields
from factory.orchestration.declare.packing import has_samples, sequence_length
from factory.orchestration.declare.part import Declared, Part
from factory.suggestions import unknown_name


class BlendEntry(FrozenModel):
    """The blend that the demo serves."""

    weights: dict[str, Annotated[int, Field(ge=1)]] = Field(
        default={}, description="rows per step, by dataset or variant; default: one of each dataset"
    )
    seed: int = Field(default=7, ge=0, lt=1 << 64, description="seed of the order")
    pad: bool = Field(default=False, description="allow rows of different lengths, padded to the longest")


class BlendSection(FrozenModel):
    """The blend of a file."""

    blend: BlendEntry = Field(default=BlendEntry(), description="the blend that the demo serves")


class BlendPart(Part):
    """The blend of the packed tables."""

    file = BlendSection

    def check(self, file: Declared) -> None:
        """Raise InvalidValue for a blend of unknown tables, or of rows that do not fit together."""
        blend = file.section(BlendSection).blend
        tokenizer_of = {entry.name: entry.dataset_fields(TokenizerFields).tokenizer for entry in file.entries}
        first = next(iter(blend.weights), None)
        for name in blend.weights:
            place = ("blend", "weights", name)
            part_of = [dataset for dataset in tokenizer_of if name == names.validation(dataset)]
            if part_of:
                raise InvalidValue(
                    place,
                    f"This is the validation part of `{part_of[0]}`, and the demo's blend is for training. "
                    "Leave it out.",
                )
            if name not in tokenizer_of:
                raise InvalidValue(place, unknown_name("dataset or variant", name, tokenizer_of))
            if first is not None and tokenizer_of[name] != tokenizer_of[first]:
                raise InvalidValue(
                    place,
                    f"`{name}` has tokenizer `{tokenizer_of[name]}` and `{first}` has "
                    f"`{tokenizer_of[first]}`. A blend needs one: give both datasets the same.",
                )
        if not blend.weights and len(set(tokenizer_of.values())) > 1:
            raise InvalidValue(
                ("blend",), "The datasets have several tokenizers. Name those of one blend in `weights`."
            )
        if not blend.pad:
            _check_lengths(file, blend)


def _check_lengths(file: Declared, blend: BlendEntry) -> None:
    """Raise InvalidValue if the blend has rows of several lengths and does not set `pad`."""
    lengths = {entry.name: sequence_length(entry) for entry in file.entries}
    of_samples = {entry.name for entry in file.entries if has_samples(entry)}
    first, *others = names_in_blend = list(blend.weights or [entry.name for entry in file.datasets])
    for name in names_in_blend if others else ():
        if name in of_samples:
            raise InvalidValue(
                ("blend", "weights", name) if blend.weights else ("blend",),
                f"A row of `{name}` is one document, of any length, so most rows would be padded. Say "
                "`pad: true`, or leave it out of `weights`.",
            )
    for name in others:
        if lengths[name] != lengths[first]:
            raise InvalidValue(
                ("blend", "weights", name) if blend.weights else ("blend",),
                f"Rows of `{name}` hold {lengths[name]} tokens and those of `{first}` {lengths[first]}: the "
                "shorter ones would be padded. Give both the same `packing: {sequence_length: ...}`, leave "
                "one out of `weights`, or say `pad: true`.",
            )
