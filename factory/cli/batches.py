"""`factory batches`: namespaces of durable batches, from their creation to a trainer that waits at night."""

from __future__ import annotations

import json
import time
from typing import Annotated, Literal

import typer
from rich.console import Console, Group
from rich.live import Live

from blender.loading.defaults import MODEL
from blender.number_ranges import numbers_of
from blender.spec.mesh import Mesh
from factory.cli import root
from factory.cli.output import Json, open_console
from factory.errors import ConfigurationError
from factory.settings import settings

batches_app = typer.Typer(
    cls=root.Commands, help="Write durable batches, and see how far they have come.", no_args_is_help=True
)

Address = Annotated[
    str, typer.Argument(help="The address of a namespace: a folder, or s3://bucket/run7 (also gs:, az:).")
]

_WATCH_S = 2.0
_PATIENCE_S = 30.0  # of a person who looks, with a store that does not answer


@batches_app.command("create")
def create(
    uri: Address,
    mesh: Annotated[str, typer.Option(help="The mesh that reads: dp=32,cp=2; tp and pp do not matter.")],
    lanes: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="The number of lanes; when all have ended, the data end. By default 1; in arrival order "
            "lanes come and go by default.",
        ),
    ] = None,
    order: Annotated[
        Literal["assigned", "arrival"],
        typer.Option(help="Step i comes from lane i mod lanes, or is the i-th batch to be committed."),
    ] = "assigned",
    layout: Annotated[
        Literal["zigzag", "contiguous"],
        typer.Option(help="The two chunks of a sequence that a cp rank reads."),
    ] = "zigzag",
) -> None:
    """Create a namespace, after a probe of its store; one that is there and equal is kept."""
    from blender.global_batches.namespace import create_namespace, lanes_in_words

    namespace = create_namespace(
        uri, Mesh.parse(mesh), lanes=lanes, order=order, layout=layout, settings=settings()
    )
    fill = (
        f"Fill it by BatchWriter, and end it: factory batches end {uri}"
        if namespace.lanes is None
        else f"Fill it: factory batches produce {uri} --blend ID, or by BatchWriter"
    )
    _console().print(
        f"Namespace {namespace.id} at {uri}: {namespace.order} order, {lanes_in_words(namespace.lanes)}, "
        f"for dp={namespace.dp},"
        f"cp={namespace.cp}.\nOf 32 creates of one name one wins, after {_ms(namespace.store.winner_s)}; the "
        f"others know after {_ms(namespace.store.loser_s)}.\n"
        f"{fill}",
        soft_wrap=True,
    )


@batches_app.command("produce")
def produce(
    uri: Address,
    blend: Annotated[str, typer.Option(help="The id of a blend.")],
    lane: Annotated[str | None, typer.Option(help="Lanes to write: 0..3, or 0,2; by default all.")] = None,
    chunking: Annotated[
        Literal["row", "document"], typer.Option(help="What context parallel ranks divide.")
    ] = "row",
    server: Annotated[
        str | None, typer.Option(help="A Blender to read from, HOST:PORT; by default the lake itself.")
    ] = None,
    strategy: Annotated[
        str | None, typer.Option(help="Plan each step: llm, plain, or module:function of yours.")
    ] = None,
    microbatches: Annotated[int, typer.Option(min=1, help="Microbatches of a planned step.")] = 1,
    model: Annotated[
        str,
        typer.Option(
            help="Sizes of the model; its FLOPs are the costs of a plan.",
            show_default=MODEL.replace(",", ", "),
        ),
    ] = MODEL,
    transform: Annotated[
        str | None,
        typer.Option(help="Your module:function of a step that makes its slices; it may be a model."),
    ] = None,
    metrics_port: Annotated[
        int | None, typer.Option(min=1, max=65_535, help="Port to answer Prometheus on.")
    ] = None,
    max_lag: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="Wait while the next step is so many ahead of the oldest checkpoint that an open run holds, "
            "or of the step that readers wait for.",
        ),
    ] = None,
) -> None:
    """Write a blend to lanes of a namespace until it ends; restarted, it resumes its lanes.

    Any number of processes share the lanes. Ctrl-C or SIGTERM commits all finished batches within a second,
    and leaves the lanes open.
    """
    if strategy is not None and server is not None:
        raise ConfigurationError(
            "A planned step is made in this process, and --server reads from another one. Give --strategy "
            "or --server."
        )
    lanes = None if lane is None else numbers_of(lane, "lanes")
    from factory.cli.batches_produce import ProduceOptions, run

    options = ProduceOptions(
        uri, blend, lanes, chunking, server, strategy, microbatches, model, transform, metrics_port, max_lag
    )
    run(settings(), options, _console())


