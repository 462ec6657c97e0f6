"""`factory blend`: the blends of a lake, from a file to their retirement, without a server."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from factory.cli import root
from factory.cli.output import Json, open_console
from factory.errors import ConfigurationError

if TYPE_CHECKING:
    from blender.records import BlendRecord, Source

blend_app = typer.Typer(
    cls=root.Commands,
    help="Create, list, show, price, update and retire blends.",
    no_args_is_help=True,
    rich_markup_mode="rich",
)
console = open_console()
_description = open_console(stderr=True)  # scripts read the id from stdout

BlendId = Annotated[str, typer.Argument(help="The id of a blend; `factory blend list` prints them.")]


@blend_app.command("create")
def create(
    file: Annotated[Path, typer.Argument(help="A blend in YAML or JSON: sources, weights, seed, schedule.")],
) -> None:
    """Create the blend of a file and print its id; the same file and tables give the same blend.

    A server of the lake serves it at once. `factory blend plan --file` prices it without creating it.
    """
    from blender.catalog.blends import open_blends
    from factory.cli.blend_file import WrittenBlend
    from factory.cli.blend_tables import show_blend
    from factory.lake.tables import Lake

    blend_file = WrittenBlend.read(file)
    settings = root.lake_settings()
    blend = open_blends(settings).create(
        blend_file.sources_of(Lake(settings)), blend_file.seed, blend_file.planned, pad=blend_file.pad
    )
    show_blend(settings, blend.id, _description)
    print(blend.id, flush=True)
    _warn_of_undeclared(*blend_file.sources)


@blend_app.command("list")
def list_blends(
    with_retired: Annotated[bool, typer.Option("--retired", help="Also retired blends.")] = False,
    as_json: Json = False,
) -> None:
    """List the blends of the lake, oldest first, each with its sources."""
    from factory.cli.blend_tables import show_blends

    show_blends(root.lake_settings(), console, with_retired=with_retired, as_json=as_json)


@blend_app.command("show")
def show(blend: BlendId, as_json: Json = False) -> None:
    """Show a blend: its sources with their tokenizers and shares of tokens, its schedule and its length."""
    from factory.cli.blend_tables import show_blend

    show_blend(root.lake_settings(), blend, console, as_json=as_json)


@blend_app.command("plan")
def plan(
    blend: Annotated[
        str | None, typer.Argument(help="The id of a blend; without it, give --table or --file.")
    ] = None,
    table: Annotated[
        list[str] | None,
        typer.Option(help="A source of a proposed blend and its rows per step: packed.code=6."),
    ] = None,
    file: Annotated[
        Path | None, typer.Option(help="A proposed blend in YAML or JSON, with its schedule.")
    ] = None,
    seed: Annotated[int | None, typer.Option(min=0, help="Seed of the blend that --table proposes.")] = None,
    pad: Annotated[bool, typer.Option("--pad", help="Pad the rows of that blend to the longest.")] = False,
    offset: Annotated[int, typer.Option(min=0, help="The step whose weights or proportions apply.")] = 0,
    ranks: Annotated[int, typer.Option(min=1, help="Number of ranks that share a step.")] = 1,
    as_json: Json = False,
) -> None:
    """Show the tokens of a step, and the score and cost of each shuffle: pages, bytes, memory."""
    from factory.cli.blend_tables import schedule_at
    from factory.cli.plan import considered, plan_of, show_plan, show_plan_json

    proposal = considered(table or [], file, seed, pad=pad)
    costs, shares = plan_of(root.lake_settings(), blend, proposal, offset, ranks)
    if as_json:
        show_plan_json(costs, shares, console)
        return
    schedule = proposal.planned if proposal else schedule_at(root.lake_settings(), blend or "", offset)
    show_plan(costs, shares, schedule, offset, ranks, console)


@blend_app.command("update")
def update(
    blend: BlendId,
    offset: Annotated[int, typer.Option("--from", min=0, help="The first step that differs.")],
    weight: Annotated[
        list[str] | None, typer.Option(help="The new rows per step of a source: packed.code=6.")
    ] = None,
    file: Annotated[
        Path | None, typer.Option(help="A change in YAML or JSON: weights, sources to add, schedule, pad.")
    ] = None,
) -> None:
    """Create the blend that equals another before a step, with other weights from there on; print its id.

    The old blend stays as it is. Trainers go on with the new id at the offset where they are.
    """
    from blender.trainer.local import LocalBlender
    from factory.cli.blend_file import WrittenUpdate
    from factory.cli.blend_tables import show_blend

    if (file is None) == (not weight):
        raise ConfigurationError("Give the change: either --weight packed.code=6, or --file change.yaml.")
    change = WrittenUpdate.of_weights(weight or []) if file is None else WrittenUpdate.read(file)
    child = LocalBlender(root.lake_settings()).update(
        blend, offset, change.weights, change.add, change.schedule_record, pad=change.pad
    )
    show_blend(root.lake_settings(), child.id, _description)
    print(child.id, flush=True)
    _warn_of_undeclared(*change.add)


@blend_app.command("retire")
def retire(blend: BlendId, as_json: Json = False) -> None:
    """Release the snapshots of a blend, so that maintenance of the lake may drop their files.

    It can be read until they are dropped; `factory blend create` with the same file revives it.
    """
    from blender.trainer.local import LocalBlender

    record = LocalBlender(root.lake_settings()).retire(blend)
    if as_json:
        console.print_json(json.dumps(_retirement(record)))
        return
    tables = ", ".join(dict.fromkeys(source.table for source in record.sources))
    console.print(
        f"Blend {record.id} is retired: its snapshots of {tables} may expire. Until they do it can be read; "
        "creating it again revives it."
    )


def _warn_of_undeclared(*sources: Source) -> None:
    """Print the tables of the sources that the datasets file does not declare."""
    from factory.cli.undeclared import undeclared_tables
    from factory.lake.names import TableName

    settings = root.lake_settings()
    for table in undeclared_tables(settings, [TableName.parse(source.table) for source in sources]):
        _description.print(
            f"{table} is not declared in {settings.datasets}: the blend serves rows that no run makes again.",
            markup=False,
        )


def _retirement(record: BlendRecord) -> dict[str, object]:
    snapshots = {source.name: str(source.snapshot) for source in record.sources}
    return {"id": record.id, "retired": record.retired, "snapshots": snapshots}
