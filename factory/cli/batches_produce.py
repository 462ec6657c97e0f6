"""`factory batches produce`: the steps of a blend, plain or planned, written to the lanes of a namespace."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from rich.console import Console
from rich.live import Live
from rich.table import Table

from blender.catalog.namespaces import register_namespace
from blender.chunks import Chunking
from blender.global_batches.blend_production import BlendProduction
from blender.global_batches.format.slices import Slices
from blender.global_batches.namespace import Namespace, open_namespace
from blender.global_batches.producer import Producer, Production
from blender.global_batches.producer_metrics import FAMILIES, samples
from blender.global_batches.store.namespace_store import open_store
from blender.loading.durable import PlannedProduction
from blender.loading.options import spec_of
from blender.named_function import named_function
from blender.serving.metrics import serve_metrics
from blender.trainer.client import BlenderClient
from blender.trainer.local import LocalBlender
from factory.cli import error_boundary
from factory.cli.batches_tables import counted, seconds, size
from factory.settings import Settings

_LOOK_S = 0.5  # between two pictures of a terminal
_LINE_S = 30.0  # between two lines where there is no terminal


@dataclass(frozen=True)
class ProduceOptions:
    """The words of the command."""

    uri: str
    blend: str
    lanes: tuple[int, ...] | None
    chunking: Chunking
    server: str | None
    strategy: str | None
    microbatches: int
    model: str
    transform: str | None
    metrics_port: int | None
    max_lag: int | None


def run(own: Settings, options: ProduceOptions, console: Console) -> None:
    """Write until the blend ends; an interrupt says how far the lanes have come."""
    production, namespace = _production(own, options)
    producer = Producer(options.uri, production, options.lanes, settings=own, max_lag=options.max_lag)
    if options.server is None:
        register_namespace(own, namespace.id, options.uri, options.blend)
    if options.metrics_port is not None:
        serve_metrics("127.0.0.1", options.metrics_port, partial(samples, producer), FAMILIES)
    error_boundary.end_in_order_on_sigterm()
    try:
        with _shown(producer, console):
            producer.run()
    except KeyboardInterrupt as interrupt:
        raise type(interrupt)(_summary(producer)) from None
    console.print(_summary(producer), soft_wrap=True)


def _production(own: Settings, options: ProduceOptions) -> tuple[Production, Namespace]:
    """The production that the options ask for, and its namespace."""
    blender = LocalBlender(own) if options.server is None else BlenderClient(options.server)
    blend = blender.open(options.blend)
    namespace = open_namespace(open_store(options.uri, own))
    transform = None if options.transform is None else _own_function(options.transform)
    if options.strategy is None:
        return BlendProduction(blend, chunking=options.chunking, transform=transform), namespace
    assert isinstance(blender, LocalBlender)  # the command refuses a strategy together with a server
    opened = blender.opened(options.blend)
    spec = spec_of(
        opened,
        mesh=str(namespace.mesh),
        model=options.model,
        strategy=options.strategy,
        microbatches=options.microbatches,
        chunking=options.chunking,
    )
    return PlannedProduction(opened, spec, transform=transform), namespace


def _own_function(name: str) -> Callable[..., Slices]:
    """A transform of the user's, by its name; its module may be in the working directory."""
    if str(Path.cwd()) not in sys.path:
        sys.path.insert(0, str(Path.cwd()))
    return named_function(name, "transform", "a step")


@contextmanager
def _shown(producer: Producer, console: Console) -> Iterator[None]:
    """Show how far the lanes have come while the block runs."""
    if console.is_terminal:
        with Live(get_renderable=lambda: _table(producer), console=console, refresh_per_second=1 / _LOOK_S):
            yield
        return
    ended = threading.Event()

    def lines() -> None:
        while not ended.wait(_LINE_S):
            console.print(_summary(producer), soft_wrap=True)

    threading.Thread(target=lines, name="produce-lines", daemon=True).start()
    try:
        yield
    finally:
        ended.set()


def _table(producer: Producer) -> Table:
    table = Table(box=None, header_style="bold")
    for column in ("lane", "next step", "batches", "bytes", "attempts", "lost", "window", "gap", "lag", ""):
        table.add_column(column, justify="left" if column in ("lane", "") else "right", no_wrap=True)
    for lane in producer.lanes:
        figures = lane.writer.figures
        table.add_row(
            lane.name,
            f"{producer.next_step(lane):,}",
            f"{figures.batches:,}",
            size(figures.n_bytes),
            f"{figures.attempts:,}",
            f"{figures.lost:,}",
            seconds(figures.window),
            seconds(figures.gap),
            seconds(figures.mean_lag),
            lane.state,
        )
    return table


def _summary(producer: Producer) -> str:
    """A sentence: how far the lanes have come."""
    batches = sum(lane.writer.figures.batches for lane in producer.lanes)
    n_bytes = sum(lane.writer.figures.n_bytes for lane in producer.lanes)
    lanes = ", ".join(
        f"{lane.name} at step {producer.next_step(lane):,} ({lane.state})" for lane in producer.lanes
    )
    committed = f"{counted(batches, 'batch', 'batches')}, {size(n_bytes)}"
    return f"{committed} committed by this process. Lanes: {lanes}."
