"""What every entry of a datasets file declares: its files, its filters, its variants and its dedup group.

A dataset without rules gets the default rules of its kind. A variant declares only its differences: with
`rules` or `rounds` it has filters of its own; otherwise it takes the dataset's filters and overrides their
`limits`, `languages` and `predicates`. A variant with a `threshold` or `keep` differs only in which similar
documents are removed.
"""

from __future__ import annotations

import re
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import fields as dataclass_fields
from itertools import chain
from pathlib import Path
from typing import Any, ClassVar, Literal

from pydantic import Field, field_validator, model_validator
from pydantic_core import PydanticCustomError

from factory.dedup.config import DedupConfig, Similarity
from factory.dedup.decisions import Keep
from factory.errors import ConfigurationError
from factory.filters.rounds import Round
from factory.frozen_model import WordList
from factory.ingest.html_extra import extractor_versions
from factory.ingest.listing import UNWANTED
from factory.ingest.readers import MAX_REJECTED, Ingested, Ingests
from factory.lake import names
from factory.orchestration.datasets.facts import FactsEntries
from factory.orchestration.datasets.partitions_file import Partitioned
from factory.suggestions import quoted
from spark_udfs.ingest.markup import Markup
from spark_udfs.ingest.registry import READERS, RECORD_FILES, FileReader

RULES = {"prose": ["gopher_quality", "gopher_repetition"], "code": ["code"]}  # default rules by kind
FILTERS = tuple(Round.model_fields)
_OWNER = re.compile(r"[A-Za-z0-9._%+-]+@[A-Za-z0-9.-]+\.[A-Za-z]{2,7}|team:.+")  # Dagster's pattern


class FilterOptions(Round):
    """Filters in one round, or in `rounds`."""

    rounds: tuple[Round, ...] = Field(default=(), description="filters in rounds, instead of one")
    packing: dict[str, Any] = Field(default={}, description="options of `PackConfig`")

    @model_validator(mode="before")
    @classmethod
    def _one_round_or_several(cls, values: Any) -> Any:
        plain_filters = [name for name in FILTERS if isinstance(values, Mapping) and name in values]
        if plain_filters and "rounds" in values:
            raise PydanticCustomError(
                "beside_rounds",
                "`{field}` cannot be combined with `rounds`. Move it into one of the rounds.",
                {"field": plain_filters[0]},
            )
        return values

    def in_rounds(self) -> tuple[Round, ...]:
        """The declared rounds; plain filters are a single round."""
        return self.rounds or (Round(**{name: getattr(self, name) for name in FILTERS}),)


class Variant(FilterOptions):
    """Other filters of a dataset's documents, or another way to decide on similar ones."""

    threshold: Similarity | None = Field(
        default=None, description="least weighted Jaccard of similar documents"
    )
    keep: Keep | None = Field(default=None, description="rule for which of similar documents stay")

    @property
    def shares_comparisons(self) -> bool:
        """Whether the variant shares its dataset's filters and comparisons and only decides differently."""
        return self.threshold is not None or self.keep is not None


