"""Start Blender, and list the blends it serves."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from rich.console import Console
from rich.table import Table

from blender.catalog.blends import open_blends
from blender.local import LocalBlender
from blender.opened.agreement import shown
from blender.serving.ports import port_number
from blender.serving.processes import end_in_order
from blender.serving.shutdown import GRACE_S
from factory.errors import MachineError
from factory.settings import Settings


def require_free_port(port: int, option: str = "--port") -> None:
    """Raise MachineError if something listens on `port`, ConfigurationError for a number above 65,535."""
    port_number(str(port))
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError as error:
            raise MachineError(
                f"Port {port} is in use. Stop what listens there, or choose another port with {option}."
            ) from error


def serve_blends(settings: Settings, arguments: Sequence[str], package: str = "blender.serving") -> None:
    """Replace this process by a server on the lake; module `serve` of `package` declares the arguments."""
    os.environ |= settings.environment()
    os.execv(sys.executable, [sys.executable, "-m", package, *arguments])


def show_blends(settings: Settings, console: Console) -> None:
    """Print every blend of the lake: seed, sources with their rows a step, and the blend it updates."""
    stored = open_blends(settings).list()
    table = Table(box=None, header_style="bold")
    indent = 10 if any(it.config.parent for it in stored) else 0
    table.add_column("blend", no_wrap=True, min_width=indent + 32)  # a truncated id is useless
    for column in ("made", "seed", "sources"):
        table.add_column(column)
    for it in stored:
        sources = ", ".join(f"{source.name} x {source.weight}" for source in it.config.sources)
        parent = f"\n  updates {it.config.parent}" if it.config.parent else ""
        since = f"\nfrom step {it.config.offset:,} on" if it.config.parent else ""
        table.add_row(it.id + parent, it.pins.created_at[:16], str(it.config.seed), sources + since)
    console.print(
        table if stored else "No blend yet. Make one: BlenderClient(...).create(...), or factory demo."
    )


def show_blend(settings: Settings, blend: str, console: Console) -> None:
    """Print the sources of a blend; raises BlendNotFound and what opening it raises."""
    blender = LocalBlender(settings)
    found = blender.describe(blend)
    table = Table(box=None, header_style="bold")
    named = any(it.source.name != it.source.table for it in found.sources)
    for column in ("source", "table") if named else ("table",):
        table.add_column(column, no_wrap=True)
    for column in ("rows", "weight", "of", "tokens", "share", "padding"):
        table.add_column(column, justify="right", no_wrap=True)
    table.add_column("tokenizer", overflow="fold")
    for it in found.sources:
        table.add_row(
            *((it.source.name, it.source.table) if named else (it.source.table,)),
            f"{it.rows:,}",
            str(it.source.weight),
            or_dash(it.sequence_length, ","),
            or_dash(it.tokens, ","),
            or_dash(it.token_share, ".1%"),
            or_dash(it.padding, ".1%"),
            shown(it.tokenizer, it.tokenizer_table) if it.tokenizer else "-",
        )
    console.print(table)
    steps = "does not end" if found.steps is None else f"has {found.steps:,} steps"
    padding = "" if found.padding is None else f"; {found.padding:.1%} of a step is padding"
    console.print(f"Blend {found.blend} {steps}{padding}.", soft_wrap=True)
    record = blender.get(blend)
    while record.parent:
        console.print(f"Before step {record.offset:,} it equals blend {record.parent}.", soft_wrap=True)
        record = blender.get(record.parent)


def or_dash(value: float | None, kind: str) -> str:
    """Format a figure for people; an unknown figure is a dash."""
    return "-" if value is None else format(value, kind)


@contextmanager
def blender_process(settings: Settings, wait_s: float = 60) -> Iterator[str]:
    """Run a Blender in a process of its own, on any free port; yield its address and stop it at the end.

    Raises MachineError with the output of a server that does not start.
    """
    address = settings.files.blender_address
    address.unlink(missing_ok=True)
    log = settings.files.blender_log
    with log.open("wb") as output:
        server = subprocess.Popen(
            [sys.executable, "-m", "blender.serving", "--port", "0", "--address-file", str(address)],
            stdout=subprocess.DEVNULL,
            stderr=output,
            env=os.environ | settings.environment(),
        )
    try:
        deadline = time.monotonic() + wait_s
        while not address.exists():
            if server.poll() is not None or time.monotonic() > deadline:
                raise MachineError(f"Blender did not start: {log.read_text().strip() or 'it said nothing'}")
            time.sleep(0.05)
        yield address.read_text().strip()
    finally:
        end_in_order([server], GRACE_S)
        address.unlink(missing_ok=True)
