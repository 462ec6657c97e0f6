"""The formats of a datasets file: one class each, which knows its reader, and the registry of them."""

from __future__ import annotations

import json
from abc import abstractmethod
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal, get_args

import pyarrow as pa
import pyarrow.parquet as pq
from pydantic import Field, field_validator

from factory.errors import ConfigurationError
from factory.frozen_model import WordList
from factory.ingest.listing import UNWANTED
from factory.ingest.readers import HTML_FILES, Captures, Fields, Ingested, Ingests
from factory.orchestration.datasets.dataset import Dataset
from spark_udfs.ingest.bounds import MAX_TEXT_BYTES
from spark_udfs.ingest.compression import content
from spark_udfs.ingest.jsonl import lines

_FIRST_LINE_BYTES = 1 << 20  # read for a guess


class RecordFiles(Dataset):
    """Files of many records, each record a document."""

    source: str | None = Field(default=None, description="name of the source; default: name of each path")
    text: str = Field(default="text", description="field of the text")
    key: str | None = Field(
        default=None, description="field that identifies a record; default: its file and line"
    )
    columns: dict[str, str] = Field(default={}, description="columns of `raw` and the fields that fill them")
    metadata: WordList = Field(default=(), description="further fields to keep")
    language: str | None = Field(default=None, description="default language of documents")
    max_bytes: int = Field(default=MAX_TEXT_BYTES, ge=1, description="longest text to read, in bytes")

    @property
    def about(self) -> dict[str, Any]:
        """Further arguments of its reader."""
        return self.model_dump(include={"source", "license", "limit"})

    @field_validator("columns")
    @classmethod
    def _columns_exist(cls, columns: dict[str, str]) -> dict[str, str]:
        try:
            Fields(columns=columns)
        except ConfigurationError as error:
            raise ValueError(str(error)) from error
        return columns

    @staticmethod
    @abstractmethod
    def text_fields(file: Path) -> dict[str, int]:
        """The fields of text in the first record of a file, with their lengths; raises for a damaged file."""


class Jsonl(RecordFiles):
    """Lines of `.jsonl`, `.jsonl.gz` and `.jsonl.zst`."""

    noun = "JSON lines"
    format: Literal["jsonl"]

    def read(self, ingests: Ingests, paths: list[Path]) -> Ingested:
        return ingests.jsonl(paths, self.options, **self.about)

    @staticmethod
    def text_fields(file: Path) -> dict[str, int]:
        with file.open("rb") as opened:
            line = next(lines(content(opened, file.name), _FIRST_LINE_BYTES))
        record = json.loads(line.data)
        return {name: len(text) for name, text in record.items() if isinstance(text, str)}


class Parquet(RecordFiles):
    """Rows of `.parquet`."""

    noun = "Parquet"
    format: Literal["parquet"]

    def read(self, ingests: Ingests, paths: list[Path]) -> Ingested:
        return ingests.parquet(paths, self.options, **self.about)

    @staticmethod
    def text_fields(file: Path) -> dict[str, int]:
        """The columns of text, each with length 0: a schema has no lengths."""
        is_text = (pa.types.is_string, pa.types.is_large_string, pa.types.is_string_view)
        schema = pq.read_schema(file)
        return {column.name: 0 for column in schema if any(is_kind(column.type) for is_kind in is_text)}


class Trees(Dataset):
    """Files below folders or in archives, each file a document."""

    revision: str | None = Field(default=None, description="revision of the documents")
    metadata: dict[str, str] = Field(default={}, description="metadata of every document")

    @property
    def about(self) -> dict[str, Any]:
        """Properties of every document and the limit, by argument of a reader."""
        return self.model_dump(include={"source", "repository", "revision", "license", "metadata", "limit"})


class Chosen(Trees):
    """Files selected by patterns."""

    include: WordList = Field(
        default=("**/*",), description="patterns of paths to read; `**/` is any folders"
    )
    exclude: WordList = Field(
        default=(), description="patterns to leave out, besides `.git` and `__pycache__`"
    )

    @property
    def patterns(self) -> tuple[str, ...]:
        return self.include

    @property
    def unwanted(self) -> tuple[str, ...]:
        return (*UNWANTED, *self.exclude)


class Files(Chosen):
    """Files below folders."""

    format: Literal["files"]
    source: str | None = Field(default=None, description="name of the source; default: name of each path")
    repository: str | None = Field(default=None, description="repository of all files")

    def read(self, ingests: Ingests, paths: list[Path]) -> Ingested:
        return ingests.files(paths, self.include, self.unwanted, **self.about)


class Html(Chosen):
    """Main texts of HTML files below folders."""

    format: Literal["html"]
    source: str | None = Field(default=None, description="name of the source; default: name of each path")
    repository: str | None = Field(default=None, description="repository of all files")
    include: WordList = Field(
        default=HTML_FILES, description="patterns of paths to read; `**/` is any folders"
    )
    max_bytes: int = Field(default=MAX_TEXT_BYTES, ge=1, description="longest page to read, in bytes")

    def read(self, ingests: Ingests, paths: list[Path]) -> Ingested:
        return ingests.html(paths, self.include, self.unwanted, self.options, **self.about)


class Warc(Dataset):
    """Main texts of the pages in `.warc` and `.warc.gz`, and texts of `.wet.gz`."""

    noun = "a web archive"
    format: Literal["warc"]
    source: str | None = Field(default=None, description="name of the source; default: name of each path")
    captures: Captures = Field(default="all", description="`latest` keeps one document an address")
    max_bytes: int = Field(default=MAX_TEXT_BYTES, ge=1, description="longest page to read, in bytes")

    def read(self, ingests: Ingests, paths: list[Path]) -> Ingested:
        about = self.model_dump(include={"source", "license", "captures", "limit"})
        return ingests.warc(paths, self.options, **about)


class Repositories(Chosen):
    """Folders whose subfolders are repositories."""

    format: Literal["repositories"]

    def read(self, ingests: Ingests, paths: list[Path]) -> Ingested:
        return ingests.repositories(paths, self.include, self.unwanted, **self.about)

    def folders(self, paths: Sequence[Path]) -> list[Path]:
        return [
            folder
            for path in super().folders(paths)
            for folder in path.iterdir()
            if folder.is_dir() and not folder.is_symlink()
        ]


class Archive(Trees):
    """Members of zip and tar archives."""

    noun = "an archive"
    format: Literal["archive"]
    source: str | None = Field(default=None, description="name of the source; default: name of each path")
    repository: str | None = Field(default=None, description="repository of all files")

    def read(self, ingests: Ingests, paths: list[Path]) -> Ingested:
        return ingests.archive(paths, **self.about)


FORMATS: tuple[type[Dataset], ...] = (  # in the order in which errors name them
    Files,
    Jsonl,
    Parquet,
    Archive,
    Html,
    Warc,
    Repositories,
)
CLASS_OF_FORMAT: dict[str, type[Dataset]] = {
    get_args(format_class.model_fields["format"].annotation)[0]: format_class for format_class in FORMATS
}
