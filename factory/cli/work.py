"""`factory work`: workers on this machine for the job of a dataset."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from factory.cli import error_boundary, root
from factory.cli.output import open_console
from factory.errors import NotFound
from factory.settings import PREFIX, Settings
from factory.suggestions import suggestion

if TYPE_CHECKING:
    from factory.synthesis.queue import Queue, Status
    from factory.synthesis.replicas import ReplicaPool


def work(
    dataset: Annotated[str, typer.Argument(help="A dataset of format synthesis whose run has begun.")],
    replicas: Annotated[
        int | None,
        typer.Option(min=1, help="Worker processes of this machine; by default one for each core."),
    ] = None,
) -> None:
    """Work on the job of a dataset with processes of this machine, until all its documents are done.

    Start it on any machine that reaches the warehouse, at any time; the run of the dataset collects the
    results. SIGTERM and Ctrl-C let each worker finish its document. More pressing runs of this machine come
    first.
    """
    settings = root.lake_settings()
    if settings.datasets is not None:
        root.require_datasets_file(settings.datasets, f"{PREFIX}DATASETS")
    queue = _newest_queue(settings, dataset)
    from factory.synthesis.replicas import ReplicaPool, require_cores, usable_cores

    n_workers = replicas or usable_cores()
    require_cores(n_workers)
    folder = settings.datasets.parent if settings.datasets else Path()
    pool = ReplicaPool(settings, queue, n_workers, folder=folder)
    error_boundary.end_in_order_on_sigterm()
    before = queue.status()
    job = f"job {queue.job.id[:8]} of dataset `{dataset}` ({queue.job.kind} {queue.job.version})"
    console = open_console()
    if before.done < before.slices:
        workers = f"{n_workers:,} worker{'' if n_workers == 1 else 's'}"
        console.print(f"{workers} on {job}: {_extent(before)}.", markup=False)
        try:
            _run(pool, before)
        except KeyboardInterrupt as interrupt:
            raise type(interrupt)(
                f"Stopped: {_extent(queue.status())}. The slices that were begun are free again."
            ) from interrupt
    console.print(f"Finished: {job} has {_extent(queue.status())}.", markup=False)


def _newest_queue(settings: Settings, dataset: str) -> Queue:
    """Return the queue that the last run of a dataset has made; raises NotFound."""
    from factory.synthesis.queue import queues

    by_age = [*queues(settings, dataset)]
    if by_age:
        return by_age[-1]
    names = sorted({queue.job.dataset for queue in queues(settings)})
    others = f" {suggestion(dataset, names)}" if names else ""
    raise NotFound(
        f"The lake has no queue of a dataset `{dataset}`.{others} "
        "The run of a job makes its queue: `factory materialize`."
    )


def _run(pool: ReplicaPool, before: Status) -> None:
    """Run workers until the queue is done, with a bar on stderr."""
    columns = (
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
        TextColumn("{task.description}", markup=False),
    )
    start_s = time.monotonic()
    console = open_console(stderr=True)
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as bar:
        task = bar.add_task("", total=before.items, completed=before.items_done)

        def show(status: Status) -> None:
            rate = (status.items_done - before.items_done) / max(time.monotonic() - start_s, 1e-3)
            phrase = f"{rate:,.1f} documents/s, {status.leased:,} slices in work"
            if pool.holder is not None:
                phrase += f", giving way to {pool.holder.what}"
            bar.update(task, total=status.items, completed=status.items_done, description=phrase)

        pool.run(show)


def _extent(status: Status) -> str:
    """How far a job has come, and how many attempts it has lost."""
    done = f"{status.items_done:,} of {status.items:,} documents done"
    noun = "attempt" if status.deaths == 1 else "attempts"
    return f"{done}, {status.deaths:,} {noun} died" if status.deaths else done
