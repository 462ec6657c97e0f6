"""The published tables of a lake as data, and a seeded sample of their rows."""

from __future__ import annotations

import hashlib
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any

from factory.errors import ConfigurationError, DamagedFile, NotFound
from factory.explain.named_state import NamedState
from factory.lake import names
from factory.lake.heads import published_heads
from factory.lake.names import TableName
from factory.lake.tables import Lake, Published, as_published

if TYPE_CHECKING:
    import pyarrow as pa

    from factory.explain.evidence import Evidence

_DOCUMENT_COLUMNS = ("source", "key", "path", "text")  # joined from raw if the sampled table lacks them


def published_tables(lake: Lake) -> tuple[list[Published], list[DamagedFile]]:
    """Return every published table in pipeline order, and an error for each damaged one."""
    heads = published_heads(lake.settings)
    if heads is not None:
        return heads, []
    tables, damaged = lake.readable()
    snapshots = ((name, table, table.current_snapshot()) for name, table in tables.items())
    return [as_published(name, table, head) for name, table, head in snapshots if head is not None], damaged


def as_plain(published: Published) -> dict[str, Any]:
    """Return a published table as plain values for JSON; ids are text, because many readers round them."""
    return {
        "table": str(published.table),
        "stage": published.table.stage,
        "rows": published.rows,
        "bytes": published.size_bytes,
        "snapshot": str(published.snapshot_id),
        "published_ms": published.timestamp_ms,
        "content": published.lineage.content,
        "code_version": published.lineage.code_version,
        "run": published.lineage.run_id,
        "upstream": {table: str(at) for table, at in published.lineage.upstream.items()},
    }


def sample(
    lake: Lake,
    state: NamedState,
    n: int,
    seed: int,
    rejected_by: str | None = None,
    cell: tuple[str, int] | None = None,
) -> list[dict[str, Any]]:
    """Return `n` rows of a table, chosen by a hash of their id and `seed`, with key and text of the document.

    `cell` is a column, `cell` or `cluster`, and a number: only rows with it, or the example documents of the
    row with it. Raises NotFound if `rejected_by` names a rule that rejected nothing, and for a cell that does
    not exist; ConfigurationError for a table without rejections or cells.
    """
    from pyiceberg.expressions import AlwaysTrue, EqualTo, In

    table, snapshot_id = state.table, state.snapshot_id
    schema = lake.table(table).schema()
    if rejected_by and "rejections" not in schema.column_names:
        raise ConfigurationError(
            f"{table} records no rejections, so --rejected-by does not apply. "
            f"Sample {names.filtered(table.name)}, or leave the option out."
        )
    key = "doc_id" if "doc_id" in schema.column_names else schema.column_names[0]
    if cell:
        rows_of_cell(lake, state, *cell)
        if key != "doc_id":
            return _examples(lake, state, cell, n)
    if rejected_by:
        rows = lake.read(table, [key, "rejections"], EqualTo("kept", False), snapshot_id)
        ids = _rejected_by(rows, rejected_by, table)
    else:
        ids = lake.read(table, [key], EqualTo(*cell) if cell else AlwaysTrue(), snapshot_id)
    sampled_ids = sorted(set(ids[key].to_pylist()), key=lambda value: _rank(value, seed))[:n]
    rows = lake.read(table, ["*"], In(key, sampled_ids), snapshot_id).to_pylist()
    lacking = [name for name in _DOCUMENT_COLUMNS if name not in schema.column_names]
    about = documents_of(lake, table, sampled_ids, lacking) if key == "doc_id" and lacking else {}
    order = {value: place for place, value in enumerate(sampled_ids)}
    rows = [{key: row[key], **about.get(row[key], {}), **row} for row in rows]
    if rejected_by:
        from factory.explain.evidence import Evidence  # with the models and Spark's functions of the filters

        _explain(Evidence(lake, table, snapshot_id), rows)
    return sorted(rows, key=lambda row: order[row[key]])


