"""The page that a document's main text was taken from, found again at its place.

A page of a web archive is read at the file, offset and length in the document's `metadata`, an HTML file at
its key, and a page that was the text of another document in the raw table of that one.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

from pyiceberg.expressions import EqualTo

from factory.errors import ConfigurationError, NotFound
from factory.ingest.html_extra import require_html
from factory.lake.names import TableName
from factory.lake.tables import Lake
from spark_udfs.ingest.files import name_of
from spark_udfs.ingest.place import Place
from spark_udfs.ingest.rows import DERIVED_FROM, BadRecord


def whole_text(lake: Lake, table: TableName, row: Mapping[str, Any], paths: Sequence[Place]) -> str:
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
    lake: Lake, table: TableName, row: Mapping[str, Any], facts: Mapping[str, str], paths: Sequence[Place]
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
        place, name = _below(paths, facts["warc_file"])
        with place.open(name) as archive:
            record = record_at(archive, int(facts["warc_offset"]), int(facts["warc_length"]))
        return page_of_record(record)
    place, name = _below(paths, row["key"])
    with place.open(name) as page:
        return page.read(), None


def _below(paths: Sequence[Place], key: str) -> tuple[Place, bytes]:
    """Return the place and name of a file below the paths of its dataset; raises NotFound if none has it."""
    name = os.fsencode(name_of(key))
    for path in (path.canonical() for path in paths):
        if path.kind(name) == "file":
            return path, name
        if path.kind() == "file" and path.address.endswith(name):
            return path.parent, os.fsencode(path.name)
    raise NotFound(f"The paths of the dataset have no file `{key}`. Put it back.")
