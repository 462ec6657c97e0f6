"""The fields of a datasets file, `datasets.yaml`, as pydantic models; each entry knows its reader.

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
`PackConfig`. A dataset without rules gets the default rules of its kind. A variant declares only its
differences: with `rules` or `rounds` it has filters of its own; otherwise it takes the dataset's filters and
overrides their `limits`, `languages` and `predicates`. A variant with a `threshold` or `keep` differs only in
which similar documents are removed. `factory.orchestration.datasets.assets` turns the file into assets.
"""

from __future__ import annotations

import re
from abc import abstractmethod
from collections.abc import Mapping
from itertools import chain
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, field_validator, model_validator
from pydantic_core import PydanticCustomError

from factory.dedup.config import DedupConfig, Similarity
from factory.dedup.decisions import Keep
from factory.errors import ConfigurationError
from factory.filters.rounds import Round
from factory.frozen_model import FrozenModel
from factory.ingest.listing import UNWANTED
from factory.ingest.readers import MAX_REJECTED, Fields, Ingested, Ingests
from factory.lake import names
from factory.models.tokenizer import MOST_TOKENS
from factory.orchestration.datasets.partitions_file import Partitioned
from factory.packing.tokenize import TokenizeConfig
from spark_udfs.ingest.bounds import MAX_TEXT_BYTES

RULES = {"prose": ["gopher_quality", "gopher_repetition"], "code": ["code"]}  # default rules by kind
FILTERS = tuple(Round.model_fields)
_OWNER = re.compile(r"[A-Za-z0-9._%+-]+@[A-Za-z0-9.-]+\.[A-Za-z]{2,7}|team:.+")  # Dagster's pattern

Words = Annotated[
    tuple[str, ...], BeforeValidator(lambda given: [given] if isinstance(given, str) else given)
]


def _name(given: str) -> str:
    try:
        return names.dataset(given)
    except ConfigurationError as error:
        raise ValueError(str(error)) from error


class Filters(Round):
    """Filters in one round, or in `rounds`."""

    rounds: tuple[Round, ...] = Field(default=(), description="filters in rounds, instead of one")
    packing: dict[str, Any] = Field(default={}, description="options of `PackConfig`")

    @model_validator(mode="before")
    @classmethod
    def _one_round_or_several(cls, values: Any) -> Any:
        given = [name for name in FILTERS if isinstance(values, Mapping) and name in values]
        if given and "rounds" in values:
            raise PydanticCustomError(
                "beside_rounds",
                "`{field}` cannot be combined with `rounds`. Move it into one of the rounds.",
                {"field": given[0]},
            )
        return values

    def in_rounds(self) -> tuple[Round, ...]:
        """The declared rounds; plain filters are a single round."""
        return self.rounds or (Round(**{name: getattr(self, name) for name in FILTERS}),)


class Variant(Filters):
    """Other filters of a dataset's documents, or another way to decide on similar ones."""

    threshold: Similarity | None = Field(
        default=None, description="least weighted Jaccard of similar documents"
    )
    keep: Keep | None = Field(default=None, description="rule for which of similar documents stay")

    @property
    def shares_comparisons(self) -> bool:
        """Whether the variant shares its dataset's filters and comparisons and only decides differently."""
        return self.threshold is not None or self.keep is not None


