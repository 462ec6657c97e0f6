"""Compressed JSON files that hold one document rather than a record in each line."""

from __future__ import annotations

import json
import os
from contextlib import suppress
from pathlib import PurePath

from spark_udfs.ingest.compression import COMPRESSIONS, content
from spark_udfs.ingest.files import Input, opened
from spark_udfs.ingest.place import Place
from spark_udfs.ingest.rows import BadRecord, Origin

_FIRST_LINE_BYTES = 1 << 16  # searched for the end of a first line


def is_json_document(place: Place, name: bytes) -> bool:
    """Whether a compressed `.json` file is one list or one object over several lines, not a record per line.

    The first line decides. A file that cannot be read is not a document: its reader says why.
    """
    *_, inner, compression = ["", "", *PurePath(os.fsdecode(name).lower()).suffixes]
    if inner != ".json" or compression not in COMPRESSIONS:
        return False
    head = b""
    source = Input(Origin(""), place, name)
    with suppress(BadRecord), opened(source) as file:
        read = content(file, source.shown)
        while b"\n" not in head.lstrip() and len(head) < _FIRST_LINE_BYTES:
            piece = read(_FIRST_LINE_BYTES)
            if not piece:
                break
            head += piece
    line, end_of_line, _ = head.decode("utf-8-sig", "replace").lstrip().partition("\n")
    if not end_of_line:
        return line.startswith("[")
    return line.startswith("[") or (line.startswith("{") and _ends_inside(line.rstrip()))


def _ends_inside(line: str) -> bool:
    """Whether a line is the beginning of a JSON value that later lines go on with."""
    try:
        json.loads(line)
    except json.JSONDecodeError as error:
        return error.pos >= len(line)
    except (RecursionError, ValueError):
        return False
    return False
