"""The first records of a dataset, read as a run reads them: mistakes in its declaration, and advice.

A preview runs the dataset's reader on a few files, up to `FIRST_RECORDS` records or `FIRST_BYTES` of each. A
file of records without a document, a field that no record has, a predicate on `metadata` that no document has
and pages in prose are mistakes, which `factory check` refuses; a mistake that would fail the whole run ends
it before it reads.
"""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePath

from factory.counted import counted
from factory.ingest.html_extra import require_html
from factory.orchestration.datasets.column_types import column_misfits
from factory.orchestration.datasets.contents import trouble
from factory.orchestration.datasets.empty_fields import empty_field_advice
from factory.orchestration.datasets.formats import RecordFiles
from factory.orchestration.datasets.metadata_names import MetadataNames, unknown_names
from factory.orchestration.datasets.record_fields import key_field, text_field
from factory.orchestration.datasets.record_guess import FIRST_BYTES, FIRST_RECORDS
from factory.orchestration.datasets.template import scalar
from factory.orchestration.declare.ingest_dataset import Dataset
from factory.orchestration.declare.located_yaml import YamlPath
from factory.suggestions import nearest, quoted
from spark_udfs.ingest.compression import EndOfPreview
from spark_udfs.ingest.files import Input
from spark_udfs.ingest.markup import reject_pages
from spark_udfs.ingest.place import Place
from spark_udfs.ingest.records import FirstRecords
from spark_udfs.ingest.rows import NOTHING_LOST, BadRecord, Origin, Row, rejection

MOST_FILES = 12  # read in search of a document
_FILES_OF_RECORDS = 3  # with documents, whose fields are compared
_FIELDS_SHOWN = 12
_DAMAGE = frozenset({"corrupt", "unreadable", "bomb"})  # of a file, not of a record
_OPTIONAL_FIELDS = ("columns", "metadata")  # which later records may have: these end no run
_FIELD_OF = {
    "no_text": "text",
    "text_not_a_string": "text",
    "no_key": "key",
    **dict.fromkeys(("no_messages", "messages_not_a_list", "bad_message"), "messages"),
    **dict.fromkeys(("template", "no_content", "content_not_text"), "template"),
}
_REMEDIES = {
    **dict.fromkeys(("text", "key"), "Name another field."),
    "messages": "Name the field of the list of messages, and those of a message: `role` and `content`.",
    "template": "Choose another template, or correct this one.",
}


@dataclass(frozen=True)
class Mistake:
    """A mistake at a place below the dataset's, and whether it ends a run before the run reads the files."""

    place: YamlPath
    sentence: str
    ends_run: bool = True


@dataclass(frozen=True)
class Preview:
    """The mistakes in a declaration that the first records show, and advice that nobody has to take.

    `names` are the names in their metadata, `rows` the records themselves.
    """

    mistakes: tuple[Mistake, ...] = ()
    advice: tuple[str, ...] = ()
    names: MetadataNames = dataclasses.field(default_factory=MetadataNames)
    rows: tuple[Row, ...] = dataclasses.field(default=(), repr=False)


@dataclass(frozen=True)
class FileStart:
    """The first rows that the reader of a dataset gives of a file; `name` is the file's for a person."""

    source: Input
    name: str
    rows: tuple[Row, ...]

    @property
    def n_documents(self) -> int:
        return sum("reason" not in row for row in self.rows)

    def rejections(self, reasons: Iterable[str] | None = None) -> list[Row]:
        """The rejected records that hold something, of all or some reasons."""
        counting = [row for row in self.rows if row.get("reason", "empty") not in NOTHING_LOST]
        return [row for row in counting if reasons is None or row["reason"] in reasons]


def preview(entry: Dataset, files: Sequence[tuple[Place, bytes]], folder: Path) -> Preview:
    """Return the preview of a dataset; `files` are places with names of files below them.

    Files below `folder` are named relative to it, and at most `MOST_FILES` are read. Raises
    ConfigurationError if an extra is missing.
    """
    if entry.reader.of_pages:
        require_html()
    starts: list[FileStart] = []
    n_enough = _FILES_OF_RECORDS if isinstance(entry, RecordFiles) else 1
    for place, name in _spread(files):
        starts.append(_start(entry, place, name, folder))
        if sum(start.n_documents > 0 for start in starts) == n_enough:
            break
    mistakes: list[Mistake] = []
    advice: list[str] = []
    fields: list[FirstRecords] = []
    rows = [row for start in starts for row in start.rows]
    if isinstance(entry, RecordFiles) and starts:
        fields = [entry.first_records(start.source, FIRST_RECORDS) for start in starts]
        mistakes += _unknown_fields(entry, starts, fields)
        mistakes += _repeated_keys(entry, starts, fields)
        advice += [*_key_advice(entry, fields), *_line_break_advice(entry), *empty_field_advice(entry, rows)]
        misfits = list(column_misfits(entry, rows))
        mistakes += [
            Mistake(misfit.place, misfit.sentence, ends_run=False) for misfit in misfits if misfit.of_all
        ]
        advice += [misfit.sentence for misfit in misfits if not misfit.of_all]
    names = MetadataNames.of_rows(entry, rows, [name for first in fields for name in first.fields])
    for unknown in unknown_names(entry, names, folder):
        mistakes.append(Mistake(unknown.place, unknown.sentence, ends_run=False))
    if not any(mistake.place in (("text",), ("messages",), ("key",)) for mistake in mistakes):
        mistakes += _unread(entry, starts, every_file=len(starts) == len(files))
    if not mistakes and isinstance(entry, RecordFiles):
        mistakes += _too_many_rejected(entry, starts)
    pages = sum(len(start.rejections({"markup"})) for start in starts)
    if pages and any(start.n_documents for start in starts):
        sentence, limit = _pages(entry, starts, pages)
        if limit:
            mistakes.append(Mistake(("markup",), sentence, ends_run=False))
        else:
            advice.append(sentence)
    return Preview(tuple(mistakes), tuple(advice), names, tuple(rows))


