"""The output of `factory tables` and `factory sample`."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from factory.cli.error_boundary import raise_together
from factory.cli.output import frame
from factory.cli.undeclared import undeclared_tables
from factory.explain.pictures import picture_phrase, without_bytes
from factory.explain.tables import as_plain, published_tables
from factory.lake.names import TableName
from factory.lake.schemas.images import IMAGES
from factory.lake.tables import Lake

if TYPE_CHECKING:
    from spark_udfs.ingest.place import Place

_LONGEST = 1_200  # characters of a text shown in a sample
_LONGEST_FACT = 200  # characters of any other value
_BODIES = ("text", "sample")  # the text of a document, and the first bytes of a rejected record
_HIDDEN = (*_BODIES, "content", "partition", "evidence")


def show_tables(lake: Lake, console: Console, *, as_json: bool) -> None:
    """Print every published table: rows, size, time, content; then raise DamagedFile for damaged ones.

    Tables that the datasets file does not declare are marked.
    """
    found, damaged = published_tables(lake)
    stale_tables = set(undeclared_tables(lake.settings, (published.table for published in found)))
    if as_json:
        plain = [as_plain(head) | {"undeclared": head.table in stale_tables} for head in found]
        console.print_json(json.dumps(plain))
        raise_together(damaged)
        return
    table = Table(box=None, header_style="bold")
    for column in ("table", "stage"):
        table.add_column(column, no_wrap=True)
    for column in ("rows", "MB", "published"):
        table.add_column(column, justify="right", no_wrap=True)
    table.add_column("content", no_wrap=True)  # its beginning; JSON has all of it
    if stale_tables:
        table.add_column("", no_wrap=True)
    for it in found:
        when = time.strftime("%m-%d %H:%M", time.localtime(it.timestamp_ms / 1000))
        megabytes = f"{it.size_bytes / 1e6:,.1f}"
        mark = ["not declared"] if it.table in stale_tables else []
        content = it.lineage.content[:12]
        table.add_row(str(it.table), it.table.stage, f"{it.rows:,}", megabytes, when, content, *mark)
    console.print(table)
    if not found and not damaged:
        sys.stderr.write("No table is published yet. Run the pipeline: factory materialize '*'.\n")
    raise_together(damaged)


def show_sample(rows: list[dict[str, Any]], table: TableName, console: Console) -> None:
    """Print one frame per row, with the text or the first bytes last; mark texts that are cut."""
    if not rows:
        sys.stderr.write(f"{table} has no rows.\n")
    for row in map(without_bytes, rows):
        facts = Text()
        for name, value in row.items():
            if name == IMAGES and isinstance(value, list):
                for image in value:
                    facts.append(f"{cut(picture_phrase(image), _LONGEST_FACT)}\n")
            elif name not in _HIDDEN and value is not None and value != []:
                facts.append(f"{name} ", "bold").append(f"{_short(value)}\n")
        for rule, phrase in (row.get("evidence") or {}).items():
            facts.append(f"{rule} ", "bold").append(f"{phrase}\n")
        bodies = [_body(row[name], row.get("n_bytes")) for name in _BODIES if row.get(name) is not None]
        console.print(frame(console, str(table), facts, *bodies))


def show_sample_json(rows: Sequence[dict[str, Any]], console: Console) -> None:
    """Print the rows as JSON, bytes as escaped text, pictures without their bytes."""
    plain_rows = [without_bytes(row) for row in rows]
    console.print_json(json.dumps(plain_rows, default=_json_value))


def _json_value(cell: object) -> str:
    return cell.decode(errors="backslashreplace") if isinstance(cell, bytes) else str(cell)


def _body(value: str | bytes, n_bytes: int | None) -> Text:
    """Return a text, or the first of `n_bytes` bytes, escaping bytes that are not UTF-8."""
    if isinstance(value, str):
        return Text(cut(value, _LONGEST), "dim")
    shown = "".join(_visible(it) for it in value.decode(errors="backslashreplace"))
    rest = f"\n... (first {len(value):,} of {n_bytes:,} bytes)" if (n_bytes or 0) > len(value) else ""
    return Text(shown + rest, "dim")


def _visible(character: str) -> str:
    """Return the character, or an escape for one that a terminal would obey."""
    return character if character.isprintable() or character in "\n\t" else repr(character)[1:-1]


def cut(text: str, longest: int) -> str:
    """Return the beginning of a text as a terminal may print it; mark a text that is cut."""
    beginning = "".join(map(_visible, text[:longest]))
    if len(text) <= longest:
        return beginning
    return f"{beginning} ... (first {longest:,} of {len(text):,} characters)"


def _failure(failure: Mapping[str, Any]) -> str:
    """Format an entry of `rejections`."""
    if failure["value"] is None:
        return f"{failure['rule']} has no value"
    return f"{failure['rule']} = {failure['value']:g} (limit {failure['threshold']:g})"


def _short(value: object) -> str:
    if isinstance(value, bytes):
        return f"{len(value):,} bytes"
    if isinstance(value, list) and value and isinstance(value[0], dict) and "rule" in value[0]:
        return ", ".join(_failure(failure) for failure in value)
    if isinstance(value, list) and all(isinstance(entry, str) for entry in value):
        return cut(", ".join(value), _LONGEST_FACT)
    return cut(str(value), _LONGEST_FACT)


def show_pages(lake: Lake, table: TableName, rows: Sequence[dict[str, Any]], console: Console) -> None:
    """Print each page next to its main text; all other lines of the page are dim.

    In a pipe a page is lines alone, with `+` before lines of the main text and `-` before the others.
    """
    from factory.explain.pages import whole_text

    paths = _paths_of(lake, table)
    for row in rows:
        main = row["text"] or ""
        main_lines = {" ".join(line.split()) for line in main.splitlines()}
        page = cut(whole_text(lake, table, row, paths), _LONGEST).splitlines()
        lines = [(line, " ".join(line.split()) in main_lines) for line in page]
        title = f"{row['source']} / {row['key']}"
        if not console.is_terminal:
            diff_lines = (f"{'+' if is_main else '-'} {line}" for line, is_main in lines)
            console.print(Text("\n".join([title, *diff_lines, ""])))
            continue
        beside = Table(title=title, title_justify="left", show_lines=True)
        for column in ("page", "main text"):
            beside.add_column(column, ratio=1)
        shading = Text.assemble(*((f"{line}\n", "" if is_main else "dim") for line, is_main in lines))
        beside.add_row(shading, Text(cut(main, _LONGEST)))
        console.print(beside)


def _paths_of(lake: Lake, table: TableName) -> Sequence[Place]:
    """The paths that a datasets file declares for the dataset of a raw table; none without such a file."""
    from factory.orchestration.datasets.assets import corpus

    file = lake.settings.datasets
    return corpus(file).paths.get(table.name, ()) if file is not None else ()
