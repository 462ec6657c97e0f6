"""Packed sequences as text, with the borders of their documents, for `factory sample` and `trace batch`."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from rich.console import Console, RenderableType
from rich.text import Text

from factory.cli.output import frame
from factory.cli.tables import cut, show_sample
from factory.counted import counted
from factory.explain.named_state import NamedState
from factory.explain.steps import StepTrace
from factory.lake.tables import Lake
from factory.settings import Settings

if TYPE_CHECKING:
    from factory.explain.packed_text import PackedPiece

_LONGEST = 400  # characters of a piece that are shown
_MOST_PIECES = 12
_NOT_INSTALLED = "To see the tokens as text, install `tokenizers`.\n"


def show_packed_rows(
    lake: Lake, state: NamedState, rows: Sequence[Mapping[str, Any]], console: Console
) -> None:
    """Print each sequence as its documents' text; without its tokenizer only the numbers of the row."""
    if find_spec("tokenizers") is None:  # an installation for trainers need not have it
        sys.stderr.write(_NOT_INSTALLED)
        show_sample([dict(row) for row in rows], state.table, console)
        return
    from factory.explain.packed_text import pieces_of

    pieces_of_rows = pieces_of(lake, state, rows)
    if pieces_of_rows is None:
        sys.stderr.write(
            f"The lake lacks the tokenizer that made the tokens of {state.table}, so they are not shown as "
            f"text. Pack the table again: factory materialize {state.table}.\n"
        )
        show_sample([dict(row) for row in rows], state.table, console)
        return
    for row, pieces in zip(rows, pieces_of_rows, strict=True):
        title = f"{state.table}, sequence {row['ordinal']:,}"
        facts = Text(f"{row['n_tokens']:,} tokens, {len(pieces):,} pieces of documents\n")
        parts: list[RenderableType] = []
        for piece in pieces[:_MOST_PIECES]:
            parts += [_border(piece), Text(cut(piece.text, _LONGEST), "dim")]
        if (n_more := len(pieces) - _MOST_PIECES) > 0:
            parts.append(Text(f"... and {n_more:,} more"))
        console.print(frame(console, title, facts, *parts))


def texts_of_step(settings: Settings, step: StepTrace, n: int) -> dict[int, list[Text]]:
    """Return the text of each document in the first `n` rows of a step, by row, in the order of its segments.

    Texts are cut, and a row has twelve at most. Says on stderr why rows have none.
    """
    if find_spec("tokenizers") is None:
        sys.stderr.write(_NOT_INSTALLED)
        return {}
    from factory.explain.packed_text import pieces_of_step

    rows = step.rows[:n]
    pieces = pieces_of_step(settings, step.blend, rows)
    for table in sorted({row.table for row in rows if row.segments and row.row not in pieces}):
        sys.stderr.write(
            f"The lake lacks the tokenizer that made the tokens of {table}, so they are not shown as text.\n"
        )
    return {row: list(_texts(of_row)) for row, of_row in pieces.items()}


def _texts(pieces: Sequence[PackedPiece]) -> Iterator[Text]:
    for piece in pieces[:_MOST_PIECES]:
        yield Text(cut(piece.text, _LONGEST), "dim")
    if (n_more := len(pieces) - _MOST_PIECES) > 0:
        yield Text(f"... the text of {counted(n_more, 'more document')} is not shown")


def _border(piece: PackedPiece) -> Text:
    """The line above the text of a document."""
    end = piece.doc_offset + piece.length
    return Text.assemble(
        "── ", (piece.name or piece.doc_id, "bold"), f", tokens {piece.doc_offset:,} to {end:,}"
    )
