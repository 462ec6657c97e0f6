"""What a file of datasets holds: `datasets.yaml` as a pydantic model, each entry with its reader.

    datasets:
      - name: notes
        kind: prose
        format: files
        paths: notes
        include: "**/*.md"
        limits: {word_count: [20, 100_000]}
        variants:
          long: {limits: {word_count: [200, 100_000]}}

Every field means what the argument of the same name of `Ingests`, `Round`, `DedupConfig` and `PackConfig`
means. A dataset without rules has those of its kind. A variant says what differs: with `rules` or `rounds` it
has filters of its own; without, it takes the dataset's, and its `limits`, `languages` and `predicates` are
put over them. One with a `threshold` or `keep` differs in nothing but which of similar documents are removed.
`factory.orchestration.datasets.assets` makes assets of this.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from itertools import chain
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, field_validator, model_validator
from pydantic_core import PydanticCustomError

from factory.dedup.config import Similarity
from factory.dedup.decisions import Keep
from factory.errors import ConfigurationError
from factory.filters.rounds import Round
from factory.ingest.listing import UNWANTED
from factory.ingest.readers import MAX_REJECTED, Fields, Ingested, Ingests
from factory.lake import names
from factory.models.tokenizer import MOST_TOKENS
from factory.orchestration.datasets.partitions_file import Partitioned
from factory.packing.tokenize import TokenizeConfig
from spark_udfs.ingest.bounds import MAX_TEXT_BYTES

RULES = {"prose": ["gopher_quality", "gopher_repetition"], "code": ["code"]}  # of a dataset that names none
FILTERS = tuple(Round.model_fields)

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
                "`{field}` stands beside `rounds`. Move it into one of the rounds.",
                {"field": given[0]},
            )
        return values

    def in_rounds(self) -> tuple[Round, ...]:
        """The rounds that are declared, be it one."""
        return self.rounds or (Round(**{name: getattr(self, name) for name in FILTERS}),)


class Variant(Filters):
    """Other filters of a dataset's documents, or another way to decide on similar ones."""

    threshold: Similarity | None = Field(
        default=None, description="weighted Jaccard from which documents are similar"
    )
    keep: Keep | None = Field(default=None, description="who stays among similar documents")

    @property
    def shares_comparisons(self) -> bool:
        """Whether it takes the filters and comparisons of its dataset, and decides otherwise."""
        return self.threshold is not None or self.keep is not None


class Dataset(Filters):
    """A dataset: where it is read from, how it is filtered, with what it is deduplicated."""

    name: str = Field(description="name of its tables")
    kind: Literal["prose", "code"] = Field(description="code is sorted by dependency; both choose the rules")
    format: str = Field(description="how its files are read")
    paths: Words = Field(min_length=1, description="files and folders, relative to the folder of the file")
    partitions: Partitioned | None = Field(default=None, description="parts that are read by themselves")
    license: str | None = Field(default=None, description="license of documents that name none")
    max_rejected: float = Field(
        default=MAX_REJECTED, ge=0, le=1, description="largest share of rows or files that may be rejected"
    )
    group: str | None = Field(default=None, description="datasets it is compared with; default its kind's")
    tokenizer: str = Field(default="tokenizer", description="tokenizer it is packed with")
    variants: dict[str, Variant] = Field(
        default={}, description="other filters of the same documents, or other decisions on them"
    )

    @model_validator(mode="before")
    @classmethod
    def _defaults_reach_variants(cls, values: Any) -> Any:
        if not isinstance(values, Mapping):
            return values
        values = dict(values)
        if "rounds" not in values:
            # A kind that is wrong is told as such, and not by limits that have no rule.
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
                f"`{given}` holds two underscores, which stand before the name of a variant. Use one."
            )
        return given if given is None else _name(given)

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
        """What decides which documents are read."""
        return self.model_dump(mode="json", exclude={*Filters.model_fields, *_LATER})


_LATER = ("kind", "partitions", "max_rejected", "group", "tokenizer", "variants")


