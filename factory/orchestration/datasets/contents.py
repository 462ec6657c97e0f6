"""The content of a file by its first bytes, and the remedy for a file that a reader cannot read."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import PurePosixPath

from factory.ingest.left_out import ending_of
from factory.orchestration.datasets.remedies import is_listed, remedies
from factory.orchestration.declare.ingest_dataset import Dataset
from spark_udfs.ingest.compression import EndOfPreview, content
from spark_udfs.ingest.files import Input, opened
from spark_udfs.ingest.place import size_of
from spark_udfs.ingest.rows import BadRecord, Row

_HEAD_BYTES = 4096
_BEGINNINGS = {  # of files, by what they hold
    b"\x1f\x8b": "gzip data",
    b"\x28\xb5\x2f\xfd": "Zstandard data",
    b"\xfd7zXZ\0": "xz data",
    b"BZh": "bzip2 data",
    b"PAR1": "Parquet",
    b"PK\x03\x04": "a zip archive",
    b"%PDF-": "a PDF document",
    b"ARROW1": "an Arrow file",
    b"SQLite format 3\0": "an SQLite database",
    b"\x89HDF": "an HDF5 file",
}
_ENDINGS = {
    ".gz": "gzip data",
    ".tgz": "gzip data",
    ".zst": "Zstandard data",
    ".xz": "xz data",
    ".bz2": "bzip2 data",
    ".parquet": "Parquet",
    ".zip": "a zip archive",
}
_OF_CONTENT = frozenset(
    {"corrupt", "not_utf8", "nul_byte", "not_json", "not_an_object", "too_long", "repeated_field", "not_warc"}
)
_SUFFIX_OF_STREAM = {
    "gzip data": ".gz",
    "Zstandard data": ".zst",
    "xz data": ".xz",
    "bzip2 data": ".bz2",
}
_REMEDIES = {  # by reason for rejection
    "unreadable": "Let this user read it.",
    "vanished": "Fetch it again, or leave it out.",
    "link": "Copy the file itself, or name the folder to which the link leads.",
    "corrupt": "Fetch it again, or leave it out.",
    "bomb": "Leave it out.",
}


def trouble(source: Input, entry: Dataset, row: Row) -> str:
    """Return why a file, or the rest of it, has no document, and the remedy.

    `row` is the rejected record with the reason. If the first bytes explain more, the sentence names the
    content of the file instead.
    """
    reason, detail = row["reason"], row["detail"]
    head, tail = _ends(source)
    if reason in _OF_CONTENT and head:
        holds = next((what for beginning, what in _BEGINNINGS.items() if head.startswith(beginning)), None)
        name_says = _ENDINGS.get(PurePosixPath(source.shown).suffix.lower())
        if name_says and holds != name_says:
            fact = f"By its name it is {name_says}, but it holds {holds or _text_or_other(head)}."
            return f"{fact} Rename it, or fetch it again."
        if holds and not name_says:
            suffix = _SUFFIX_OF_STREAM.get(holds)
            ending = ending_of(source.name)
            if suffix or not is_listed(ending):
                remedy = f"End its name in `{suffix}`." if suffix else "Name another `format`."
            else:
                [remedy] = remedies({ending: 1})
            return f"It holds {holds}. {remedy}"
        if holds == "Parquet" and tail != b"PAR1":
            return f"It is cut off: its end, which describes the columns, is missing. {_REMEDIES[reason]}"
        if reason != "corrupt" and (advice := entry.advice(_first_bytes(source))):
            return advice
    return f"{detail} {_REMEDIES.get(reason, '')}".rstrip()


def _text_or_other(head: bytes) -> str:
    letters = head.decode("utf-8", "replace")[:-1]  # the last one may be cut
    return "something else" if b"\0" in head or "\ufffd" in letters else "text"


def _ends(source: Input) -> tuple[bytes, bytes]:
    with suppress(BadRecord), opened(source) as file:
        head = file.read(_HEAD_BYTES)
        file.seek(-min(4, size_of(file)), os.SEEK_END)
        return head, file.read(4)
    return b"", b""


def _first_bytes(source: Input) -> bytes:
    """Return the beginning of the content of a file that may be compressed."""
    with suppress(BadRecord, EndOfPreview), opened(source) as file:
        return content(file, source.shown)(_HEAD_BYTES)
    return b""