class Dataset(Filters):
    """A dataset: its files, its filters, its dedup group."""

    name: str = Field(description="name of its tables")
    kind: Literal["prose", "code"] = Field(description="code is sorted by dependency; both choose the rules")
    format: str = Field(description="how its files are read")
    paths: Words = Field(min_length=1, description="files and folders, relative to the folder of the file")
    partitions: Partitioned | None = Field(default=None, description="partitions, each read by itself")
    license: str | None = Field(default=None, description="default license of documents")
    max_rejected: float = Field(
        default=MAX_REJECTED, ge=0, le=1, description="largest share of rows or files that may be rejected"
    )
    group: str | None = Field(default=None, description="dedup group; default: that of its kind")
    tokenizer: str = Field(default="tokenizer", description="name of its tokenizer")
    owners: Words = Field(default=(), description="mail addresses and `team:name`s, shown in Dagster")
    variants: dict[str, Variant] = Field(
        default={}, description="other filters of the same documents, or other decisions on them"
    )

    @model_validator(mode="before")
    @classmethod
    def _no_options_of_a_group(cls, values: Any) -> Any:
        given = values if isinstance(values, Mapping) else {}
        for name in (it for it in given if it in DedupConfig.model_fields and it not in cls.model_fields):
            group = given.get("group") or given.get("kind") or "prose"
            where = "a group or a variant" if name in Variant.model_fields else "a group"
            raise PydanticCustomError(
                "option_of_group",
                "`{field}` belongs to {where}. Write `{remedy}`.",
                {
                    "field": name,
                    "where": where,
                    "remedy": f"groups: {{{group}: {{{name}: {given[name]}}}}}",
                },
            )
        return values

    @model_validator(mode="before")
    @classmethod
    def _defaults_reach_variants(cls, values: Any) -> Any:
        if not isinstance(values, Mapping):
            return values
        values = dict(values)
        if "rounds" not in values:
            # Report a wrong kind itself, not the limits that then lack a rule.
            values.setdefault("rules", RULES.get(str(values.get("kind")), [*chain(*RULES.values())]))
        variants = values.get("variants")
        if isinstance(variants, Mapping):
            values["variants"] = {name: _over(values, given) for name, given in variants.items()}
        return values

    @field_validator("name", "group", "tokenizer")
    @classmethod
    def _fit_for_tables(cls, given: str | None) -> str | None:
        if given is not None and names.VARIANT in given:
            raise ValueError(
                f"`{given}` contains two underscores, which begin the name of a variant. Use one."
            )
        return given if given is None else _name(given)

    @field_validator("owners")
    @classmethod
    def _fit_for_dagster(cls, given: tuple[str, ...]) -> tuple[str, ...]:
        for owner in given:
            if not _OWNER.fullmatch(owner):
                raise ValueError(f"`{owner}` is not an owner. Write a mail address, or `team:` and a name.")
        return given

    @field_validator("variants")
    @classmethod
    def _variants_fit_too(cls, given: dict[str, Variant]) -> dict[str, Variant]:
        for name in given:
            _name(f"x{names.VARIANT}{name}")
        return given

    @abstractmethod
    def read(self, ingests: Ingests, paths: list[Path]) -> Ingested:
        """The documents below `paths`, the absolute form of the field."""

    def reading(self) -> dict[str, Any]:
        """The fields that decide which documents are read."""
        return self.model_dump(mode="json", exclude={*Filters.model_fields, *_LATER})


_LATER = ("kind", "partitions", "max_rejected", "group", "tokenizer", "owners", "variants")


def _over(dataset: Mapping[str, Any], variant: Any) -> Any:
    """A variant's values over those of its dataset."""
    variant = {} if variant is None else variant
    options = [name for name in ("threshold", "keep") if isinstance(variant, Mapping) and name in variant]
    if options:
        beside = [name for name in (*FILTERS, "rounds") if name in variant]
        if beside:
            raise PydanticCustomError(
                "beside_decisions",
                "A variant has filters of its own or a `{option}`, and this one has `{given}` too. "
                "Split it into two variants, or give its group the `{option}`.",
                {"field": "variants", "option": options[0], "given": beside[0]},
            )
        return variant
    if not isinstance(variant, Mapping) or "rules" in variant or "rounds" in variant:
        return variant
    if "rounds" in dataset:
        given = [name for name in FILTERS if name in variant]
        if given:
            raise PydanticCustomError(
                "rounds_of_variant",
                "Its dataset has `rounds`, so it is unclear which round this changes. "
                "Give the variant `rounds` of its own.",
                {"field": "variants"},
            )
        return {**variant, "rounds": dataset["rounds"]}
    taken = {name: dataset[name] for name in FILTERS if name in dataset}
    for name in ("limits", "predicates"):
        if isinstance(variant.get(name), Mapping) and isinstance(taken.get(name), Mapping):
            taken[name] = {**taken[name], **variant[name]}
            variant = {key: value for key, value in variant.items() if key != name}
    return {**taken, **variant}


class Records(Dataset):
    """Files of many records, each record a document."""

    source: str | None = Field(default=None, description="name of the source; default: name of each path")
    text: str = Field(default="text", description="field of the text")
    key: str | None = Field(
        default=None, description="field that identifies a record; default: its file and line"
    )
    columns: dict[str, str] = Field(default={}, description="columns of `raw` and the fields that fill them")
    metadata: Words = Field(default=(), description="further fields to keep")
    language: str | None = Field(default=None, description="default language of documents")
    max_bytes: int = Field(default=MAX_TEXT_BYTES, ge=1, description="longest text to read, in bytes")

    @field_validator("columns")
    @classmethod
    def _columns_exist(cls, columns: dict[str, str]) -> dict[str, str]:
        try:
            Fields(columns=columns)
        except ConfigurationError as error:
            raise ValueError(str(error)) from error
        return columns

    @property
    def fields(self) -> Fields:
        """The fields of a record by their meaning."""
        return Fields(
            text=self.text,
            key=self.key,
            columns=self.columns,
            metadata=self.metadata,
            language=self.language,
            max_bytes=self.max_bytes,
        )


