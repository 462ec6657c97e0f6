"""Consoles that cut nothing: in a pipe, and in terminals of any width."""

from __future__ import annotations

import io
import os

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.panel import Panel
from rich.table import Table

from factory.cli.output import PIPE_COLUMNS, WholeConsole, frame

WORDS = st.lists(st.text("abcxyz0189.", min_size=1, max_size=70), min_size=1, max_size=6)
REMEDY = "Fetch them: /home/somebody/a/long/path/to/.venv/bin/python -m factory.spark"


def printed(part: object, width: int, *, is_terminal: bool) -> str:
    stream = io.StringIO()
    WholeConsole(file=stream, width=width, force_terminal=is_terminal, color_system=None).print(part)
    return stream.getvalue()


@given(rows=st.lists(st.tuples(WORDS, WORDS), min_size=1, max_size=4), width=st.integers(1, 120))
def test_a_terminal_of_any_width_breaks_no_word_of_a_table(
    rows: list[tuple[list[str], list[str]]], width: int
) -> None:
    table = Table("left", "right", box=None)
    for left, right in rows:
        table.add_row(" ".join(left), " ".join(right))
    shown = printed(table, width, is_terminal=True).split()
    assert sorted(shown) == sorted(
        ["left", "right", *(word for row in rows for part in row for word in part)]
    )


@given(rows=st.lists(st.tuples(WORDS, WORDS), min_size=1, max_size=4))
def test_a_row_is_a_line_of_a_pipe_without_blanks_at_its_end(rows: list[tuple[list[str], list[str]]]) -> None:
    table = Table("left", "right", box=None)
    for left, right in rows:
        table.add_row(" ".join(left), " ".join(right))
    lines = printed(table, PIPE_COLUMNS, is_terminal=False).splitlines()
    assert [line.split() for line in lines[1:]] == [[*left, *right] for left, right in rows]
    assert all(line == line.rstrip() for line in lines)


@pytest.mark.parametrize("is_terminal", [False, True])
def test_a_text_is_never_broken(is_terminal: bool) -> None:
    assert printed(REMEDY, 20, is_terminal=is_terminal) == f"{REMEDY}\n"


def test_a_console_has_the_width_that_its_window_has_now(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("COLUMNS", raising=False)
    console = WholeConsole(file=io.StringIO(), force_terminal=True)
    table = Table("left", "right", box=None)
    table.add_row("a" * 70, "b" * 70)
    for width in (120, 40):
        monkeypatch.setattr(os, "get_terminal_size", lambda _=0, width=width: os.terminal_size((width, 24)))
        console.print(table)
        assert console.width == width


def test_a_frame_is_for_terminals() -> None:
    pipe = WholeConsole(file=io.StringIO(), width=PIPE_COLUMNS)
    pipe.print(frame(pipe, "raw.web", "a text"))
    assert pipe.file.getvalue() == "raw.web\na text\n\n"  # type: ignore[attr-defined]
    assert isinstance(frame(WholeConsole(force_terminal=True), "raw.web", "a text"), Panel)