def _spread(files: Sequence[tuple[Place, bytes]]) -> list[tuple[Place, bytes]]:
    """Return at most `MOST_FILES` of the files, from the first to the last at even distances."""
    if len(files) <= MOST_FILES:
        return list(files)
    return [files[number * (len(files) - 1) // (MOST_FILES - 1)] for number in range(MOST_FILES)]


def _start(entry: Dataset, place: Place, name: bytes, folder: Path) -> FileStart:
    most_bytes = max(FIRST_BYTES, getattr(entry, "max_bytes", 0) + 1)
    source = Input(Origin(entry.name), place, name, most_bytes)
    path = PurePath(place.display(name))
    label = path.relative_to(folder) if path.is_relative_to(folder) else path
    return FileStart(source, str(label), tuple(_rows(entry, source)))


def _rows(entry: Dataset, source: Input) -> Iterator[Row]:
    """Yield the first rows of a file as a run reads them."""
    rows = entry.reader.rows_of(source, entry.options)
    if entry.markup_choice == "reject" and not entry.reader.of_pages:
        rows = reject_pages(rows, source)
    n_rows = n_bytes = 0
    try:
        for row in rows:
            yield row
            n_rows, n_bytes = n_rows + 1, n_bytes + row["n_bytes"]
            if n_rows == FIRST_RECORDS or n_bytes >= FIRST_BYTES:
                return
            if entry.reader.of_pages and "reason" not in row:  # one page tells, and its main text takes long
                return
    except EndOfPreview:
        # A member of an archive, which has no bound of its own, may be longer than what is read here.
        if not n_rows and hasattr(entry, "max_bytes"):
            detail = f"Its first {source.first_bytes:,} bytes hold no whole record."
            yield rejection(source.origin, source.key, BadRecord("too_long", detail), 0)


def _unread(entry: Dataset, starts: Sequence[FileStart], *, every_file: bool) -> Iterator[Mistake]:
    """Yield a mistake for files without a document, or one for each damaged file among good ones."""
    starts = [start for start in starts if start.rows]
    if any(start.n_documents for start in starts):
        for start in starts:
            for row in start.rejections(_DAMAGE):
                yield Mistake(("paths",), _sentence(entry, start, row), ends_run=False)
        return
    for start in starts:
        for row in start.rejections():
            yield Mistake((_FIELD_OF.get(row["reason"], "paths"),), _sentence(entry, start, row))
            return
    if starts and every_file:
        noun = f"`{starts[0].name}` holds" if len(starts) == 1 else f"All {len(starts)} files hold"
        yield Mistake(("paths",), f"{noun} no text: {starts[0].rows[0]['detail']} Name other files.")


def _sentence(entry: Dataset, start: FileStart, row: Row) -> str:
    """Say where and why a record is rejected, and what to do."""
    place = "" if row["location"] in ("byte 0", "row 0") else f", {row['location']}"
    if isinstance(entry, RecordFiles) and row["reason"] in _FIELD_OF:
        text = text_field(entry.first_records(start.source, FIRST_RECORDS))
        holds_text = _FIELD_OF[row["reason"]] == "text" and text not in (None, *entry.content_fields[1])
        remedy = f"Did you mean `{text}`?" if holds_text else _REMEDIES[_FIELD_OF[row["reason"]]]
        return f"`{start.name}`{place}: {row['detail']} {remedy}"
    return f"`{start.name}`{place}: {trouble(start.source, entry, row)}"


def _too_many_rejected(entry: RecordFiles, starts: Sequence[FileStart]) -> Iterator[Mistake]:
    """Yield a mistake if more of the first records are rejected than may be, except for web pages."""
    rejections = [(start, row) for start in starts for row in start.rejections() if row["reason"] != "markup"]
    n_records = sum(len(start.rejections()) + start.n_documents for start in starts)
    if len(rejections) <= entry.max_rejected * n_records:
        return
    [(reason, _)] = Counter(row["reason"] for _, row in rejections).most_common(1)
    start, row = next(rejection for rejection in rejections if rejection[1]["reason"] == reason)
    fact = f"{len(rejections):,} of the first {counted(n_records, 'record')} are rejected, and at most "
    limit = f"{entry.max_rejected:.0%} may be (`max_rejected`)."
    sentence = f"{fact}{limit} {_sentence(entry, start, row)}"
    yield Mistake((_FIELD_OF.get(reason, "paths"),), sentence, ends_run=False)


def _repeated_keys(
    entry: RecordFiles, starts: Sequence[FileStart], files: Sequence[FirstRecords]
) -> Iterator[Mistake]:
    """Yield a mistake if more of the first documents have the key of an earlier one than may be rejected."""
    if entry.key is None:
        return
    keys = [row["key"] for start in starts for row in start.rows if "reason" not in row]
    n_keys = len(set(keys))
    if len(keys) - n_keys <= entry.max_rejected * len(keys):
        return
    better = key_field(files, [*entry.content_fields[1], *entry.columns.values()])
    remedy = f"Did you mean `{better}`?" if better else "Name another field, or leave `key` out."
    yield Mistake(
        ("key",),
        f"`{entry.key}` has {counted(n_keys, 'value')} in the first {counted(len(keys), 'document')}, and a "
        f"record whose key another one has is rejected. {remedy}",
        ends_run=False,
    )


def _unknown_fields(
    entry: RecordFiles, starts: Sequence[FileStart], files: Sequence[FirstRecords]
) -> Iterator[Mistake]:
    """Yield a mistake for each declared field that no first record has."""
    fields = list(dict.fromkeys(name for first in files for name in first.fields))
    if not fields:
        return
    name = next(start.name for start, first in zip(starts, files, strict=True) if first.fields)
    names_by_place: list[tuple[YamlPath, str]] = []
    declaration, contents = entry.content_fields
    is_exact = entry.options.template is not None and any(first.has(entry.text) for first in files)
    if (len(contents) > 1 or not any(start.n_documents for start in starts)) and not is_exact:
        names_by_place += [((declaration,), field) for field in contents]
    if entry.key is not None:
        names_by_place.append((("key",), entry.key))
    names_by_place += [(("columns", column), field) for column, field in entry.columns.items()]
    names_by_place += [(("metadata", number), field) for number, field in enumerate(entry.metadata)]
    for place, field in names_by_place:
        if any(first.has(field) for first in files):
            continue
        guess = _meant(field, fields) or (_text_of(files) if place == ("text",) else None)
        remedy = f"Did you mean `{guess}`?" if guess else "Name one of them, or leave it out."
        sentence = f"The first records of `{name}` have no field `{field}`, only {_some(fields)}. {remedy}"
        yield Mistake(place, sentence, ends_run=place[0] not in _OPTIONAL_FIELDS)


def _meant(field: str, fields: Sequence[str]) -> str | None:
    """Return the name that a person may have meant: a field of that name in an object, or the nearest."""
    in_objects = (name for name in fields if name.endswith(f".{field}"))
    return next(in_objects, None) or next(iter(nearest(field, fields, n=1)), None)


def _text_of(files: Sequence[FirstRecords]) -> str | None:
    return next((name for first in files if (name := text_field(first))), None)


def _some(fields: Sequence[str]) -> str:
    further = len(fields) - _FIELDS_SHOWN
    return quoted(fields[:_FIELDS_SHOWN]) + (f" and {further} more" if further > 0 else "")


def _key_advice(entry: RecordFiles, files: Sequence[FirstRecords]) -> Iterator[str]:
    n_records = sum(first.n_records for first in files)
    if entry.key is not None or n_records < 2:
        return
    key = key_field(files, [*entry.content_fields[1], *entry.columns.values()])
    if key is not None:
        yield (
            f"`{entry.name}` has no `key`, and `{key}` differs in each of the first {n_records:,} records. "
            f"With `key: {scalar(key)}` a document keeps its id wherever its record is."
        )


def _line_break_advice(entry: RecordFiles) -> Iterator[str]:
    if entry.options.template is not None and "\\n" in entry.text:
        yield (
            f"The template of `{entry.name}` has a backslash and an n (`\\n`), which stay in each text. For "
            "a line break, write the template in double quotes."
        )


def _pages(entry: Dataset, starts: Sequence[FileStart], n_pages: int) -> tuple[str, bool]:
    """Return a sentence about pages among documents, and whether they are more than may be rejected."""
    n_rows = sum(start.n_documents + len(start.rejections()) for start in starts)
    start = next(start for start in starts if start.rejections({"markup"}))
    [row, *_] = start.rejections({"markup"})
    records = "1 web page is" if n_pages == 1 else f"{n_pages:,} web pages are"
    fact = f"{records} among the first {counted(n_rows, 'record')} of `{entry.name}`."
    return f"{fact} {_sentence(entry, start, row)}", n_pages > entry.max_rejected * n_rows
