"""The part of synthesis: datasets that workers make from the documents of another dataset.

- name: executed
  kind: code
  format: synthesis
  from: sources
  worker: execute
  size: 10_000
  priority: -10
  replicas: {least: 1, most: 4}
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, field_validator, model_validator
from pydantic_core import PydanticCustomError

from factory.frozen_model import FrozenModel
from factory.ingest.readers import Ingested, Ingests
from factory.lake.names import TableName
from factory.orchestration.declare.dedup_groups import group_of
from factory.orchestration.declare.ingest_dataset import Dataset
from factory.orchestration.declare.located_yaml import InvalidValue
from factory.orchestration.declare.part import Declared, Part
from spark_udfs.ingest.place import Place
from spark_udfs.ingest.registry import READERS, FileReader


class Replicas(FrozenModel):
    """How many workers of this machine share a job: by the length of its queue, between two bounds."""

    least: int = Field(default=1, ge=1, description="workers that a job has while any slice is left")
    most: int = Field(ge=1, description="workers that it has while slices wait")

    @model_validator(mode="after")
    def _least_is_less(self) -> Replicas:
        if self.least > self.most:
            raise ValueError(f"`least` is {self.least} and `most` is {self.most}. Exchange the two.")
        return self


class Caps(FrozenModel):
    """How many records one origin may yield; the first by hash stay, and the others are rejected."""

    document: int | None = Field(default=None, ge=1, description="records of one document of the source")
    repository: int | None = Field(default=None, ge=1, description="records of one repository")


def _replicas(field: Any) -> Any:
    return {"least": field, "most": field} if isinstance(field, int) else field


class Synthesis(Dataset):
    """Records that workers make from the documents of another dataset."""

    reads_texts = False
    format: Literal["synthesis"]
    worker: str = Field(description="what makes the records: `execute`, `docstrings`, or `file.py:Name`")
    worker_options: dict[str, Any] = Field(default={}, description="options of the worker")
    reads: Literal["raw", "deduplicated"] = Field(
        default="raw", description="the documents of `from`: all, or those that its dedup group keeps"
    )
    size: int | None = Field(default=None, description="documents of the source to take; default: all")
    seed: int = Field(default=0, ge=0, description="of everything that a worker draws")
    slice: int = Field(default=100, ge=1, description="documents that a worker leases at a time")
    item_seconds: int = Field(
        default=600, ge=1, description="time at a document after which its worker is killed; refused at last"
    )
    priority: int = Field(
        default=-10, description="workers give way to runs of a higher one; a run has 0 by default"
    )
    replicas: Annotated[Replicas | None, BeforeValidator(_replicas)] = Field(
        default=None,
        description="workers of this machine, or `{least: 1, most: 4}`; default: as many as it has cores",
    )
    caps: Caps = Field(default=Caps(), description="most records of a `document` or `repository`")
    max_rejected: float = Field(
        default=1, ge=0, le=1, description="largest share of results that may be no documents"
    )

    @model_validator(mode="after")
    def _of_a_dataset(self) -> Synthesis:
        if self.from_ is None:
            raise PydanticCustomError(
                "source_of_synthesis",
                "`synthesis` makes records from the documents of a dataset. Name it in `from`.",
                {"field": "paths"},
            )
        if self.limit is not None:
            raise PydanticCustomError(
                "limit_of_synthesis",
                "A job takes the first `size` documents. Write `size: {limit}`.",
                {"field": "limit", "limit": self.limit},
            )
        return self

    @field_validator("size")
    @classmethod
    def _size_of_some(cls, size: int | None) -> int | None:
        if size is not None and size < 1:
            raise ValueError(
                f"A job of {size} documents makes nothing. Take at least one, or leave `size` out for all."
            )
        return size

    @property
    def reader(self) -> FileReader:
        """The reader of plain texts, which records are."""
        return READERS["text"]

    @property
    def default_group(self) -> str:
        """A group of its own: one shared with its source might decide on the documents that it reads."""
        return self.name

    @property
    def compared_with(self) -> TableName | None:
        """Its source: a record that resembles a document of it is no new one."""
        return self.source_table

    @property
    def source_table(self) -> TableName:
        """The table of the documents that it takes."""
        return TableName(self.reads, str(self.from_))

    def read(self, ingests: Ingests, paths: list[Place]) -> Ingested:
        raise NotImplementedError("A job reads a table, and no files.")


class SynthesisPart(Part):
    """Jobs, each a dataset."""

    def check(self, file: Declared) -> None:
        """Raise InvalidValue for a job that reads what its own group decides."""
        entry_of = {entry.name: entry for entry in file.datasets}
        for entry in file.datasets:
            dataset = entry.dataset
            if not isinstance(dataset, Synthesis) or dataset.reads != "deduplicated":
                continue
            group = group_of(entry)
            if group == group_of(entry_of[str(dataset.from_)]):
                raise InvalidValue(
                    (*entry.place, "group"),
                    f"`{entry.name}` reads the documents that dedup group `{group}` keeps, so that group "
                    "cannot decide on it. Leave `group` out, for a group of its own that compares it with "
                    "its source.",
                )
