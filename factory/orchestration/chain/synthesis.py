"""Jobs as assets: `synthesis.<dataset>` waits for the workers, `raw.<dataset>` collects their records.

While workers work, the run is not in the lake: others may write it, and workers give way to them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

import dagster as dg
from pyspark.sql import DataFrame

from factory.errors import ConfigurationError, LakeLocked
from factory.ingest.frame import documents_of_frame
from factory.ingest.ingested import Ingested
from factory.lake import names
from factory.lake.claims import CoresClaim, most_pressing
from factory.lake.names import TableName
from factory.lake.schemas.synthesis import ITEMS, JOB, SIZE
from factory.lake_spark.storage import storage_of
from factory.orchestration.chain.ingest import raw_asset
from factory.orchestration.groups import dataset_group
from factory.orchestration.host.resources import LakeRun
from factory.orchestration.table.declaration import Tables
from factory.orchestration.table.progress import emit
from factory.orchestration.table.table_asset import table_asset
from factory.synthesis.collect import results_of
from factory.synthesis.items import open_source
from factory.synthesis.job import Job
from factory.synthesis.kinds.registry import load_kind
from factory.synthesis.queue import Queue, Status, queues
from factory.synthesis.records import (
    FACTS,
    above_cap,
    items_of,
    job_facts,
    records_of,
    refusals_of,
    within_caps,
)
from factory.synthesis.replicas import ReplicaPool, require_cores
from factory.synthesis.results import result_batches


@dataclass(frozen=True)
class JobDeclaration:
    """A job as a datasets file declares it: a worker, its options, a source, and a number of replicas.

    Without a `size` it takes every document of its source. `folder` is the folder of the datasets file, for
    workers in files. `least` and `most` bound the workers of this machine. `caps` has, by column, the most
    records that share a value.
    """

    dataset: str
    source: TableName
    worker: str
    options: Mapping[str, Any] = field(default_factory=dict)
    folder: Path = Path()
    size: int | None = None
    seed: int = 0
    slice_items: int = 100
    item_seconds: int = 600
    priority: int = -10
    least: int = 1
    most: int = 1
    caps: Mapping[str, int] = field(default_factory=dict)
    max_rejected: float = 1


def synthesize(job: JobDeclaration, owners: Sequence[str] = ()) -> list[dg.AssetsDefinition]:
    """Return the assets of a job: of its items, and of its records as raw documents.

    Raises ConfigurationError for a worker that cannot be loaded, options that it does not have, and values of
    a name that the metadata of all records has.
    """
    kind = load_kind(job.worker, job.folder, job.options)
    for name in kind.schema.names:
        if name in FACTS:
            raise ConfigurationError(
                f"Worker `{job.worker}` gives its records a value `{name}`, which all records of jobs have "
                "in their metadata. Give it another name."
            )
    version = kind.version
    return [_items_asset(job, version, owners), _records_asset(job, version, owners)]


def _items_asset(job: JobDeclaration, version: str, owners: Sequence[str]) -> dg.AssetsDefinition:
    table = names.synthesis(job.dataset)

    @table_asset(
        namespace=table.namespace,
        name=table.name,
        asset_group=dataset_group(job.dataset),
        schema=ITEMS,
        upstream={"documents": job.source},
        config=_config(job, version),
        description=f"The documents of `{job.source}` that `{job.worker}` works on.",
        priority=-1,  # the other assets of a run do not wait for it
        owners=owners,
    )
    def items(context: dg.AssetExecutionContext, documents: DataFrame) -> Tables:
        require_cores(job.most)
        run: LakeRun = context.resources.lake
        queue = _queue(job, version, run)
        _wait(context, job, queue, run)
        files = results_of(queue).files
        return Tables(
            items_of(documents.sparkSession, files, _reader(documents)),
            said={JOB: queue.job.id, SIZE: str(queue.job.size)},
        )

    return items


def _records_asset(job: JobDeclaration, version: str, owners: Sequence[str]) -> dg.AssetsDefinition:
    @raw_asset(
        job.dataset,
        upstream={"items": names.synthesis(job.dataset), "documents": job.source},
        config={**_config(job, version), "caps": dict(job.caps)},
        description=f"The records that `{job.worker}` makes of documents of `{job.source}`.",
        owners=owners,
    )
    def records(context: dg.AssetExecutionContext, items: DataFrame, documents: DataFrame) -> Ingested:
        run: LakeRun = context.resources.lake
        properties = run.pin(names.synthesis(job.dataset)).properties
        queue = Queue.open(run.lake.settings, job.dataset, properties[JOB])
        _clean_others(queue)
        files = results_of(queue, int(properties[SIZE])).files
        read, spark = _reader(documents), items.sparkSession
        facts = job_facts(job.worker, version, queue.job.id, job.seed)
        rows = records_of(spark, files, read, documents, job.dataset, facts)
        refusals = refusals_of(spark, files, read, job.dataset)
        for column, most in job.caps.items():
            rows, others = within_caps(rows, column, most)
            refusals = refusals.unionByName(above_cap(others, column, most))
        outcome = documents_of_frame(rows, job.dataset)
        whole = replace(outcome, rejected=outcome.rejected.unionByName(refusals))
        return whole.limited(job.max_rejected)

    return records


def _clean_others(queue: Queue) -> None:
    """Delete the queues of a dataset that a newer one replaces; its own stays, for a job that grows."""
    for other in queues(queue.settings, queue.job.dataset):
        if other.job.id != queue.job.id:
            other.clean()


def _config(job: JobDeclaration, version: str) -> dict[str, Any]:
    """All that decides the records, except the documents of the source."""
    return {
        "worker": job.worker,
        "version": version,
        "options": dict(job.options),
        "seed": job.seed,
        "size": job.size,
        "slice": job.slice_items,
        "item_seconds": job.item_seconds,
    }


def _queue(job: JobDeclaration, version: str, run: LakeRun) -> Queue:
    """Return the queue of the job at the pinned snapshot of its source, created if it is missing."""
    settings = run.lake.settings
    documents = run.pin(job.source)
    if not documents.rows:
        raise ConfigurationError(
            f"`{job.source}` has no documents, so the job of dataset `{job.dataset}` has nothing to take. "
            "See why they are gone (factory report), or remove the job."
        )
    work = Job(
        dataset=job.dataset,
        source=str(job.source),
        snapshot=documents.snapshot_id,
        content=documents.lineage.content,
        kind=job.worker,
        version=version,
        options=job.options,
        seed=job.seed,
        size=job.size or documents.rows,
        priority=job.priority,
        slice_items=job.slice_items,
        item_seconds=job.item_seconds,
    )
    open_source(settings, work)
    return Queue.create(settings, work)


def _wait(context: dg.AssetExecutionContext, job: JobDeclaration, queue: Queue, run: LakeRun) -> None:
    """Let the workers of this machine and others finish the queue, away from the lake."""
    table = str(names.synthesis(job.dataset))
    pause = _PauseLog(context, job.priority)
    replicas = ReplicaPool(run.lake.settings, queue, job.least, job.most, folder=job.folder)

    def show(status: Status) -> None:
        held_by = pause.note()
        emit(table, "waiting", note=_phrase(status, held_by))

    def wait_for_lake(error: LakeLocked) -> None:
        emit(table, "waiting", note=str(error))

    assert run.session is not None
    with run.session.away(wait_for_lake):
        replicas.run(show)


def _phrase(status: Status, held_by: CoresClaim | None) -> str:
    """The state of a queue in a line: how much is done, and who works."""
    done = f"{status.items_done:,} of {status.items:,} documents, {status.leased} slices in work"
    return f"{done}, giving way to {held_by.what}" if held_by else done


class _PauseLog:
    """Says in the record of a run when its workers give way, to whom, and when they come back."""

    def __init__(self, context: dg.AssetExecutionContext, priority: int) -> None:
        self._log: Callable[[str], object] = context.log.info
        self._priority = priority
        self._holder: CoresClaim | None = None

    def note(self) -> CoresClaim | None:
        """Log a change since the last call; return the claim that workers give way to."""
        holder = most_pressing(above=self._priority)
        if holder != self._holder:
            self._log(
                f"The workers give way to {holder.what}, of priority {holder.priority}."
                if holder
                else "The workers go on."
            )
        self._holder = holder
        return holder


def _reader(frame: DataFrame) -> partial[Any]:
    """The function that reads a result file in Spark's workers."""
    return partial(result_batches, storage=storage_of(frame.sparkSession))