def rows_of_cell(lake: Lake, state: NamedState, column: str, number: int) -> pa.Table:
    """Return the rows of a table that have `number` in `column`, `cell` or `cluster`; at least one.

    Raises ConfigurationError for a table without the column, NotFound for a number that no row has.
    """
    import pyarrow.compute as pc
    from pyiceberg.expressions import EqualTo

    table, snapshot_id = state.table, state.snapshot_id
    columns = lake.table(table).schema().column_names
    if column not in columns:
        raise ConfigurationError(
            f"{table} has no column `{column}`, so --{column} does not apply. Leave it out."
        )
    names_of_columns = [
        name for name in ("doc_id", "cell", "cluster", "terms", "examples") if name in columns
    ]
    rows = lake.read(table, names_of_columns, EqualTo(column, number), snapshot_id)
    if not len(rows):
        numbers = lake.read(table, [column], snapshot_id=snapshot_id)[column]
        raise NotFound(
            f"{table} has no {column} {number}. Its numbers are {pc.min(numbers)} to {pc.max(numbers)}."
        )
    return rows


def _examples(lake: Lake, state: NamedState, cell: tuple[str, int], n: int) -> list[dict[str, Any]]:
    """Return the example documents of a cell or cluster, from a table with a row for each."""
    [row] = rows_of_cell(lake, state, *cell).slice(0, 1).to_pylist()
    if "examples" not in row:
        raise ConfigurationError(
            f"{state.table} names no documents, so --{cell[0]} does not apply. Sample the clusters of the "
            "documents, clusters.<dataset>, or leave the option out."
        )
    ids = row["examples"][:n]
    about = documents_of(lake, state.table, ids, list(_DOCUMENT_COLUMNS))
    words = {name: row[name] for name in ("cell", "cluster", "terms") if name in row}
    return [{"doc_id": doc_id, **words, **about.get(doc_id, {})} for doc_id in ids]


def _explain(evidence: Evidence, rows: list[dict[str, Any]]) -> None:
    """Add to the rows of verdicts what in each text made its rejections, a phrase a rule."""
    from factory.explain.stages.document_trace import Rejection

    rejections = {row["doc_id"]: [Rejection(**failure) for failure in row["rejections"]] for row in rows}
    phrases = evidence.phrases(rejections)
    for row in rows:
        doc_id = row["doc_id"]
        rules = [rejection.rule for rejection in rejections[doc_id] if (doc_id, rejection.rule) in phrases]
        row["evidence"] = {rule: phrases[doc_id, rule] for rule in rules}


def _rejected_by(rows: pa.Table, rule: str, table: TableName) -> pa.Table:
    fails = [
        any(rejection["rule"] == rule for rejection in rejections or [])
        for rejections in rows["rejections"].to_pylist()
    ]
    if not any(fails):
        known = sorted(
            {
                rejection["rule"]
                for rejections in rows["rejections"].to_pylist()
                for rejection in rejections or []
            }
        )
        similar_rules = get_close_matches(rule, known, 1, cutoff=0.8)
        raise NotFound(
            f"No document of {table} is rejected by a rule `{rule}`. "
            + (f"Did you mean `{similar_rules[0]}`? " if similar_rules else "")
            + f"Rules that rejected some: {', '.join(known) or 'none'}."
        )
    return rows.filter(fails)


def documents_of(
    lake: Lake, table: TableName, ids: list[str], columns: list[str]
) -> dict[str, dict[str, Any]]:
    """Return columns of the documents `ids` of a table, by id, from the raw tables that hold them."""
    from pyiceberg.expressions import In

    own = names.raw(table.name)
    every = [
        table for table in lake.names() if table.namespace == "raw" and not names.holds_bad_records(table)
    ]
    found: dict[str, dict[str, Any]] = {}
    for source in [own] if own in every else every:
        if lake.table(source).current_snapshot() is None:
            continue
        for row in lake.read(source, ["doc_id", *columns], In("doc_id", ids)).to_pylist():
            found[row.pop("doc_id")] = row
    return found


def _rank(value: object, seed: int) -> bytes:
    return hashlib.blake2b(f"{seed}:{value}".encode(), digest_size=16).digest()
