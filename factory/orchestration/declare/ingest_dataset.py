"""A dataset of a datasets file: its name, its files and how they are read."""

from __future__ import annotations

import re
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import fields as dataclass_fields
from typing import Any, ClassVar, Literal

from pydantic import Field, field_validator, model_validator
from pydantic_core import PydanticCustomError

from factory.errors import ConfigurationError
from factory.frozen_model import FrozenModel, WordList
from factory.ingest.html_extra import extractor_versions
from factory.ingest.listing import UNWANTED
from factory.ingest.readers import MAX_REJECTED, Ingested, Ingests
from factory.lake import names
from factory.lake.names import TableName
from factory.suggestions import quoted
from spark_udfs.ingest.markup import Markup
from spark_udfs.ingest.place import Place
from spark_udfs.ingest.registry import READERS, RECORD_FILES, FileReader

_OWNER = re.compile(r"[A-Za-z0-9._%+-]+@[A-Za-z0-9.-]+\.[A-Za-z]{2,7}|team:.+")  # Dagster's pattern


class PartFields(FrozenModel):
    """Fields that a part adds to every dataset or variant; they change no raw document."""


class Dataset(FrozenModel):
    """A dataset: its name and its files. The parts of a file add the fields of the other stages."""

    noun: ClassVar[str] = ""  # its files in an error, if their names tell the format
    reads_texts: ClassVar[bool] = True  # whether `from` is a dataset whose texts it reads as files
    name: str = Field(description="name of its tables")
    kind: Literal["prose", "code"] = Field(description="code is sorted by dependency; both choose the rules")
    format: str = Field(description="how its files are read")
    paths: WordList = Field(default=(), description="files and folders, relative to the folder of the file")
    from_: str | None = Field(
        default=None, alias="from", description="dataset whose texts are read, in place of files"
    )
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
    owners: WordList = Field(default=(), description="mail addresses and `team:name`s, shown in Dagster")
    variants: dict[str, Any] = Field(
        default={}, description="other filters of the same documents, or other decisions on them"
    )

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
        if self.from_ is None or not self.reads_texts:
            return self
        if self.reader.of_text is None:
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
        return self

    @property
    def default_group(self) -> str:
        """The dedup group of a dataset that names none."""
        return self.kind

    @property
    def compared_with(self) -> TableName | None:
        """The documents that its dedup group compares with, and does not decide on, by default."""
        return None

    @property
    def markup_choice(self) -> Markup:
        """The treatment of web pages among its texts: the declared one, or the default of its kind."""
        return self.markup or ("reject" if self.kind == "prose" else "keep")

    @property
    def reader(self) -> FileReader:
        """Its reader in Spark's workers."""
        return READERS[self.format]

    @property
    def has_images(self) -> bool:
        """Whether its documents have pictures, in the column `images` of its raw table."""
        return self.reader.of_images

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

    @field_validator("name")
    @classmethod
    def _fit_for_tables(cls, name: str) -> str:
        return name_of_tables(name)

    @field_validator("owners")
    @classmethod
    def _fit_for_dagster(cls, owners: tuple[str, ...]) -> tuple[str, ...]:
        for owner in owners:
            if not _OWNER.fullmatch(owner):
                raise ValueError(f"`{owner}` is not an owner. Write a mail address, or `team:` and a name.")
        return owners

    @field_validator("variants")
    @classmethod
    def _variants_fit_too(cls, variants: dict[str, Any]) -> dict[str, Any]:
        for name in variants:
            _table_name(f"x{names.VARIANT}{name}")
        return variants

    @abstractmethod
    def read(self, ingests: Ingests, paths: list[Place]) -> Ingested:
        """The documents below `paths`, the places of the field without links."""

    @staticmethod
    def advice(content: bytes) -> str | None:  # noqa: ARG004 (for formats that know some)
        """The remedy for a file without a document that begins with `content`; None if unknown."""
        return None

    @staticmethod
    def companions(files: Sequence[bytes], names: Sequence[bytes]) -> list[bytes] | None:  # noqa: ARG004
        """The files among `names` that its reader reads with `files`; None if a guess would be too daring."""
        return []

    def beside(self, name: bytes) -> list[bytes]:  # noqa: ARG002
        """The names of files that its reader opens with the file `name`, if they exist."""
        return []

    @property
    def patterns(self) -> tuple[str, ...]:
        """The patterns of the files that its reader takes."""
        return RECORD_FILES[self.format]

    @property
    def unwanted(self) -> tuple[str, ...]:
        """All patterns of excluded files."""
        return UNWANTED

    def folders(self, paths: Sequence[Place]) -> list[Place]:
        """The folders at `paths` that its reader searches."""
        return [path for path in paths if path.kind() == "folder"]

    def state_places(self, paths: list[Place]) -> list[Place]:
        """Return the places of all files that the documents of `paths` depend on."""
        return paths

    def reading(self) -> dict[str, Any]:
        """The fields that decide which documents are read."""
        of_parts = {
            name
            for fields in type(self).__mro__
            if issubclass(fields, PartFields) and not issubclass(fields, Dataset)
            for name in fields.model_fields
        }
        fields = self.model_dump(mode="json", exclude={*of_parts, *_READ_ANYWAY})
        extractors = extractor_versions() if self.reader.of_pages else {}
        return {**fields, "markup": self.markup_choice, **extractors}


_READ_ANYWAY = ("from_", "kind", "max_rejected", "owners", "variants")  # fields that change no document


def name_of_tables(name: str) -> str:
    """Return a name that begins no name of a variant and fits tables; raises ValueError for another one."""
    if names.VARIANT in name:
        raise ValueError(f"`{name}` contains two underscores, which begin the name of a variant. Use one.")
    return _table_name(name)


def _table_name(name: str) -> str:
    try:
        return names.dataset(name)
    except ConfigurationError as error:
        raise ValueError(str(error)) from error