class Dataset(FilterOptions):
    """A dataset: its files, its filters, its dedup group."""

    noun: ClassVar[str] = ""  # its files in an error, if their names tell the format
    name: str = Field(description="name of its tables")
    kind: Literal["prose", "code"] = Field(description="code is sorted by dependency; both choose the rules")
    format: str = Field(description="how its files are read")
    paths: WordList = Field(default=(), description="files and folders, relative to the folder of the file")
    from_: str | None = Field(
        default=None, alias="from", description="dataset whose texts are read, in place of files"
    )
    facts: FactsEntries = Field(
        default=(), description="what others know about its keys, hosts or repositories"
    )
    partitions: Partitioned | None = Field(default=None, description="partitions, each read by itself")
    license: str | None = Field(default=None, description="default license of documents")
    limit: int | None = Field(
        default=None, ge=1, description="read only the first so many records, of each partition"
    )
    markup: Markup | None = Field(
        default=None, description="whether web pages are documents: `keep`, of code by default, or `reject`"
    )
    max_rejected: float = Field(
        default=MAX_REJECTED, ge=0, le=1, description="largest share of rows or files that may be rejected"
    )
    group: str | None = Field(default=None, description="dedup group; default: that of its kind")
    tokenizer: str = Field(default="tokenizer", description="name of its tokenizer")
    validation: float | None = Field(
        default=None, gt=0, lt=1, description="share of its repositories or documents that is packed apart"
    )
    owners: WordList = Field(default=(), description="mail addresses and `team:name`s, shown in Dagster")
    variants: dict[str, Variant] = Field(
        default={}, description="other filters of the same documents, or other decisions on them"
    )

    @model_validator(mode="before")
    @classmethod
    def _no_options_of_a_group(cls, values: Any) -> Any:
        fields = values if isinstance(values, Mapping) else {}
        for name in fields:
            if name in cls.model_fields or name not in DedupConfig.model_fields:
                continue
            group = fields.get("group") or fields.get("kind") or "prose"
            where = "a group or a variant" if name in Variant.model_fields else "a group"
            raise PydanticCustomError(
                "option_of_group",
                "`{field}` belongs to {where}. Write `{remedy}`.",
                {
                    "field": name,
                    "where": where,
                    "remedy": f"groups: {{{group}: {{{name}: {fields[name]}}}}}",
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
            values["variants"] = {name: _over(values, variant) for name, variant in variants.items()}
        return values

    @model_validator(mode="after")
    def _markup_of_texts(self) -> Dataset:
        if self.markup is not None and self.reader.of_pages:
            raise PydanticCustomError(
                "markup_of_pages",
                "`{format}` reads the main text of pages, which has no markup. Leave `markup` out.",
                {"field": "markup", "format": self.format},
            )
        return self

    @model_validator(mode="after")
    def _paths_or_from(self) -> Dataset:
        if bool(self.paths) == bool(self.from_):
            remedy = "Leave one out" if self.paths else "Name the files, or the dataset whose texts it reads"
            raise PydanticCustomError(
                "paths_or_from",
                "A dataset has `paths` or `from`. {remedy}.",
                {"field": "paths", "remedy": remedy},
            )
        if self.from_ is None:
            return self
        if READERS[self.format].of_text is None:
            formats = quoted([format for format, reader in READERS.items() if reader.of_text], " or ")
            raise PydanticCustomError(
                "format_of_from",
                "`{format}` reads files, and the texts of a dataset can be read as {formats}.",
                {"field": "format", "format": self.format, "formats": formats},
            )
        if self.limit is not None:
            raise PydanticCustomError(
                "limit_of_from",
                "It reads every text of `{of}`. Give `{of}` the limit.",
                {"field": "limit", "of": self.from_},
            )
        if self.partitions is not None:
            raise PydanticCustomError(
                "partitions_of_from",
                "It has the partitions of `{of}`. Leave `partitions` out.",
                {"field": "partitions", "of": self.from_},
            )
        return self

    @property
    def markup_choice(self) -> Markup:
        """The treatment of web pages among its texts: the declared one, or the default of its kind."""
        return self.markup or ("reject" if self.kind == "prose" else "keep")

    @property
    def reader(self) -> FileReader:
        """Its reader in Spark's workers."""
        return READERS[self.format]

    @property
    def options(self) -> Any:
        """The options of its reader: the fields of the same name; None if it has none."""
        kind = self.reader.options
        if kind is None:
            return None
        own = type(self).model_fields
        return kind(
            **{field.name: getattr(self, field.name) for field in dataclass_fields(kind) if field.name in own}
        )

    @field_validator("limit", mode="before")
    @classmethod
    def _number_of_records(cls, limit: Any) -> Any:
        if isinstance(limit, Mapping):
            raise ValueError("It is a number of records. Limits of rules are `limits`.")
        return limit

    @field_validator("name", "group", "tokenizer")
    @classmethod
    def _fit_for_tables(cls, name: str | None) -> str | None:
        if name is not None and names.VARIANT in name:
            raise ValueError(
                f"`{name}` contains two underscores, which begin the name of a variant. Use one."
            )
        return name if name is None else _table_name(name)

    @field_validator("owners")
    @classmethod
    def _fit_for_dagster(cls, owners: tuple[str, ...]) -> tuple[str, ...]:
        for owner in owners:
            if not _OWNER.fullmatch(owner):
                raise ValueError(f"`{owner}` is not an owner. Write a mail address, or `team:` and a name.")
        return owners

    @field_validator("variants")
    @classmethod
    def _variants_fit_too(cls, variants: dict[str, Variant]) -> dict[str, Variant]:
        for name in variants:
            _table_name(f"x{names.VARIANT}{name}")
        return variants

    @abstractmethod
    def read(self, ingests: Ingests, paths: list[Path]) -> Ingested:
        """The documents below `paths`, the absolute form of the field."""

    @staticmethod
    def advice(content: bytes) -> str | None:  # noqa: ARG004 (for formats that know some)
        """The remedy for a file without a document that begins with `content`; None if unknown."""
        return None

    @property
    def patterns(self) -> tuple[str, ...]:
        """The patterns of the files that its reader takes."""
        return RECORD_FILES[self.format]

    @property
    def unwanted(self) -> tuple[str, ...]:
        """All patterns of excluded files."""
        return UNWANTED

    def folders(self, paths: Sequence[Path]) -> list[Path]:
        """The folders at `paths` that its reader searches."""
        return [path for path in paths if path.is_dir()]

    def dedup_group(self, variant: str | None = None) -> str:
        """The dedup group of the dataset or a variant; variants of one name share a group."""
        group = self.group or self.kind
        return group if variant is None else names.variant(group, variant)

    def with_variants(self) -> list[str]:
        """The names of the dataset and its variants."""
        return [self.name, *(names.variant(self.name, variant) for variant in self.variants)]

    def reading(self) -> dict[str, Any]:
        """The fields that decide which documents are read."""
        fields = self.model_dump(mode="json", exclude={*FilterOptions.model_fields, *_LATER_FIELDS})
        extractors = extractor_versions() if self.reader.of_pages else {}
        return {**fields, "markup": self.markup_choice, **extractors}


_LATER_FIELDS = (
    "from_",
    "facts",
    "kind",
    "partitions",
    "max_rejected",
    "group",
    "tokenizer",
    "validation",
    "owners",
    "variants",
)


def _table_name(name: str) -> str:
    try:
        return names.dataset(name)
    except ConfigurationError as error:
        raise ValueError(str(error)) from error


def _over(dataset: Mapping[str, Any], variant: Any) -> Any:
    """The values of a dataset, replaced by its variant's."""
    variant = {} if variant is None else variant
    options = [name for name in ("threshold", "keep") if isinstance(variant, Mapping) and name in variant]
    if options:
        filters = [name for name in (*FILTERS, "rounds") if name in variant]
        if filters:
            raise PydanticCustomError(
                "beside_decisions",
                "A variant has filters of its own or a `{option}`, and this one has `{filter}` too. "
                "Split it into two variants, or give its group the `{option}`.",
                {"field": "variants", "option": options[0], "filter": filters[0]},
            )
        return variant
    if not isinstance(variant, Mapping) or "rules" in variant or "rounds" in variant:
        return variant
    if "rounds" in dataset:
        if any(name in variant for name in FILTERS):
            raise PydanticCustomError(
                "rounds_of_variant",
                "Its dataset has `rounds`, so it is unclear which round this changes. "
                "Give the variant `rounds` of its own.",
                {"field": "variants"},
            )
        return {**variant, "rounds": dataset["rounds"]}
    filters_of_dataset = {name: dataset[name] for name in FILTERS if name in dataset}
    for name in ("limits", "predicates"):
        own, inherited = variant.get(name), filters_of_dataset.get(name)
        if isinstance(own, Mapping) and isinstance(inherited, Mapping):
            filters_of_dataset[name] = {**inherited, **own}
            variant = {field: entries for field, entries in variant.items() if field != name}
    return {**filters_of_dataset, **variant}
