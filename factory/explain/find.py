"""Find documents by doc_id, key or path, and rejected records also by a value that they hold.

A path names a document if its end is the document's source and key: `flate2 / src/lib.rs`, as `factory trace`
prints it, `flate2/src/lib.rs`, and `crates/flate2/src/lib.rs`.
"""

from __future__ import annotations

import json
import logging
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from difflib import get_close_matches
from functools import reduce

import pyarrow as pa
import pyarrow.compute as pc
from pyiceberg.expressions import AlwaysTrue, And, BooleanExpression, EqualTo, In, Or

from factory.errors import DamagedFile, NotFound
from factory.explain.stages.removals import Read
from factory.lake import names
from factory.lake.names import TableName, holds_bad_records
from factory.lake.tables import Lake
from factory.suggestions import quoted

_LOG = logging.getLogger(__name__)

_SEPARATOR = re.compile(" / |/")
_SEARCHED = 1_000_000  # rows of a table that are searched for near names
_COMPARED = 20_000  # names compared letter by letter, in about two seconds
_SUGGESTED = 3
_SIMILAR = 0.6  # ratio of equal letters from which a name of another file is near


def find_ids(lake: Lake, text: str, versions: Iterable[Read] = (), limit: int = 20) -> list[str]:
    """Return the ids of the documents with the doc_id, key or path `text`.

    Documents that the newest raw tables do not hold are looked for in earlier `versions` of datasets. If none
    has the text, these are the ids of the rejected JSON records that begin with such a value: a record that
    became no document is named after its line. Raises NotFound with the nearest names, or DamagedFile if
    nothing was found and a table that was searched cannot be read.
    """
    found: dict[int, list[str]] = defaultdict(list)  # by the number of ignored leading folders
    pairs = _sources_and_keys(text)
    where: BooleanExpression = Or(EqualTo("doc_id", text), EqualTo("key", text))
    if pairs:
        sources, keys = zip(*pairs, strict=True)
        where = Or(where, And(In("source", set(sources)), In("key", set(keys))))

    def search(table: TableName, snapshot_id: int | None = None) -> None:
        for row in _read(
            lake, table, ("doc_id", "source", "key"), where, snapshot_id=snapshot_id
        ).to_pylist():
            left_out = 0 if text in (row["doc_id"], row["key"]) else pairs.get((row["source"], row["key"]))
            if left_out is not None:
                found[left_out].append(row["doc_id"])

    search_raw_tables(lake.names(), search, lambda: bool(found))
    damages: list[DamagedFile] = []
    for read in () if found else versions:
        raw = names.raw(str(read.dataset))
        with _collecting(damages):  # another version may hold the document
            search(raw, read.snapshot(raw))
    record_ids = [] if found else _rejected_with(lake, text, damages)
    if record_ids:
        return list(dict.fromkeys(record_ids))[:limit]
    if not found and damages:
        raise damages[0]
    if not found:
        raise NotFound(
            f"No raw table holds `{text}`, neither as doc_id nor as key or path. {_advice(lake, text)}"
        )
    return list(dict.fromkeys(found[min(found)]))[:limit]


def search_raw_tables(
    tables: Iterable[TableName], search: Callable[[TableName], None], found_all: Callable[[], bool]
) -> None:
    """Search all readable raw tables; raise DamagedFile if a damaged one may hold the rest."""
    damaged: list[DamagedFile] = []
    for table in sorted(name for name in tables if name.namespace == "raw"):
        try:
            search(table)
        except DamagedFile as error:
            damaged.append(error)
    if damaged and not found_all():
        raise damaged[0]
    for other in damaged:
        _LOG.warning("%s", other)


@contextmanager
def _collecting(damages: list[DamagedFile]) -> Iterator[None]:
    """Continue behind a damaged file, and add its error to `damages`."""
    try:
        yield
    except DamagedFile as error:
        damages.append(error)


def _sources_and_keys(path: str) -> dict[tuple[str, str], int]:
    """Return each source and key that `path` may end with, and the number of folders before them."""
    separators = list(_SEPARATOR.finditer(path))
    begins = [0, *(separator.end() for separator in separators)]
    return {
        (path[begin : separator.start()], path[separator.end() :]): left_out
        for number, separator in enumerate(separators)
        for left_out, begin in enumerate(begins[: number + 1])
    }


def _rejected_with(lake: Lake, text: str, damages: list[DamagedFile]) -> list[str]:
    """Return the ids of the rejected records with `text` as a whole JSON value in their first bytes.

    The errors of tables that cannot be read are added to `damages`.
    """
    json_texts = (json.dumps(text), json.dumps(text, ensure_ascii=False))
    number = rf"|[:\[,]\s*{text}\s*[,\]}}]" if text.isascii() and text.isdecimal() else ""
    pattern = f"(?:{'|'.join(map(re.escape, json_texts))})\\s*(?:[,}}\\]]|$)" + number
    ids: list[str] = []
    for table in sorted(filter(holds_bad_records, lake.names())):
        with _collecting(damages):
            rows = _read(lake, table, ("doc_id", "sample"), limit=_SEARCHED)
            samples = rows["sample"].cast(pa.binary())
            ids += rows["doc_id"].filter(pc.match_substring_regex(samples, pattern)).to_pylist()
    return ids


def _advice(lake: Lake, text: str) -> str:
    near = _near_names(lake, text)
    return f"Did you mean {quoted(near)}?" if near else "Look for keys with: factory sample raw.<dataset>."


def _near_names(lake: Lake, text: str) -> list[str]:
    """Return the names nearest to `text`, among the names that contain most parts of it."""
    texts = [pa.array([], pa.string())]
    for table in [name for name in lake.names() if name.namespace == "raw"]:
        with suppress(DamagedFile):  # advice may lack the names of a table
            rows = _read(lake, table, ("source", "key"), limit=_SEARCHED)
            # Without rows the columns are large strings.
            source, key = (rows[column].cast(pa.string()) for column in ("source", "key"))
            texts += pc.binary_join_element_wise(source, key, " / ").chunks
    every = pa.chunked_array(texts)
    parts = [part for part in _SEPARATOR.split(text) if part]
    if not parts or not len(every):
        return []
    having = [pc.match_substring(every, part, ignore_case=True) for part in parts]
    n_having = reduce(pc.add, (pc.cast(mask, pa.int64()) for mask in having))
    nearest = pc.equal(n_having, pc.max(n_having))
    shown = {_SEPARATOR.sub("/", name): name for name in every.filter(nearest)[:_COMPARED].to_pylist()}
    same_file = pc.any(pc.and_(nearest, having[-1])).as_py()
    wanted = _SEPARATOR.sub("/", text)
    return [
        shown[name] for name in get_close_matches(wanted, shown, _SUGGESTED, 0.0 if same_file else _SIMILAR)
    ]


def _read(
    lake: Lake,
    table: TableName,
    columns: tuple[str, ...],
    where: BooleanExpression = AlwaysTrue(),  # noqa: B008 - immutable
    limit: int | None = None,
    snapshot_id: int | None = None,
) -> pa.Table:
    """Read a published table; a table without a snapshot has no rows."""
    if lake.table(table).current_snapshot() is None:
        return pa.table({name: pa.array([], pa.string()) for name in columns})
    return lake.read(table, columns, where, snapshot_id, limit)