def _over(dataset: Mapping[str, Any], variant: Any) -> Any:
    """A variant's values with those it takes from its dataset."""
    variant = {} if variant is None else variant
    options = [name for name in ("threshold", "keep") if isinstance(variant, Mapping) and name in variant]
    if options:
        beside = [name for name in (*FILTERS, "rounds") if name in variant]
        if beside:
            raise PydanticCustomError(
                "beside_decisions",
                "A variant has filters of its own or a `{option}`, and one has `{given}` beside it. "
                "Make two variants of it, or give its group the `{option}`.",
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
                "Its dataset has `rounds`, so it cannot be told which of them this changes. "
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
    """Files of many records, a document each."""

    source: str | None = Field(default=None, description="name of the source; default that of each path")
    text: str = Field(default="text", description="field of the text")
    key: str | None = Field(
        default=None, description="field that identifies a record; default its file and line"
    )
    columns: dict[str, str] = Field(default={}, description="columns of `raw` and the fields that fill them")
    metadata: Words = Field(default=(), description="further fields that are kept")
    language: str | None = Field(default=None, description="language of documents that name none")
    max_bytes: int = Field(default=MAX_TEXT_BYTES, ge=1, description="longest text that is read")

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
        """Which field of a record is what."""
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
    """Files below folders or in archives, a document each."""

    revision: str | None = Field(default=None, description="revision of the documents")
    metadata: dict[str, str] = Field(default={}, description="what is noted with every document")


class Chosen(Trees):
    """Files that patterns choose."""

    include: Words = Field(default=("**/*",), description="patterns of paths to read; `**/` is any folders")
    exclude: Words = Field(default=(), description="patterns to leave out, besides `.git` and `__pycache__`")

    @property
    def unwanted(self) -> tuple[str, ...]:
        """All that is left out."""
        return (*UNWANTED, *self.exclude)


class Files(Chosen):
    """Files below folders."""

    format: Literal["files"]
    source: str | None = Field(default=None, description="name of the source; default that of each path")
    repository: str | None = Field(default=None, description="the one repository they are of")

    def read(self, ingests: Ingests, paths: list[Path]) -> Ingested:
        return ingests.files(
            paths,
            self.include,
            self.unwanted,
            source=self.source,
            repository=self.repository,
            revision=self.revision,
            license=self.license,
            metadata=self.metadata,
        )


class Repositories(Chosen):
    """Folders whose folders are repositories."""

    format: Literal["repositories"]

    def read(self, ingests: Ingests, paths: list[Path]) -> Ingested:
        return ingests.repositories(
            paths,
            self.include,
            self.unwanted,
            revision=self.revision,
            license=self.license,
            metadata=self.metadata,
        )


class Archive(Trees):
    """Members of zip and tar archives."""

    format: Literal["archive"]
    source: str | None = Field(default=None, description="name of the source; default that of each path")
    repository: str | None = Field(default=None, description="the one repository they are of")

    def read(self, ingests: Ingests, paths: list[Path]) -> Ingested:
        return ingests.archive(
            paths,
            source=self.source,
            repository=self.repository,
            revision=self.revision,
            license=self.license,
            metadata=self.metadata,
        )


class Blend(BaseModel):
    """The blend that the demo serves."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    weights: dict[str, Annotated[int, Field(ge=1)]] = Field(
        default={}, description="rows a step, by dataset or variant; default one of each dataset"
    )
    seed: int = Field(default=7, ge=0, lt=1 << 64, description="seed of the order")
    pad: bool = Field(
        default=False, description="whether rows of unlike lengths may stand together, padded to the longest"
    )


class Tokenizer(TokenizeConfig):
    """A tokenizer that is trained on the datasets that name it, or that of a file."""

    vocabulary: int = Field(
        default=16_384, ge=258, le=MOST_TOKENS, description="number of tokens, where it is trained"
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
        """What stands around documents, whatever the tokenizer."""
        return TokenizeConfig(begin=self.begin, end=self.end)


class DatasetsFile(BaseModel):
    """The whole file."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    datasets: tuple[
        Annotated[Files | Jsonl | Parquet | Archive | Repositories, Field(discriminator="format")], ...
    ] = Field(min_length=1, description="the datasets")
    groups: dict[str, dict[str, Any]] = Field(
        default={}, description="options of `DedupConfig`, and `repositories`, by group"
    )
    tokenizers: dict[str, Tokenizer] = Field(default={}, description="options of tokenizers, by name")
    blend: Blend = Field(default=Blend(), description="the blend that the demo serves")
