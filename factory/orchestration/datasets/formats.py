"""The formats of a datasets file: one class each, which knows its reader, and the registry of them."""

from __future__ import annotations

import json
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Annotated, Any, Literal, get_args

from pydantic import BeforeValidator, Field, PrivateAttr, ValidationInfo, field_validator, model_validator
from pydantic_core import PydanticCustomError

from factory.errors import ConfigurationError
from factory.frozen_model import FrozenModel, WordList
from factory.ingest.chat_template import TEMPLATES, ChatTemplate, chat_template
from factory.ingest.html_extra import extractor_versions
from factory.ingest.image_items import companions_of, patterns_of, state_places
from factory.ingest.listing import UNWANTED
from factory.ingest.readers import HTML_FILES, Captures, Fields, Ingested, Ingests
from factory.lake.identity import content_hash
from factory.orchestration.declare.ingest_dataset import Dataset
from factory.orchestration.declare.synthesis import Synthesis
from factory.suggestions import quoted
from spark_udfs.ingest import jsonl, parquet
from spark_udfs.ingest.bounds import MAX_TEXT_BYTES
from spark_udfs.ingest.files import Input
from spark_udfs.ingest.image_document import CAPTION_ENDING, ImageLayout
from spark_udfs.ingest.images import stem_of
from spark_udfs.ingest.messages import Conversation
from spark_udfs.ingest.place import Place
from spark_udfs.ingest.records import EMPTY_FIELDS, FirstRecords
from spark_udfs.ingest.registry import READERS, FileReader

_SHOWN = 16  # digits of a template's hash
_REMEDIES = {
    "template": f"{quoted(TEMPLATES)}, or a file such as the `chat_template.jinja` of a model",
    "messages": "the field of the messages",
}


class MessageFields(FrozenModel):
    """The messages of a conversation in a record."""

    field: str = Field(default="messages", description="field of the list of messages")
    role: str = Field(default="role", description="field of a message's role")
    content: str = Field(default="content", description="field of a message's content")
    roles: dict[str, str] = Field(default={}, description="other names of roles, such as `human: user`")


def _field_of_messages(messages: Any) -> Any:
    return {"field": messages} if isinstance(messages, str) else messages


class RecordFiles(Dataset):
    """Files of many records, each record a document."""

    source: str | None = Field(default=None, description="name of the source; default: name of each path")
    text: str = Field(
        default="text", description="field of the text, or a template of fields, such as `{title}\\n{body}`"
    )
    messages: Annotated[MessageFields | None, BeforeValidator(_field_of_messages)] = Field(
        default=None, description="field of the messages of a conversation, in place of a text"
    )
    template: str | None = Field(
        default=None, description="how messages become a text: `chatml`, ..., or a file"
    )
    key: str | None = Field(
        default=None, description="field that identifies a record; default: its file and line"
    )
    columns: dict[str, str] = Field(default={}, description="columns of `raw` and the fields that fill them")
    metadata: WordList = Field(default=(), description="further fields to keep")
    language: str | None = Field(default=None, description="default language of documents")
    max_bytes: int = Field(default=MAX_TEXT_BYTES, ge=1, description="longest text to read, in bytes")

    _chat_template: ChatTemplate | None = PrivateAttr(default=None)

    @model_validator(mode="after")
    def _messages_have_a_template(self, info: ValidationInfo) -> RecordFiles:
        if (self.messages is None) != (self.template is None):
            missing, present = ("template", "messages") if self.messages else ("messages", "template")
            remedy = f"Add `{missing}`: {_REMEDIES[missing]}."
            raise PydanticCustomError(
                "messages_and_template",
                "`{field}` needs `{missing}` too. {remedy}",
                {"field": present, "missing": missing, "remedy": remedy},
            )
        if self.template is None:
            return self
        if "text" in self.model_fields_set:
            raise PydanticCustomError(
                "text_beside_messages",
                "The text is made of `messages`. Leave one of the two out.",
                {"field": "text"},
            )
        try:
            self._chat_template = chat_template(self.template, (info.context or {}).get("folder", Path()))
        except ConfigurationError as error:
            raise PydanticCustomError(
                "template", "{message}", {"field": "template", "message": str(error)}
            ) from error
        return self

    @model_validator(mode="after")
    def _facts_stay(self) -> RecordFiles:
        try:
            Fields(text=self.text, columns=self.columns, metadata=self.metadata)
        except ConfigurationError as error:
            context = {
                "field": "metadata" if EMPTY_FIELDS in self.metadata else "columns",
                "message": str(error),
            }
            raise PydanticCustomError("replaced_fact", "{message}", context) from error
        return self

    @property
    def content_fields(self) -> tuple[str, Sequence[str]]:
        """The declaration that names the fields of the texts, and the fields."""
        return "text" if self.messages is None else "messages", self.options.contents

    @property
    def options(self) -> Fields:
        """The fields of its records, and how messages become a text."""
        fields: Fields = super().options
        if self.messages is None or self._chat_template is None:
            return fields
        template = self._chat_template
        return replace(
            fields,
            conversation=Conversation(**dict(self.messages), template=template.text, tokens=template.tokens),
        )

    def reading(self) -> dict[str, Any]:
        """Add a hash of the template, which may be a file, to the fields that decide the documents."""
        fields = super().reading()
        if self._chat_template is None:
            return fields
        digest = content_hash(json.dumps(asdict(self._chat_template), sort_keys=True))
        return {**fields, "template": f"{self.template} {digest[:_SHOWN]}"}

    @property
    def about(self) -> dict[str, Any]:
        """Further arguments of its reader."""
        return self.model_dump(include={"source", "license", "limit"})

    @field_validator("text")
    @classmethod
    def _template_is_whole(cls, text: str) -> str:
        try:
            Fields(text=text)
        except ConfigurationError as error:
            raise ValueError(str(error)) from error
        return text

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
    def first_records(source: Input, n_records: int) -> FirstRecords:
        """The fields and values of the first records of a file; empty for an unreadable file."""


