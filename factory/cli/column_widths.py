"""Widths of the columns of a table in a narrow terminal, none below its longest word.

Rich shrinks the widest columns first and cuts words that no longer fit. Here every column has room for its
longest word, and for its longest line if it must not wrap; the rest of the terminal goes first to the columns
that need least. If its longest words need more than the terminal, a table is wider than the terminal.
"""

from __future__ import annotations

from rich.console import Console
from rich.measure import Measurement
from rich.table import Column, Table

_ANY_WIDTH = 100_000


def fit_columns(console: Console, table: Table) -> int:
    """Set the widths of the columns for the width of a console; return the width of the whole table."""
    options = console.options.update(width=_ANY_WIDTH)
    natural = console.measure(table, options=options).maximum
    if natural <= console.width:
        return natural
    spans = [_span(console, column) for column in table.columns]
    frame = natural - sum(span.maximum for span in spans)
    room = max(0, console.width - frame - sum(span.minimum for span in spans))
    by_need = sorted(zip(spans, table.columns, strict=True), key=lambda pair: pair[0].span)
    for n_left, (span, column) in zip(range(len(spans), 0, -1), by_need, strict=True):
        extra = min(span.span, room // n_left)
        column.width = span.minimum + extra
        room -= extra
    return frame + sum(column.width or 0 for column in table.columns)


def _span(console: Console, column: Column) -> Measurement:
    """The longest word and the longest line of a column, at least its own minimum."""
    options = console.options.update(width=_ANY_WIDTH)
    cells = [Measurement.get(console, options, cell) for cell in (column.header, *column.cells)]
    least = column.min_width or 0
    longest = max(least, *(cell.maximum for cell in cells))
    return Measurement(longest if column.no_wrap else max(least, *(cell.minimum for cell in cells)), longest)
