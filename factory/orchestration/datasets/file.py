"""The whole datasets file, `datasets.yaml`, as a pydantic model: its datasets, groups, tokenizers and blend.

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
`PackConfig`. `factory.orchestration.datasets.dataset` has the fields of every entry, and
`factory.orchestration.datasets.formats` those of each format. `factory.orchestration.datasets.assets` turns
the file into assets.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any, Union

from pydantic import Field, ValidationInfo, field_validator, model_validator
from pydantic_core import PydanticCustomError

from factory.errors import ConfigurationError
from factory.filters.sets import rules
from factory.frozen_model import FrozenModel
from factory.models.tokenizer import MOST_TOKENS
from factory.orchestration.datasets.dataset import Dataset
from factory.orchestration.datasets.formats import FORMATS
from factory.orchestration.datasets.models import ModelEntry, RuleModels
from factory.packing.tokenize import TokenizeConfig

if TYPE_CHECKING:
    AnyFormat = Dataset  # mypy cannot see into a tuple
else:
    AnyFormat = Annotated[Union[FORMATS], Field(discriminator="format")]  # noqa: UP007 (a tuple of classes)


class BlendEntry(FrozenModel):
    """The blend that the demo serves."""

    weights: dict[str, Annotated[int, Field(ge=1)]] = Field(
        default={}, description="rows per step, by dataset or variant; default: one of each dataset"
    )
    seed: int = Field(default=7, ge=0, lt=1 << 64, description="seed of the order")
    pad: bool = Field(default=False, description="allow rows of different lengths, padded to the longest")


class TokenizerEntry(TokenizeConfig):
    """A tokenizer, trained on the datasets that name it or read from a file."""

    vocabulary: int = Field(
        default=16_384, ge=258, le=MOST_TOKENS, description="number of tokens of a trained tokenizer"
    )
    file: str | None = Field(default=None, description="a `tokenizer.json`, relative to this file's folder")

    @model_validator(mode="after")
    def _trained_or_from_a_file(self) -> TokenizerEntry:
        if self.file is not None and "vocabulary" in self.model_fields_set:
            raise PydanticCustomError(
                "vocabulary_beside_file",
                "The tokenizer of a `file` has the vocabulary it has. Leave one of the two out.",
                {"field": "vocabulary"},
            )
        return self

    @property
    def around(self) -> TokenizeConfig:
        """The tokens around documents, for any tokenizer."""
        return TokenizeConfig(begin=self.begin, end=self.end)


class DatasetsFile(RuleModels):
    """The whole file. The models come first: datasets name their rules."""

    datasets: tuple[AnyFormat, ...] = Field(min_length=1, description="the datasets")
    groups: dict[str, dict[str, Any]] = Field(
        default={}, description="options of `DedupConfig`, and `repositories`, by group"
    )
    tokenizers: dict[str, TokenizerEntry] = Field(default={}, description="options of tokenizers, by name")
    blend: BlendEntry = Field(default=BlendEntry(), description="the blend that the demo serves")

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

    @field_validator(*RuleModels.model_fields, mode="before")
    @classmethod
    def _models_are_known_by_name(cls, models: Any, info: ValidationInfo) -> Any:
        if info.context is not None and isinstance(models, Mapping):
            info.context.setdefault("declared", set()).update(models)
        return models

    @field_validator(*RuleModels.model_fields)
    @classmethod
    def _datasets_may_name_the_rules(
        cls, models: dict[str, ModelEntry], info: ValidationInfo
    ) -> dict[str, ModelEntry]:
        for name, entry in models.items():
            try:
                rule = entry.rule(name)
                rules([rule])
            except ConfigurationError as error:
                raise PydanticCustomError(
                    "model", "{message}", {"field": name, "message": str(error)}
                ) from error
            if info.context is not None:
                info.context.setdefault("rules", {})[name] = rule
        return models

    @model_validator(mode="before")
    @classmethod
    def _fields_and_no_list(cls, values: Any) -> Any:
        if isinstance(values, list):
            raise ValueError(
                "The file is a list. Begin it with `datasets:`, and put the list below that line."
            )
        return values
