"""The page that a document's main text was taken from, found again at its place.

A page of a web archive is read at the file, offset and length in the document's `metadata`, an HTML file at
its key, and a page that was the text of another document in the raw table of that one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from pyiceberg.expressions import EqualTo

from factory.errors import ConfigurationError, NotFound
from factory.ingest.html_extra import require_html
from factory.lake.names import TableName
from factory.lake.tables import Lake
from spark_udfs.ingest.files import name_of
from spark_udfs.ingest.rows import DERIVED_FROM, BadRecord


def whole_text(lake: Lake, table: TableName, row: Mapping[str, Any], paths: Sequence[Path]) -> str:
    """Return all visible text of the page of a raw document; `paths` are the paths of its dataset.

    Raises NotFound if the page is not where it was, ConfigurationError if the document is not from a page.
    """
    require_html()
    from spark_udfs.ingest.web.page import visible_text

    facts = dict(row.get("metadata") or ())
    if "extractor" not in facts:
        raise ConfigurationError(
            f"{table} does not say where pages of {row.get('key', 'its rows')} are. Sample the raw table of "
            "a dataset of pages, or leave `--page` out."
        )
    try:
        return visible_text(*_page(lake, table, row, facts, paths))
    except BadRecord as bad:
        raise NotFound(f"The page of {row['key']} is not where it was: {bad.detail}") from bad


def _page(
    lake: Lake, table: TableName, row: Mapping[str, Any], facts: Mapping[str, str], paths: Sequence[Path]
) -> tuple[bytes, str | None]:
    """The bytes of a page, and the charset that its header declares."""
    from spark_udfs.ingest.web.http_message import page_of_record
    from spark_udfs.ingest.web.warc_records import record_at

    if parent := facts.get(DERIVED_FROM):
        for upstream, snapshot_id in lake.published(table).lineage.upstream.items():
            rows = lake.read(TableName.parse(upstream), ["text"], EqualTo("doc_id", parent), snapshot_id)
            if len(rows):
                return rows["text"][0].as_py().encode(), "utf-8"
    if "warc_file" in facts:
        file = _below(paths, facts["warc_file"])
        with file.open("rb") as archive:
            record = record_at(archive, int(facts["warc_offset"]), int(facts["warc_length"]))
        return page_of_record(record)
    return _below(paths, row["key"]).read_bytes(), None


def _below(paths: Sequence[Path], key: str) -> Path:
    """Return the file of a key below the paths of its dataset; raises NotFound if none has it."""
    name = name_of(key)
    candidates = [path / name if path.is_dir() else path for path in paths]
    file = next((path for path in candidates if path.is_file() and path.as_posix().endswith(name)), None)
    if file is None:
        raise NotFound(f"The paths of the dataset have no file `{key}`. Put it back.")
    return file
