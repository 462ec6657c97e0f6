"""`factory blend plan`: the score and cost of every shuffle for each source of a blend."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from itertools import groupby
from pathlib import Path

from rich.console import Console
from rich.table import Table

from blender.catalog.blends import open_blends
from blender.costs.plan import LONG, ShuffleCost
from blender.costs.plan_facts import plan
from blender.costs.token_shares import TokenShare, padding_of, token_shares
from blender.records import Schedule, Source
from factory.cli.blend_file import WrittenBlend, source_rows
from factory.cli.blend_tables import or_dash, show_schedule
from factory.errors import ConfigurationError
from factory.settings import Settings


def considered(
    tables: Sequence[str], file: Path | None, seed: int | None, *, pad: bool
) -> WrittenBlend | None:
    """Return the blend that a file or texts such as `packed.code=6` propose; None if there is neither.

    Raises ConfigurationError for any other text, for a file together with texts, and for an invalid file.
    """
    if file is not None:
        if tables or seed is not None or pad:
            raise ConfigurationError(
                f"{file} is a whole blend. Leave out --table, and write the seed and `pad` into it."
            )
        return WrittenBlend.read(file)
    sources = tuple(Source(table=name, weight=rows) for name, rows in map(source_rows, tables))
    return WrittenBlend(sources=sources, seed=seed or 0, pad=pad) if sources else None


def plan_of(
    settings: Settings, blend: str | None, written: WrittenBlend | None, offset: int, ranks: int
) -> tuple[list[ShuffleCost], list[TokenShare]]:
    """Return the plan of a stored or a proposed blend, and its sources' shares of tokens.

    Nothing is stored. Raises ConfigurationError unless exactly one of the two is given, and the errors of
    opening and planning a blend.
    """
    if (blend is None) == (written is None):
        raise ConfigurationError(
            "Give one of three: the id of a blend, sources with --table packed.code=6, or --file blend.yaml."
        )
    blends = open_blends(settings)
    if written is not None:
        opened = blends.considered(written.sources, written.seed, written.planned, pad=written.pad)
    else:
        opened = blends.open(blend or "")
    return plan(opened, offset, ranks), token_shares(opened, offset)


def show_plan(
    found: Sequence[ShuffleCost],
    shares: Sequence[TokenShare],
    schedule: Schedule | None,
    offset: int,
    ranks: int,
    console: Console,
) -> None:
    """Print the schedule, then the sources' shares of tokens and a table per source at the step `offset`."""
    if schedule is not None:
        show_schedule(schedule, console)
    if shares:
        console.print(_tokens(shares, "a step" if schedule is None else f"step {offset:,}"))
        console.print()
    for source, of_source in groupby(found, lambda it: it.source):
        console.print(_table(source, list(of_source)))
        console.print()
    console.print(
        f"score: variance of topic counts in a step's rows of the source, and in those of {LONG} steps, over "
        "that of a perfect shuffle\n"
        "pages, MiB: read for a step, on average, by one reader that keeps its window; first: by step 0\n"
        f"alone: bytes that {ranks} ranks read when each has a window of its own, over one reader's\n"
        "tokens: share of all tokens, by the mean row of each table; padding: share of its rows, once they "
        "are as long as the longest of the blend\n"
        "*: the shuffle of the blend",
        soft_wrap=True,
    )


def show_plan_json(costs: Sequence[ShuffleCost], shares: Sequence[TokenShare], console: Console) -> None:
    """Print every shuffle of every source, with the source's share of tokens, as JSON."""
    of_tokens = {share.source: asdict(share) for share in shares}
    console.print_json(json.dumps([of_tokens.get(cost.source, {}) | asdict(cost) for cost in costs]))


def _tokens(shares: Sequence[TokenShare], step: str) -> Table:
    padding = padding_of(shares)
    title = f"tokens of {step}" if padding is None else f"tokens of {step}, {padding:.1%} of it padding"
    table = Table(title=title, title_justify="left", box=None, header_style="bold", padding=(0, 1, 0, 0))
    table.add_column("source", no_wrap=True)
    for column in ("rows", "tokens a row", "of", "tokens", "padding"):
        table.add_column(column, justify="right")
    for share in shares:
        table.add_row(
            share.source,
            f"{share.rows_per_step:,.4g}",
            or_dash(share.tokens_per_row, ",.1f"),
            or_dash(share.sequence_length, ","),
            or_dash(share.token_share, ".1%"),
            or_dash(share.padding, ".1%"),
        )
    return table


def _table(source: str, found: Sequence[ShuffleCost]) -> Table:
    title = f"{source}, {found[0].rows_per_step:,} rows of the step"
    table = Table(title=title, title_justify="left", box=None, header_style="bold", padding=(0, 1, 0, 0))
    table.add_column("shuffle", no_wrap=True)
    columns = (
        "window rows",
        "MiB kept",
        "score",
        f"of {LONG}",
        "pages",
        "MiB",
        "first pages",
        "MiB",
        "alone",
    )
    for column in columns:
        table.add_column(column, justify="right")  # long names wrap in narrow terminals
    for it in found:
        sizes = "/".join(str(size) for size in (it.page_rows, it.window_pages) if size)
        table.add_row(
            f"{'* ' if it.chosen else '  '}{it.shuffle} {sizes}",
            f"{it.window_rows:,}" if it.window_bytes else "-",
            _mebibytes(it.window_bytes) if it.window_bytes else "-",
            f"{it.score:.3g}",
            f"{it.long_score:.3g}",
            f"{it.pages_per_step:,.1f}",
            _mebibytes(it.bytes_per_step),
            f"{it.first_pages:,}",
            _mebibytes(it.first_bytes),
            f"{it.bytes_of_ranks / it.bytes_per_step:.2f}" if it.bytes_per_step else "-",
        )
    return table


def _mebibytes(n_bytes: float) -> str:
    return f"{n_bytes / 2**20:.3g}" if n_bytes < 100 * 2**20 else f"{n_bytes / 2**20:,.0f}"
