"""`factory batches produce`: the steps of a blend, plain or planned, written to the lanes of a namespace."""

from __future__ import annotations

import re
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Annotated, Literal

import typer
from rich.console import Console
from rich.live import Live
from rich.table import Table

from blender.catalog.blends import open_blends
from blender.catalog.namespaces import register_namespace
from blender.client import BlenderClient
from blender.global_batches.blend_production import BlendProduction
from blender.global_batches.namespace import Namespace, open_namespace
from blender.global_batches.producer import Producer, Production
from blender.global_batches.producer_metrics import FAMILIES, samples
from blender.global_batches.store.namespace_store import open_store
from blender.loading.defaults import MODEL
from blender.loading.durable import PlannedProduction
from blender.loading.options import spec_of
from blender.local import LocalBlender
from blender.named_function import named_function
from blender.serving.metrics import serve_metrics
from factory.errors import ConfigurationError
from factory.settings import Settings, settings

_RANGE = re.compile(r"(\d{1,7})(?:(?:\.\.|-)(\d{1,7}))?")
_LOOK_S = 0.5  # between two pictures of a terminal
_LINE_S = 30.0  # between two lines where there is no terminal


def produce(
    uri: Annotated[str, typer.Argument(help="The address of a namespace: s3://bucket/run7, or a folder.")],
    blend: Annotated[str, typer.Option(help="The id of a blend.")],
    lane: Annotated[
        str | None, typer.Option(help="Lanes to write: 0..3, or 0,2; by default all of the namespace.")
    ] = None,
    chunking: Annotated[
        Literal["row", "document"], typer.Option(help="What context parallel ranks divide.")
    ] = "row",
    server: Annotated[
        str | None, typer.Option(help="A Blender to read from, HOST:PORT; by default the lake itself.")
    ] = None,
    strategy: Annotated[
        str | None, typer.Option(help="Plan each step: llm, plain, or your own module:function.")
    ] = None,
    microbatches: Annotated[int, typer.Option(min=1, help="Microbatches of a planned step.")] = 1,
    model: Annotated[str, typer.Option(help="Sizes of the model, whose FLOPs are a plan's costs.")] = MODEL,
    transform: Annotated[
        str | None,
        typer.Option(help="Your module:function of a step that makes its slices; it may be a model."),
    ] = None,
    metrics_port: Annotated[int | None, typer.Option(help="Port to answer Prometheus on.")] = None,
) -> None:
    """Write a blend to lanes of a namespace until it ends; started again, it goes on where its lanes stand.

    Any number of processes share the lanes. Ctrl-C or SIGTERM commits what was made within a second, and
    leaves the lanes open.
    """
    own = settings()
    namespace = open_namespace(open_store(uri, own))
    production = _production(
        own, namespace, blend, server, chunking, strategy, microbatches, model, transform
    )
    producer = Producer(uri, production, _lanes(lane), settings=own)
    if server is None:
        register_namespace(own, namespace.id, uri, blend)
    console = Console(highlight=False)
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    if metrics_port is not None:
        serve_metrics("127.0.0.1", metrics_port, partial(samples, producer), FAMILIES)
    try:
        with _shown(producer, console):
            producer.run()
    except KeyboardInterrupt:
        raise KeyboardInterrupt(_summary(producer)) from None
    console.print(_summary(producer), soft_wrap=True)


def _production(
    own: Settings,
    namespace: Namespace,
    blend: str,
    server: str | None,
    chunking: Literal["row", "document"],
    strategy: str | None,
    microbatches: int,
    model: str,
    transform: str | None,
) -> Production:
    if str(Path.cwd()) not in sys.path:
        sys.path.insert(0, str(Path.cwd()))  # a function of one's own is a module beside the command
    transforms = None if transform is None else named_function(transform, "transform", "a step")
    if strategy is None:
        blender = LocalBlender(own) if server is None else BlenderClient(server)
        return BlendProduction(blender.open(blend), chunking=chunking, transform=transforms)
    if server is not None:
        raise ConfigurationError(
            "A planned step is made in this process, and --server reads from another one. Give --strategy "
            "or --server."
        )
    opened = open_blends(own).open(blend)
    spec = spec_of(
        opened,
        mesh=str(namespace.mesh),
        model=model,
        strategy=strategy,
        microbatches=microbatches,
        chunking=chunking,
    )
    return PlannedProduction(opened, spec, transform=transforms)


def _lanes(text: str | None) -> list[int] | None:
    """The lanes of `0..3,6`; None for all."""
    if text is None:
        return None
    lanes: set[int] = set()
    for part in text.split(","):
        match = _RANGE.fullmatch(part.strip())
        if match is None or int(match[2] or match[1]) < int(match[1]):
            raise ConfigurationError(
                f"`{part.strip()}` is not a range of lanes. Write numbers and ranges: 0..3,6."
            )
        lanes.update(range(int(match[1]), int(match[2] or match[1]) + 1))
    return sorted(lanes)


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
    for column in ("lane", "next step", "batches", "MB", "attempts", "lost", "window", "gap", "lag", ""):
        table.add_column(column, justify="left" if column in ("lane", "") else "right", no_wrap=True)
    for lane in producer.lanes:
        figures = lane.writer.figures
        table.add_row(
            lane.name,
            f"{producer.next_step(lane):,}",
            f"{figures.batches:,}",
            f"{figures.n_bytes / 1e6:,.1f}",
            f"{figures.attempts:,}",
            f"{figures.lost:,}",
            _seconds(figures.window),
            _seconds(figures.gap),
            _seconds(figures.mean_lag),
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
    return f"{batches:,} batches, {n_bytes / 1e6:,.1f} MB committed by this process. Lanes: {lanes}."


def _seconds(value: float | None) -> str:
    return "-" if value is None else f"{value:.2f} s" if value >= 1 else f"{1e3 * value:.0f} ms"
