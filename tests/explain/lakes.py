"""Tables as runs of assets leave them, small enough to read: a letter for each document."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pyarrow as pa

from factory.lake import names
from factory.lake.fingerprint import fingerprint
from factory.lake.lineage import Lineage
from factory.lake.names import TableName
from factory.lake.schemas.base import TableSchema
from factory.lake.schemas.dedup import DECISIONS
from factory.lake.schemas.filters import FILTERED
from factory.lake.schemas.ingest import RAW
from factory.lake.schemas.packing import PACKED, PLACEMENTS, SEQUENCE_LENGTH, TOKEN_BYTES, TOKENIZED
from factory.lake.tables import Lake

Rows = list[dict[str, Any]]


def document(letter: str) -> dict[str, Any]:
    """A document of `raw.web`: a has 1 byte, b has 2, and so on."""
    return {
        **dict.fromkeys(("doc_id", "content_hash", "text"), letter),
        "source": "web",
        "key": f"page {letter}",
        "n_bytes": ord(letter) - ord("a") + 1,
        "media_type": "text/plain",
    }


def publish(
    lake: Lake, name: TableName, schema: TableSchema, rows: Rows, *upstream: TableName, run_id: str = "run"
) -> int:
    """Replace the rows of a table, with a lineage; return the snapshot."""
    table = lake.create(name, schema)
    if table.current_snapshot() is not None:
        table.delete()
    arrow = pa.Table.from_pylist(rows, schema=schema.columns)
    lineage = Lineage(
        asset=str(name),
        run_id=run_id,
        code_version="1",
        upstream={str(of): lake.published(of).snapshot_id for of in upstream},
        content=str(fingerprint(arrow.to_batches(), schema.fingerprinted)),
    )
    table.append(arrow, snapshot_properties=lineage.to_properties())
    return lake.published(name).snapshot_id


def documents(lake: Lake, dataset: str, letters: str) -> int:
    """Publish raw.<dataset>."""
    return publish(lake, names.raw(dataset), RAW, [document(letter) for letter in letters])


def verdicts(
    lake: Lake,
    dataset: str,
    failing: Mapping[str, Mapping[str, float | None]],
    letters: str = "abcdef",
    *,
    without_value: Mapping[str, list[str]] | None = None,
    schema: TableSchema = FILTERED,
) -> int:
    """Publish filtered.<dataset>: `failing` has the values of the rules a document fails, all of limit 9.

    `without_value` has the rules that a document passes without a value.
    """
    rows = [
        {
            "doc_id": letter,
            "kept": letter not in failing,
            "rejections": [
                {"rule": rule, "value": value, "threshold": 9.0}
                for rule, value in failing.get(letter, {}).items()
            ],
            "without_value": (without_value or {}).get(letter, []),
        }
        for letter in letters
    ]
    rows = [{name: row[name] for name in schema.names if name in row} for row in rows]
    return publish(lake, names.filtered(dataset), schema, rows, names.raw(dataset))


def decisions(lake: Lake, group: str, dataset: str, *rows: dict[str, Any]) -> None:
    """Publish dedup.<group>_decisions on documents of `dataset`, all of one component."""
    decided = [{"dataset": dataset, "component": rows[0]["doc_id"], **row} for row in rows]
    publish(lake, names.dedup(group, "decisions"), DECISIONS, decided)


def tokenize(lake: Lake, dataset: str, letters: str, *upstream: TableName, empty: str = "") -> None:
    """Publish tokenized.<dataset>; the documents in `empty` have no token."""
    rows = [
        {
            **dict.fromkeys(("doc_id", "repository"), letter),
            "position": 0,
            "tokens": b"",
            "n_tokens": int(letter not in empty),
        }
        for letter in letters
    ]
    publish(lake, names.tokenized(dataset), TOKENIZED, rows, *upstream)


def pack(
    lake: Lake, dataset: str, *rows: str, upstream: tuple[TableName, ...] = (), run_id: str = "run"
) -> None:
    """Publish packed.<dataset> and its placements: a row for each text, four tokens for each letter of it."""
    placed, packed = [], []
    for ordinal, letters in enumerate(rows):
        segments = [{"doc_id": letter, "doc_offset": 0, "length": 4} for letter in letters]
        placed += [{"ordinal": ordinal, **segment} for segment in segments]
        packed.append(
            {
                **dict.fromkeys(("append", "shard", "chunk"), 0),
                "ordinal": ordinal,
                "tokens": "".join(4 * letter for letter in letters).encode("utf-16-le"),
                "n_tokens": 4 * len(letters),
                "segments": segments,
            }
        )
    publish(lake, names.placements(dataset), PLACEMENTS, placed, run_id=run_id)
    publish(lake, names.packed(dataset), PACKED, packed, *upstream, run_id=run_id)
    with lake.table(names.packed(dataset)).transaction() as transaction:
        transaction.set_properties({TOKEN_BYTES: "2", SEQUENCE_LENGTH: "4"})
