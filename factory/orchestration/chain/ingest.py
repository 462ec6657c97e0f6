"""`@source` and `@made_from`: functions that read raw material or a dataset as the `raw` table of another."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import wraps
from typing import Any

import dagster as dg
from pydantic import BaseModel
from pyspark.sql import DataFrame

from factory.ingest.frame import documents_of_frame, with_records_of_readers
from factory.ingest.readers import Ingested, Ingests
from factory.lake import names
from factory.lake.names import TableName
from factory.lake.schemas.images import with_images
from factory.lake.schemas.ingest import RAW, REJECTED
from factory.orchestration.chain.link import Chain
from factory.orchestration.groups import dataset_group
from factory.orchestration.table.checks import Check
from factory.orchestration.table.declaration import FilesOf, Tables
from factory.orchestration.table.own_table import n_readings, other_readings, require_frame
from factory.orchestration.table.table_asset import table_asset
from factory.spark.session import IMAGE_ROWS_PER_BATCH

_OF_IMAGES = {"schema": with_images(RAW), "rows_per_batch": IMAGE_ROWS_PER_BATCH}


@dataclass(frozen=True)
class RawPartitions:
    """Divide the raw documents of a dataset into partitions."""

    definition: dg.PartitionsDefinition[str]

    def extend(self, chain: Chain) -> Chain:
        return replace(chain, partitions_def=self.definition)


def source(
    *,
    name: str | None = None,
    config: BaseModel | Mapping[str, Any] | None = None,
    description: str | None = None,
    owners: Sequence[str] = (),
    partitions_def: dg.PartitionsDefinition[str] | None = None,
    files: FilesOf | None = None,
    input_bytes: Callable[[], int] | None = None,
    checks: Sequence[Check] = (),
    upstream: Mapping[str, TableName] | None = None,
    max_rejected: float | None = None,
    has_images: bool = False,
) -> Callable[[Callable[..., Ingested | DataFrame]], dg.AssetsDefinition]:
    """Declare the decorated function as the source of dataset `name`, by default the function's name.

    The function takes `ingests`, the readers of raw material, and with `partitions_def` also `partition`, the
    key to read. It returns the result of a reader, or a DataFrame with the columns of `raw` by name and any
    others (`spark_udfs.ingest.frame`), or such a DataFrame and the rejected records of the readers that it
    is made from (`Ingested.with_documents`); its other arguments are upstream tables, as `own_articles` for
    `own.articles`, or as `upstream` maps them. Its documents become `raw.<name>`, its bad records
    `raw.<name>_rejected`; a run fails if more than the share `max_rejected` is bad. `config` holds
    everything but the code that decides which documents are read. `owners` are mail addresses and
    `team:name`s. `files` returns the files and folders that the function reads, for a partition if there are
    any, so that `--changed` keeps the dataset while they are unchanged. Without `files`, `input_bytes`
    returns the size of the input, so that a run can choose its JVM. `checks` check the documents. A dataset
    that `has_images` is the result of `Ingests.images`, and its table has the column `images` too.

    Raises ConfigurationError at decoration for an invalid name.
    """

    def declare(function: Callable[..., Ingested | DataFrame]) -> dg.AssetsDefinition:
        dataset = name or function.__name__

        @wraps(function)
        def documents(**arguments: Any) -> Ingested | Tables:
            ingests = arguments.get("ingests")
            n_before = n_readings(ingests)
            rows = function(**arguments)
            reading = rows if isinstance(rows, Ingested) else None
            others = other_readings(ingests, n_before, reading)
            if reading is not None and not reading.readings:
                reading = reading if max_rejected is None else reading.limited(max_rejected)
                return Tables.of(reading).leaving_out(others) if others else reading
            frame = require_frame(
                rows if reading is None else reading.documents, f"The function of `{dataset}`"
            )
            of_frame = documents_of_frame(frame, dataset, in_partitions=partitions_def is not None)
            whole = of_frame if reading is None else with_records_of_readers(of_frame, reading)
            tables = Tables.of(whole if max_rejected is None else whole.limited(max_rejected))
            tables = tables.leaving_out(others).releasing(of_frame.release)
            return tables.releasing(ingests.release) if isinstance(ingests, Ingests) else tables

        return raw_asset(
            dataset,
            upstream=upstream or {},
            config=config,
            description=description,
            owners=owners,
            partitions_def=partitions_def,
            files=files,
            input_bytes=input_bytes,
            checks=checks,
            **(_OF_IMAGES if has_images else {}),
        )(documents)

    return declare


def made_from(
    parent: str,
    *,
    name: str | None = None,
    config: BaseModel | Mapping[str, Any] | None = None,
    description: str | None = None,
    owners: Sequence[str] = (),
    partitions_def: dg.PartitionsDefinition[str] | None = None,
) -> Callable[[Callable[[DataFrame], Ingested]], dg.AssetsDefinition]:
    """Declare the decorated function as the source of dataset `name`, made from the documents of another.

    The function takes the raw `documents` of `parent` and returns its own, as
    `factory.ingest.derived.read_again` does. Each has the id of its parent document in
    `metadata.derived_from`, which `factory trace` follows both ways. A parent with partitions needs the same
    `partitions_def`.
    """

    def declare(function: Callable[[DataFrame], Ingested]) -> dg.AssetsDefinition:
        dataset = name or function.__name__
        return raw_asset(
            dataset,
            upstream={"documents": names.raw(parent)},
            config=config,
            description=description,
            owners=owners,
            partitions_def=partitions_def,
        )(function)

    return declare


def raw_asset(
    dataset: str, **options: Any
) -> Callable[[Callable[..., Ingested | Tables]], dg.AssetsDefinition]:
    """`table_asset` for the raw table of a dataset."""
    return table_asset(
        namespace="raw",
        name=dataset,
        asset_group=dataset_group(dataset),
        side_tables={"rejected": REJECTED},
        **{"schema": RAW, **options},
    )
