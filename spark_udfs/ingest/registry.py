"""Every reader of ingest, one line each: its function, the size of its files, and their names."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from spark_udfs.ingest.archive import archive_file
from spark_udfs.ingest.compression import is_compressed
from spark_udfs.ingest.files import Input, text_file
from spark_udfs.ingest.html import WebPages, html_file, html_text
from spark_udfs.ingest.image_document import ImageOptions
from spark_udfs.ingest.images import images_file
from spark_udfs.ingest.installation import description_file, topics_file
from spark_udfs.ingest.jsonl import jsonl_file
from spark_udfs.ingest.parquet import parquet_file
from spark_udfs.ingest.place import LocalFiles, Place
from spark_udfs.ingest.records import Fields
from spark_udfs.ingest.rows import Origin, Row
from spark_udfs.ingest.warc import ARCHIVE_BEGINNING, warc_file
from spark_udfs.pictures import PICTURE_ENDINGS

_ARCS = ("arc", "arc.gz")  # the reader says how to convert them
_WARCS = ("warc", "warc.gz", "warc.zst", "wet", "wet.gz", "wet.zst", *_ARCS)
_COMPRESSIONS = ("gz", "zst", "bz2", "xz")
_JSON_LINES = (  # `.json` alone may be anything; a compressed one is an export of records
    *("jsonl", "ndjson"),
    *(f"{name}.{compression}" for name in ("jsonl", "ndjson", "json") for compression in _COMPRESSIONS),
)
_ARCHIVES = ("zip", "tar", "tgz", "tar.gz", "tar.bz2", "tar.xz", "tar.zst")


@dataclass(frozen=True)
class FileReader:
    """A function that turns a file into rows, and the facts on its files that the driver needs.

    For files that hold `many_records`, `max_rejected` also limits the share that yields no document. A reader
    with `patterns` takes the files below a folder that match one of them; to any other reader the driver
    gives the files by name. `options` is the class of the function's second argument, and a datasets file may
    give its fields; one object of it reaches the workers in each scan. `of_text` reads the text of a document
    of another dataset, with its key and address, in place of a file. The texts of a reader `of_pages` are the
    main texts of pages, so they are never rejected as markup. A reader reads a part alone of files of a place
    with names that are `in_parts`, and that begin with a match of `beginning`; where `needs_index` says so,
    parts begin at frames, which the file has an index of. If the records are lines, the rows of parts have
    `numbers_of_part`, and if a walk alone finds their records, parts have `borders`.
    Documents of a reader `of_images` have pictures, in the column `images` of the raw table.
    """

    rows_of: Callable[[Input, Any], Iterator[Row]]
    many_records: bool  # without a default, so that no reader escapes the limit by omission
    patterns: tuple[str, ...] = ()
    options: type | None = None
    of_text: Callable[[Origin, str, str, str, Any], Row] | None = None
    of_pages: bool = False
    in_parts: Callable[[Place, str], bool] = lambda _place, _name: False
    beginning: re.Pattern[bytes] | None = None
    needs_index: Callable[[Place, str], bool] = lambda _place, _name: False
    numbers_of_part: bool = False
    borders: bool = False
    of_images: bool = False


def _without_options(rows_of: Callable[[Input], Iterator[Row]]) -> Callable[[Input, Any], Iterator[Row]]:
    """Adapt a reader that has no options."""
    return lambda source, options: rows_of(source)  # noqa: ARG005


def _endings(*extensions: str) -> tuple[str, ...]:
    return tuple(f"**/*.{extension}" for extension in extensions)


def _always(_place: Place, _name: str) -> bool:
    return True


def _is_parquet(_place: Place, name: str) -> bool:
    return name.lower().endswith(".parquet")


def _has_parts_of_lines(_place: Place, name: str) -> bool:
    """Whether parts may be found: anywhere in plain text, and between the frames of Zstandard."""
    return not is_compressed(name) or name.lower().endswith(".zst")


def _needs_index(place: Place, name: str) -> bool:
    """Whether frames are found by their index alone: walking their blocks takes seeks of a disk."""
    return is_compressed(name) and not isinstance(place, LocalFiles)


_CASES = (str.lower, str.upper, str.capitalize)  # of the endings of pictures

READERS: dict[str, FileReader] = {  # in the order in which formats are guessed
    "text": FileReader(_without_options(text_file), many_records=False),
    "description": FileReader(_without_options(description_file), many_records=False),
    "topics": FileReader(_without_options(topics_file), many_records=False),
    "html": FileReader(html_file, many_records=False, options=WebPages, of_text=html_text, of_pages=True),
    "parquet": FileReader(
        parquet_file,
        many_records=True,
        patterns=_endings("parquet"),
        options=Fields,
        in_parts=_always,
    ),
    "registered": FileReader(
        partial(parquet_file, registered=True), many_records=True, options=Fields, in_parts=_always
    ),
    "jsonl": FileReader(
        jsonl_file,
        many_records=True,
        patterns=_endings(*_JSON_LINES),
        options=Fields,
        in_parts=_has_parts_of_lines,
        needs_index=_needs_index,
        numbers_of_part=True,
    ),
    "warc": FileReader(
        warc_file,
        many_records=True,
        patterns=_endings(*_WARCS),
        options=WebPages,
        of_pages=True,
        in_parts=lambda _place, name: not name.lower().endswith(tuple(f".{ending}" for ending in _ARCS)),
        beginning=ARCHIVE_BEGINNING,
        borders=True,
    ),
    "archive": FileReader(_without_options(archive_file), many_records=True, patterns=_endings(*_ARCHIVES)),
    "images": FileReader(
        images_file,
        many_records=True,
        patterns=_endings(*(case(ending) for case in _CASES for ending in PICTURE_ENDINGS)),
        options=ImageOptions,
        of_images=True,
        in_parts=_is_parquet,
    ),
}
OF_MANY_RECORDS = frozenset(format for format, reader in READERS.items() if reader.many_records)
RECORD_FILES: Mapping[str, tuple[str, ...]] = {
    format: reader.patterns for format, reader in READERS.items() if reader.patterns
}
"""The patterns of files that a reader of records takes, by format."""