class Jsonl(RecordFiles):
    """Lines of `.jsonl` and `.ndjson`, plain or compressed, and of `.json.gz` and the like."""

    noun = "JSON lines"
    format: Literal["jsonl"]

    def read(self, ingests: Ingests, paths: list[Place]) -> Ingested:
        return ingests.jsonl(paths, self.options, markup=self.markup_choice, **self.about)

    @staticmethod
    def first_records(source: Input, n_records: int) -> FirstRecords:
        return jsonl.first_records(source, n_records)

    @staticmethod
    def advice(content: bytes) -> str | None:
        beginning = content.removeprefix(b"\xef\xbb\xbf").lstrip()
        first_line, _, rest = beginning.partition(b"\n")
        match beginning[:1]:
            case b"[" if not rest.startswith(b"["):
                return "It holds one list. Write each of its records on a line, with `jq -c '.[]'`."
            case b"{" if not first_line.rstrip().endswith(b"}"):
                return "A record has several lines. Write each on one, with `jq -c .`."
            case b"<":
                return "It holds markup. Name another `format`."
        if beginning[:1] not in (b"[", b"{") and (b"," in first_line or b"\t" in first_line):
            return "It looks like a table of CSV. Convert it to JSON lines or Parquet."
        return None


class Parquet(RecordFiles):
    """Rows of `.parquet`."""

    noun = "Parquet"
    format: Literal["parquet"]

    def read(self, ingests: Ingests, paths: list[Place]) -> Ingested:
        return ingests.parquet(paths, self.options, markup=self.markup_choice, **self.about)

    @staticmethod
    def first_records(source: Input, n_records: int) -> FirstRecords:
        return parquet.first_records(source, n_records)


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

    def read(self, ingests: Ingests, paths: list[Place]) -> Ingested:
        return ingests.files(paths, self.include, self.unwanted, markup=self.markup_choice, **self.about)

    @property
    def reader(self) -> FileReader:
        return READERS["text"]


class Html(Chosen):
    """Main texts of HTML files below folders."""

    format: Literal["html"]
    source: str | None = Field(default=None, description="name of the source; default: name of each path")
    repository: str | None = Field(default=None, description="repository of all files")
    include: WordList = Field(
        default=HTML_FILES, description="patterns of paths to read; `**/` is any folders"
    )
    max_bytes: int = Field(default=MAX_TEXT_BYTES, ge=1, description="longest page to read, in bytes")

    def read(self, ingests: Ingests, paths: list[Place]) -> Ingested:
        return ingests.html(paths, self.include, self.unwanted, self.options, **self.about)


class Warc(Dataset):
    """Main texts of the pages in `.warc`, `.warc.gz` and `.warc.zst`, and texts of `.wet.gz`."""

    noun = "a web archive"
    format: Literal["warc"]
    source: str | None = Field(default=None, description="name of the source; default: name of each path")
    captures: Captures = Field(default="all", description="`latest` keeps one document an address")
    max_bytes: int = Field(default=MAX_TEXT_BYTES, ge=1, description="longest page to read, in bytes")

    def read(self, ingests: Ingests, paths: list[Place]) -> Ingested:
        about = self.model_dump(include={"source", "license", "captures", "limit"})
        return ingests.warc(paths, self.options, **about)


