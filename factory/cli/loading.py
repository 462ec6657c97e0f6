"""`factory loading`: plans of steps, the costs they read, and the process that delivers planned steps."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Literal

import typer
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn
from rich.table import Table

from blender.loading.defaults import BROADCAST, MESH, MODEL
from blender.spec.mesh import MEGATRON_ORDER
from factory.cli import root
from factory.cli.output import Json, open_console
from factory.errors import ConfigurationError

if TYPE_CHECKING:
    from blender.loading.plan import Plan

loading_app = typer.Typer(cls=root.Commands, help="Plan which rank reads which rows.", no_args_is_help=True)

_BAR = 40  # characters of the largest bar
_MOST_ROWS = 64  # buckets in a table


@loading_app.command("plan")
def plan(
    blend: Annotated[str, typer.Argument(help="The id of a blend.")],
    offset: Annotated[int, typer.Option(min=0, help="The step.")] = 0,
    mesh: Annotated[str, typer.Option(help="Extents of the axes: dp=8,tp=4; also cp, pp.")] = MESH,
    order: Annotated[
        str, typer.Option(help="The axes, first the one whose neighbors have consecutive ranks.")
    ] = MEGATRON_ORDER,
    microbatches: Annotated[int, typer.Option(min=1, help="Microbatches of a rank in a step.")] = 1,
    model: Annotated[
        str,
        typer.Option(
            help="The model: hidden, layers, ffn, kv, topk, gated, causal; vocabulary is the blend's.",
            show_default=MODEL.replace(",", ", "),
        ),
    ] = MODEL,
    barrier: Annotated[
        Literal["step", "microbatch", "pipeline"] | None,
        typer.Option(help="Where ranks wait for each other; by default pipeline if pp > 1, else microbatch."),
    ] = None,
    limit: Annotated[int | None, typer.Option(min=1, help="The most tokens of a microbatch.")] = None,
    ragged: Annotated[
        bool, typer.Option("--ragged", help="Allow microbatches of different numbers of rows.")
    ] = False,
    group_size: Annotated[
        int | None,
        typer.Option(min=1, help="Neighboring buckets that are balanced as one; by default all at once."),
    ] = None,
    strategy: Annotated[str, typer.Option(help="llm, vlm, plain, or your own module:function.")] = "llm",
    spec_file: Annotated[
        str | None,
        typer.Option("--spec", help="A file of further fields: images, encoder, row_tokens and others."),
    ] = None,
    tree: Annotated[
        str, typer.Option(help="The places of ranks: a function of yours of the mesh, module:function.")
    ] = "",
    broadcast: Annotated[
        str, typer.Option(help="Axes on which the first rank reads for the others: tp, tp/4, or none.")
    ] = BROADCAST,
    chunking: Annotated[
        Literal["row", "document"], typer.Option(help="What context parallel ranks divide.")
    ] = "row",
    as_json: Json = False,
    draw: Annotated[
        Literal["mermaid", "dot"] | None, typer.Option(help="Print a picture of sources, bins and ranks.")
    ] = None,
) -> None:
    """Plan a step: its rows in buckets and microbatches, and the time at each barrier before and after.

    Reads no token. The same spec and step give the same plan in every process.
    """
    if as_json and draw is not None:
        raise ConfigurationError("--json and --draw print different things. Give one of them.")
    from blender.loading.costs import Backbone
    from blender.loading.spec_file import fields_of_file
    from blender.spec.mesh import Mesh

    fields_of_file(spec_file)
    Mesh.parse(mesh, order)
    Backbone.parse(model)
    from blender.catalog.blends import open_blends
    from blender.loading.draw import drawing
    from blender.loading.options import spec_of
    from blender.loading.planner import Planner

    opened = open_blends(root.lake_settings()).open(blend)
    spec = spec_of(
        opened,
        mesh=mesh,
        order=order,
        model=model,
        broadcast=broadcast,
        strategy=strategy,
        tree=tree,
        microbatches=microbatches,
        limit=limit,
        equal_counts=not ragged,
        barrier=barrier,
        group_size=group_size,
        chunking=chunking,
        file=spec_file,
    )
    planned = Planner(opened, spec).plan(offset)
    if draw is not None:
        print(drawing(planned, draw), end="")
    elif as_json:
        print(json.dumps({"spec": spec.id} | planned.described()))
    else:
        _show(planned, spec.id)


@loading_app.command(
    "serve",
    add_help_option=False,
    context_settings={"allow_extra_args": True, "ignore_unknown_options": True},
)
def serve(context: typer.Context) -> None:
    """Serve planned steps to the ranks of a mesh; `factory loading serve --help` lists the options."""
    from factory.cli.serving import serve_blends

    serve_blends(root.lake_settings(), context.args, "blender.loading")


@loading_app.command("index")
def index(
    blend: Annotated[str, typer.Argument(help="The id of a blend.")],
    as_json: Json = False,
) -> None:
    """Make the files of costs that plans of a blend read, ahead of its run, with progress.

    A loader makes a missing one when it starts, and its ranks wait. Reads lengths of documents and sizes of
    pictures, and no token and no pixel.
    """
    from blender.catalog.blends import open_blends
    from blender.loading.indexing import Indexing

    work = Indexing(open_blends(root.lake_settings()).open(blend))
    columns = (TextColumn("{task.description}"), BarColumn(), TaskProgressColumn(), TimeRemainingColumn())
    with Progress(*columns, console=open_console(stderr=True), transient=True) as bar:
        task = bar.add_task("rows", total=work.rows)
        sources = list(work.run(lambda rows: bar.advance(task, rows)))
    if as_json:
        print(json.dumps([asdict(source) for source in sources]))
        return
    table = Table("source", box=None, header_style="bold", padding=(0, 2, 0, 0))
    for name in ("rows", "MiB", "seconds"):
        table.add_column(name, justify="right")
    for source in sources:
        seconds = f"{source.seconds:.1f}" if source.seconds else "made before"
        table.add_row(source.source, f"{source.rows:,}", f"{source.bytes / 2**20:,.1f}", seconds)
    open_console().print(table)


def _show(plan: Plan, spec: str) -> None:
    console = open_console()
    console.print(_times(plan))
    console.print()
    console.print(_buckets(plan))
    console.print()
    console.print(
        f"Plan {plan.hash:016x} of spec {spec}.\n"
        "time: of the slowest rank, over that of ranks with equal costs; bound: no plan of these rows beats "
        "it\n"
        "microbatches: their costs over the mean microbatch, in the order in which they are read",
        soft_wrap=True,
    )


def _times(plan: Plan) -> Table:
    table = Table(box=None, header_style="bold", padding=(0, 2, 0, 0))
    table.add_column("ranks meet at each")
    for name in ("time as given", "as planned", "bound"):
        table.add_column(name, justify="right")
    for barrier, figure in plan.figures.items():
        name = f"{barrier} *" if barrier == plan.barrier else barrier
        table.add_row(name, f"{figure.before:.3f}", f"{figure.after:.3f}", f"{figure.bound:.3f}")
    return table


def _buckets(plan: Plan) -> Table:
    table = Table(box=None, header_style="bold", padding=(0, 2, 0, 0))
    for name in ("bucket", "ranks that read", "rows", "MiB a rank", "cost"):
        table.add_column(name, justify="right" if name != "ranks that read" else "left")
    table.add_column("microbatches")
    mean = max(float(plan.loads.mean()), 1e-300)
    for bucket in range(min(plan.buckets, _MOST_ROWS)):
        readers = [consumer for consumer in plan.consumers if consumer.bucket == bucket]
        n_bytes = max((plan.bytes_of(reader) for reader in readers), default=0)
        bins = " ".join(f"{load / mean:.2f}" for load in plan.loads[bucket].tolist()[:_BAR])
        table.add_row(
            str(bucket),
            _ranks([reader.rank for reader in readers]),
            f"{int((plan.bucket == bucket).sum()):,}",
            f"{n_bytes / 2**20:.3f}",
            f"{float(plan.loads[bucket].mean()) / mean:.3f}",
            bins + (" ..." if plan.bins > _BAR else ""),
        )
    if plan.buckets > _MOST_ROWS:
        table.caption = f"The first {_MOST_ROWS} of {plan.buckets:,} buckets; --json has all."
    return table


def _ranks(ranks: list[int]) -> str:
    shown = ", ".join(str(rank) for rank in ranks[:8])
    return shown + (f" and {len(ranks) - 8:,} more" if len(ranks) > 8 else "")
