"""The part of tokenizers: which one a dataset has, and the options of each."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from pydantic import Field, field_validator, model_validator
from pydantic_core import PydanticCustomError

from factory.frozen_model import FrozenModel
from factory.models.tokenizer import IMAGE, MOST_TOKENS
from factory.orchestration.declare.ingest_dataset import PartFields, name_of_tables
from factory.orchestration.declare.located_yaml import InvalidValue
from factory.orchestration.declare.part import Declared, Part
from factory.packing.tokenize import TokenizeConfig
from factory.suggestions import unknown_name

if TYPE_CHECKING:
    import dagster as dg


class TokenizerEntry(TokenizeConfig):
    """A tokenizer, trained on the datasets that name it or read from a file."""

    vocabulary: int = Field(
        default=16_384, ge=258, le=MOST_TOKENS, description="number of tokens of a trained tokenizer"
    )
    file: str | None = Field(default=None, description="a `tokenizer.json`, relative to this file's folder")
    image: str = Field(default=IMAGE, description="token of a picture, in datasets that have pictures")

    @model_validator(mode="after")
    def _trained_or_from_a_file(self) -> TokenizerEntry:
        if self.file is not None and "vocabulary" in self.model_fields_set:
            raise PydanticCustomError(
                "vocabulary_beside_file",
                "The tokenizer of a `file` has the vocabulary it has. Leave one of the two out.",
                {"field": "vocabulary"},
            )
        return self

    @model_validator(mode="after")
    def _image_is_not_around(self) -> TokenizerEntry:
        if self.image in (self.begin, self.end):
            raise PydanticCustomError(
                "image_around",
                "`{image}` begins or ends documents, so it cannot stand for a picture too. Name another.",
                {"field": "image", "image": self.image},
            )
        return self

    @property
    def around(self) -> TokenizeConfig:
        """The tokens around documents, for any tokenizer."""
        return TokenizeConfig(begin=self.begin, end=self.end)


class TokenizerFields(PartFields):
    """The tokenizer of a dataset."""

    tokenizer: str = Field(default="tokenizer", description="name of its tokenizer")

    @field_validator("tokenizer")
    @classmethod
    def _tokenizer_fits_tables(cls, name: str) -> str:
        return name_of_tables(name)


class TokenizersSection(FrozenModel):
    """The tokenizers of a file."""

    tokenizers: dict[str, TokenizerEntry] = Field(default={}, description="options of tokenizers, by name")


class TokenizersPart(Part):
    """Tokenizers, each trained on the deduplicated documents of the datasets that name it."""

    dataset = TokenizerFields
    file = TokenizersSection

    def check(self, file: Declared) -> None:
        """Raise InvalidValue for options of a tokenizer that no dataset has."""
        names = _datasets_by_tokenizer(file)
        for name in file.section(TokenizersSection).tokenizers:
            if name not in names:
                raise InvalidValue(("tokenizers", name), unknown_name("tokenizer", name, sorted(names)))

    def assets(self, file: Declared) -> Iterator[dg.AssetsDefinition]:
        for name, datasets in _datasets_by_tokenizer(file).items():
            options = file.section(TokenizersSection).tokenizers.get(name, TokenizerEntry())
            yield _tokenizer(file, name, datasets, options)


def _datasets_by_tokenizer(file: Declared) -> dict[str, list[str]]:
    datasets = defaultdict(list)
    for entry in file.datasets:
        datasets[entry.fields(TokenizerFields).tokenizer].append(entry.name)
    return datasets


def _tokenizer(
    file: Declared, name: str, datasets: Sequence[str], options: TokenizerEntry
) -> dg.AssetsDefinition:
    from factory.orchestration.chain.models.tokenizer import tokenizer, tokenizer_from

    with_images = {entry.name for entry in file.datasets if entry.dataset.has_images}
    image = None if with_images.isdisjoint(datasets) else options.image
    if options.file is None:
        return tokenizer(name, datasets, vocabulary=options.vocabulary, around=options.around, image=image)
    path = file.folder / Path(options.file).expanduser()
    if not path.is_file():
        raise InvalidValue(
            ("tokenizers", name, "file"),
            f"There is no file `{options.file}`. Paths are relative to the folder of this file, "
            f"{file.folder.resolve()}.",
        )
    return tokenizer_from(path, name, around=options.around, image=image)
