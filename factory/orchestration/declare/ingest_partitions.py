"""Partitions declared in a datasets file.

    paths: "letters/{partition}"       partitions: {by: key, keys: [de, en]}
    paths: "web/{partition}.jsonl"     partitions: {by: day, start: 2026-01-01}
    paths: deliveries                  partitions: {by: folder}

The key replaces `{partition}` in a path. Partitions by folder appear and disappear with the folders below the
paths.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import date, datetime, time
from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import Field, field_validator, model_validator
from pydantic_core import PydanticCustomError

from factory.frozen_model import FrozenModel
from factory.orchestration.declare.ingest_dataset import PartFields
from factory.orchestration.declare.ingest_partition_paths import PARTITION
from factory.orchestration.declare.located_yaml import InvalidValue
from factory.orchestration.declare.part import Declared, Entry, Part

if TYPE_CHECKING:
    import dagster as dg

    from factory.orchestration.chain.link import Link

_KEY = re.compile(r"\w+([.-]\w+)*")  # valid in file names and as an end of a range
_KEY_BYTES = 200  # file names may have 255 bytes, including a suffix


class Keys(FrozenModel):
    """A fixed list of partitions."""

    by: Literal["key"]
    keys: tuple[str, ...] = Field(min_length=1, description="the partitions, in the order of ranges")

    @field_validator("keys")
    @classmethod
    def _fit_for_paths(cls, keys: tuple[str, ...]) -> tuple[str, ...]:
        for number, key in enumerate(keys):
            if len(key.encode()) > _KEY_BYTES:
                raise ValueError(
                    f"`{key[:20]}...` has {len(key.encode())} bytes, too many for the name of a file. "
                    f"Use at most {_KEY_BYTES}."
                )
            if not _KEY.fullmatch(key):
                raise ValueError(
                    f"`{key}` is not a partition key. Use letters and digits; between them `_`, `-` or `.`."
                )
            if key in keys[:number]:
                raise ValueError(f"`{key}` is listed twice. Keep one.")
        return keys

    def build(self, name: str) -> dg.PartitionsDefinition[str]:  # noqa: ARG002
        """Dagster's definition."""
        import dagster as dg

        return dg.StaticPartitionsDefinition(list(self.keys))


class Times(FrozenModel):
    """Partitions by time, from `start` up to now or up to and without `end`."""

    by: Literal["hour", "day", "week", "month"]
    start: date = Field(description="the first day")
    end: date | None = Field(default=None, description="the day after the last; default none")

    @model_validator(mode="after")
    def _starts_before_it_ends(self) -> Times:
        if self.end is not None and self.end <= self.start:
            raise PydanticCustomError(
                "ends_first",
                "It is not after `start`, {start}. Give a later day.",
                {"field": "end", "start": str(self.start)},
            )
        return self

    def build(self, name: str) -> dg.PartitionsDefinition[str]:  # noqa: ARG002
        """Dagster's definition."""
        import dagster as dg

        definition = {
            "hour": dg.HourlyPartitionsDefinition,
            "day": dg.DailyPartitionsDefinition,
            "week": dg.WeeklyPartitionsDefinition,
            "month": dg.MonthlyPartitionsDefinition,
        }[self.by]
        start, end = (
            None if day is None else datetime.combine(day, time()) for day in (self.start, self.end)
        )
        return definition(start_date=start, end_date=end)


class Folders(FrozenModel):
    """One partition per folder below the paths."""

    by: Literal["folder"]

    def build(self, name: str) -> dg.PartitionsDefinition[str]:
        """Return Dagster's definition, under the name of the dataset."""
        import dagster as dg

        return dg.DynamicPartitionsDefinition(name=name)


Partitioned = Annotated[Keys | Times | Folders, Field(discriminator="by")]


class PartitionFields(PartFields):
    """The partitions of a dataset."""

    partitions: Partitioned | None = Field(default=None, description="partitions, each read by itself")

    @model_validator(mode="after")
    def _partitions_of_files(self) -> PartitionFields:
        source = getattr(self, "from_", None)
        if self.partitions is not None and source is not None:
            raise PydanticCustomError(
                "partitions_of_from",
                "It has the partitions of `{of}`. Leave `partitions` out.",
                {"field": "partitions", "of": source},
            )
        return self


class PartitionsPart(Part):
    """Partitions of the raw documents."""

    dataset = PartitionFields

    def check(self, file: Declared) -> None:
        """Raise InvalidValue for paths that do not fit the partitions of their dataset."""
        for entry in file.datasets:
            partitions = entry.fields(PartitionFields).partitions
            by_name = partitions is not None and partitions.by != "folder"
            for number, path in enumerate(entry.dataset.paths):
                place = (*entry.place, "paths", number)
                if by_name and PARTITION not in path:
                    raise InvalidValue(
                        place,
                        f"`{path}` would be read for every partition. Write `{PARTITION}` in place of the "
                        "key.",
                    )
                if not by_name and PARTITION in path:
                    raise InvalidValue(
                        place,
                        f"`{path}` contains `{PARTITION}`, but the dataset has no partitions by key or time. "
                        "Declare them in `partitions`, or name the folder above.",
                    )

    def links(self, entry: Entry, file: Declared) -> Sequence[Link]:
        """Return the link of the partitions; a dataset of another one's texts has its partitions."""
        from factory.orchestration.chain.ingest import RawPartitions

        entry_of = {other.name: other for other in file.datasets}
        root = entry_of[entry.base]
        while (source := root.dataset.from_) is not None and root.dataset.reads_texts:
            root = entry_of[source]
        partitions = root.fields(PartitionFields).partitions
        return [RawPartitions(partitions.build(root.name))] if partitions is not None else ()