class Repositories(Chosen):
    """Folders whose subfolders are repositories."""

    format: Literal["repositories"]

    def read(self, ingests: Ingests, paths: list[Place]) -> Ingested:
        return ingests.repositories(
            paths, self.include, self.unwanted, markup=self.markup_choice, **self.about
        )

    @property
    def reader(self) -> FileReader:
        return READERS["text"]

    def folders(self, paths: Sequence[Place]) -> list[Place]:
        return [
            holder.below(name)
            for holder in super().folders(paths)
            for name in holder.children()
            if holder.kind(name) == "folder" and not holder.is_link(name)
        ]


class Archive(Trees):
    """Members of zip and tar archives."""

    noun = "an archive"
    format: Literal["archive"]
    source: str | None = Field(default=None, description="name of the source; default: name of each path")
    repository: str | None = Field(default=None, description="repository of all files")

    def read(self, ingests: Ingests, paths: list[Place]) -> Ingested:
        return ingests.archive(paths, markup=self.markup_choice, **self.about)


class Images(Dataset):
    """Pictures with their captions, or pages with their figures."""

    noun = "pictures"
    format: Literal["images"]
    source: str | None = Field(default=None, description="name of the source; default: name of each path")
    layout: ImageLayout = Field(
        default="captions",
        description="where texts are: `captions`, files next to pictures, `webdataset`, `parquet` or `pages`",
    )
    caption: str = Field(default="caption", description="field or column of the caption")
    image: str = Field(default="image", description="column of the picture, or of a list of pictures")
    key: str | None = Field(default=None, description="column that identifies a row; default: its number")
    caption_ending: str = Field(default=CAPTION_ENDING, description="ending of the file of a caption")
    caption_lines: Literal["all", "first"] = Field(default="all", description="lines that are the caption")
    caption_prefix: str | None = Field(
        default=None, description="beginning of the line that is the caption, such as `de.utf8=`"
    )
    captions: Literal["required", "optional"] = Field(
        default="required", description="`optional` takes pictures without a caption"
    )
    placeholder: str | None = Field(
        default=None,
        description="mark of a picture in texts, such as `<image>`; default: none",
    )
    bad_pictures: Literal["reject", "leave_out"] = Field(
        default="reject", description="a document of several pictures is rejected for one, or loses it"
    )
    metadata: WordList = Field(default=(), description="further fields or columns to keep")
    language: str | None = Field(default=None, description="language of the captions")
    max_bytes: int = Field(default=MAX_TEXT_BYTES, ge=1, description="longest text to read, in bytes")

    def read(self, ingests: Ingests, paths: list[Place]) -> Ingested:
        about = self.model_dump(include={"source", "license", "limit"})
        return ingests.images(paths, self.options, **about)

    def state_places(self, paths: list[Place]) -> list[Place]:
        """Add captions and figures, which may be anywhere in the folder of a picture or a page."""
        return state_places(paths, self.options)

    @staticmethod
    def companions(files: Sequence[bytes], names: Sequence[bytes]) -> list[bytes] | None:
        """The texts, if half of the pictures have one and half of the texts are captions.

        Other pictures illustrate texts or code. The few other texts are no dataset: its pattern would read
        the captions, too.
        """
        texts = {name for name in names if name.endswith(CAPTION_ENDING.encode())}
        captions = [stem_of(name) + CAPTION_ENDING.encode() for name in files]
        n_captioned = sum(name in texts for name in captions)
        is_captioned = 2 * n_captioned >= len(files) and 2 * len(texts.intersection(captions)) >= len(texts)
        return sorted(texts) if is_captioned else None

    def beside(self, name: bytes) -> list[bytes]:
        """The caption of a picture."""
        return [stem_of(name) + self.caption_ending.encode()] if self.layout == "captions" else []

    @property
    def patterns(self) -> tuple[str, ...]:
        return patterns_of(self.options)

    @property
    def unwanted(self) -> tuple[str, ...]:
        return (*UNWANTED, *companions_of(self.options))

    def reading(self) -> dict[str, Any]:
        """Add the versions of the libraries that find the main text of pages."""
        return {**super().reading(), **(extractor_versions() if self.layout == "pages" else {})}


FORMATS: tuple[type[Dataset], ...] = (  # in the order in which errors name them
    Files,
    Jsonl,
    Parquet,
    Archive,
    Html,
    Warc,
    Repositories,
    Images,
    Synthesis,
)
CLASS_OF_FORMAT: dict[str, type[Dataset]] = {
    get_args(format_class.model_fields["format"].annotation)[0]: format_class for format_class in FORMATS
}
RECORD_NOUNS = [format_class.noun for format_class in FORMATS if issubclass(format_class, RecordFiles)]