@batches_app.command("finish")
def finish(uri: Address, lane: Annotated[str, typer.Argument(help="A lane that was opened.")]) -> None:
    """Finish a lane that lost its producer: it commits no more, and its uncommitted batches are lost."""
    from blender.global_batches.ending import finish_lane
    from factory.cli.batches_tables import counted

    n_batches = finish_lane(uri, lane, settings=settings(), patience_s=_PATIENCE_S)
    _console().print(
        f"Lane {lane} of {uri} is finished, after {counted(n_batches, 'batch', 'batches')}.",
        soft_wrap=True,
        markup=False,
    )


@batches_app.command("end")
def end(uri: Address) -> None:
    """End a namespace without a number of lanes: no lane commits again, and readers reach the end of data."""
    from blender.global_batches.ending import end_namespace

    end_namespace(uri, settings=settings())
    _console().print(f"The namespace at {uri} has ended.", soft_wrap=True)


@batches_app.command("status")
def show_status(
    uri: Address,
    as_json: Json = False,
    watch: Annotated[
        bool, typer.Option("--watch", help="Look again every two seconds, until Ctrl-C.")
    ] = False,
) -> None:
    """Print how far a namespace has come, who writes it, and what its readers wait for."""
    from blender.global_batches.status import namespace_status
    from factory.cli.batches_tables import Lines, print_lines, status_lines

    def look() -> Lines:
        status = namespace_status(uri, count_orphans=not watch, settings=settings(), patience_s=_PATIENCE_S)
        return status_lines(status)

    if as_json:
        status = namespace_status(uri, settings=settings(), patience_s=_PATIENCE_S)
        print(json.dumps(status.described()))
    elif not watch:
        print_lines(look(), _console())
    else:
        with Live(Group(*look()), console=_console(), auto_refresh=False) as live:
            while True:
                time.sleep(_WATCH_S)
                live.update(Group(*look()), refresh=True)


@batches_app.command("reclaim")
def reclaim(
    uri: Address,
    every: Annotated[
        float | None,
        typer.Option(
            min=1,
            help="Do it again after so many seconds, until Ctrl-C, even if the store has not answered.",
        ),
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Count, and delete nothing.")] = False,
    without_runs: Annotated[
        bool, typer.Option("--all", help="Delete every readable batch, if no run is open.")
    ] = False,
) -> None:
    """Delete batches before the oldest checkpoint that an open run holds, and objects that no step names."""
    from blender.errors import StoreUnavailable
    from blender.global_batches.reclamation import reclaim_batches
    from factory.cli.batches_tables import reclaimed_line

    while True:
        try:
            reclamation = reclaim_batches(
                uri, without_runs=without_runs, dry=dry_run, settings=settings(), patience_s=_PATIENCE_S
            )
        except StoreUnavailable as error:
            if every is None:
                raise
            again = f"Reclaiming again in {every:g} s: {error}"
            open_console(stderr=True).print(again, soft_wrap=True, markup=False)
        else:
            _console().print(reclaimed_line(reclamation, dry_run), soft_wrap=True, markup=False)
        if every is None:
            return
        time.sleep(every)


@batches_app.command("close")
def close(uri: Address, run: Annotated[str, typer.Option(help="A run without a process.")]) -> None:
    """Close a run without a process: it holds no batches any more."""
    from blender.global_batches.training_run import close_run

    first_step = close_run(uri, run, settings=settings(), patience_s=_PATIENCE_S)
    _console().print(
        f"Run {run} of {uri} is closed; it held the steps from {first_step:,} on.",
        soft_wrap=True,
        markup=False,
    )


@batches_app.command("show")
def show_batch(
    uri: Address, step: Annotated[int, typer.Argument(min=0, help="A step.")], as_json: Json = False
) -> None:
    """Print a stored step: object, lane, columns, slices and origin."""
    from blender.global_batches.batch_description import describe_batch
    from factory.cli.batches_tables import batch_lines, print_lines

    batch = describe_batch(uri, step, settings=settings(), patience_s=_PATIENCE_S)
    if as_json:
        print(json.dumps(batch.described()))
    else:
        print_lines(batch_lines(batch), _console())


@batches_app.command("probe")
def probe(uri: Address, as_json: Json = False) -> None:
    """Race 32 creates of one name in a store, which must let exactly one win, and read its object.

    Nothing is left there.
    """
    from blender.global_batches.store.namespace_store import open_store
    from blender.global_batches.store.probe import probe as probe_store

    facts = probe_store(open_store(uri, settings()))
    if as_json:
        print(json.dumps(facts.to_json()))
    else:
        _console().print(
            f"Of 32 creates of one name at {uri} exactly one won, after {_ms(facts.winner_s)}; the others "
            f"know after {_ms(facts.loser_s)}. What was created was read at once. Durable batches are safe "
            "here.",
            soft_wrap=True,
        )


def _ms(seconds: float) -> str:
    return f"{1e3 * seconds:,.1f} ms"


def _console() -> Console:
    return open_console()
