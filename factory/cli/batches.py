"""`factory batches`: namespaces of durable batches, from their creation to a trainer that waits at night."""

from __future__ import annotations

import typer

from factory.cli.batches_produce import produce

batches_app = typer.Typer(help="Write, inspect and end durable batches.", no_args_is_help=True)
batches_app.command("produce")(produce)