class Jsonl(Records):
    """Lines of `.jsonl`, `.jsonl.gz` and `.jsonl.zst`."""

    format: Literal["jsonl"]

    def read(self, ingests: Ingests, paths: list[Path]) -> Ingested:
        return ingests.jsonl(paths, self.fields, source=self.source, license=self.license)


class Parquet(Records):
    """Rows of `.parquet`."""

    format: Literal["parquet"]

    def read(self, ingests: Ingests, paths: list[Path]) -> Ingested:
        return ingests.parquet(paths, self.fields, source=self.source, license=self.license)


class Trees(Dataset):
    """Files below folders or in archives, each file a document."""

    revision: str | None = Field(default=None, description="revision of the documents")
    metadata: dict[str, str] = Field(default={}, description="metadata of every document")

    @property
    def about(self) -> dict[str, Any]:
        """Properties of every document, by argument of a reader."""
        return self.model_dump(include={"source", "repository", "revision", "license", "metadata"})


class Chosen(Trees):
    """Files selected by patterns."""

    include: Words = Field(default=("**/*",), description="patterns of paths to read; `**/` is any folders")
    exclude: Words = Field(default=(), description="patterns to leave out, besides `.git` and `__pycache__`")

    @property
    def unwanted(self) -> tuple[str, ...]:
        """All patterns of excluded files."""
        return (*UNWANTED, *self.exclude)


class Files(Chosen):
    """Files below folders."""

    format: Literal["files"]
    source: str | None = Field(default=None, description="name of the source; default: name of each path")
    repository: str | None = Field(default=None, description="repository of all files")

    def read(self, ingests: Ingests, paths: list[Path]) -> Ingested:
        return ingests.files(paths, self.include, self.unwanted, **self.about)


class Repositories(Chosen):
    """Folders whose subfolders are repositories."""

    format: Literal["repositories"]

    def read(self, ingests: Ingests, paths: list[Path]) -> Ingested:
        return ingests.repositories(paths, self.include, self.unwanted, **self.about)


class Archive(Trees):
    """Members of zip and tar archives."""

    format: Literal["archive"]
    source: str | None = Field(default=None, description="name of the source; default: name of each path")
    repository: str | None = Field(default=None, description="repository of all files")

    def read(self, ingests: Ingests, paths: list[Path]) -> Ingested:
        return ingests.archive(paths, **self.about)


class Blend(FrozenModel):
    """The blend that the demo serves."""

    weights: dict[str, Annotated[int, Field(ge=1)]] = Field(
        default={}, description="rows per step, by dataset or variant; default: one of each dataset"
    )
    seed: int = Field(default=7, ge=0, lt=1 << 64, description="seed of the order")
    pad: bool = Field(default=False, description="allow rows of different lengths, padded to the longest")


class Tokenizer(TokenizeConfig):
    """A tokenizer, trained on the datasets that name it or read from a file."""

    vocabulary: int = Field(
        default=16_384, ge=258, le=MOST_TOKENS, description="number of tokens of a trained tokenizer"
    )
    file: str | None = Field(default=None, description="a `tokenizer.json`, relative to this file's folder")

    @model_validator(mode="after")
    def _trained_or_given(self) -> Tokenizer:
        if self.file is not None and "vocabulary" in self.model_fields_set:
            raise PydanticCustomError(
                "given_vocabulary",
                "The tokenizer of a `file` has the vocabulary it has. Leave one of the two out.",
                {"field": "vocabulary"},
            )
        return self

    @property
    def around(self) -> TokenizeConfig:
        """The tokens around documents, for any tokenizer."""
        return TokenizeConfig(begin=self.begin, end=self.end)


class DatasetsFile(FrozenModel):
    """The whole file."""

    datasets: tuple[
        Annotated[Files | Jsonl | Parquet | Archive | Repositories, Field(discriminator="format")], ...
    ] = Field(min_length=1, description="the datasets")
    groups: dict[str, dict[str, Any]] = Field(
        default={}, description="options of `DedupConfig`, and `repositories`, by group"
    )
    tokenizers: dict[str, Tokenizer] = Field(default={}, description="options of tokenizers, by name")
    blend: Blend = Field(default=Blend(), description="the blend that the demo serves")

    @model_validator(mode="before")
    @classmethod
    def _fields_and_no_list(cls, values: Any) -> Any:
        if isinstance(values, list):
            raise ValueError(
                "The file is a list. Begin it with `datasets:`, and put the list below that line."
            )
        return values
