"""Decisions on texts reach the documents that have them, however the rows are cut in batches."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from factory.lake.schemas.dedup import DECISIONS
from spark_udfs.dedup import decisions
from spark_udfs.dedup.decisions import decide_documents

SCHEMA = pa.schema(
    [
        *(pa.field(name, pa.string()) for name in ("doc_id", "dataset", "partition", "representative")),
        *(pa.field(name, pa.bool_()) for name in ("comparable", "copy")),
        *(pa.field(name, pa.string()) for name in ("component", "other")),
        pa.field("similarity", pa.float64()),
    ]
)


def edge(left: str, right: str, similarity: float, component: str) -> dict[str, Any]:
    return {"doc_id": left, "other": right, "similarity": similarity, "component": component, "copy": False}


def document(
    name: str, of: str | None, component: str | None, *, comparable: bool | None = True
) -> dict[str, Any]:
    row = {"doc_id": name, "dataset": "d", "partition": "p", "representative": of, "component": component}
    return row | {"comparable": comparable, "copy": name != of}


ROWS = [
    edge("a", "b", 0.9, "a"),
    document("b", "b", "a"),
    document("a", "a", "a"),
    *(document(f"a{n}", "a", "a") for n in range(5)),
    *(document(f"b{n}", "b", "a") for n in range(5)),
    document("c", "c", "c"),
    document("c0", "c", "c"),
    document("e", "e", "e", comparable=False),
    document("e0", "e", "e", comparable=False),
    document("lost", None, None, comparable=None),
]


@pytest.mark.parametrize("rows_at_once", [1, 3, 1000])
@pytest.mark.parametrize("rows_a_batch", [1, 4, 1000])
def test_a_copy_is_decided_as_its_text(
    monkeypatch: pytest.MonkeyPatch, rows_at_once: int, rows_a_batch: int
) -> None:
    monkeypatch.setattr(decisions, "_ROWS_AT_ONCE", rows_at_once)
    rows = pa.Table.from_pylist(ROWS, schema=SCHEMA)
    found = pa.Table.from_batches(
        decide_documents(rows.to_batches(max_chunksize=rows_a_batch), "independent_set")
    )
    assert found.column_names == DECISIONS.names
    columns = ("kept", "reason", "duplicate_of", "similarity", "component", "kept_document")
    decided = {row["doc_id"]: tuple(row[name] for name in columns) for row in found.to_pylist()}
    assert decided.pop("lost")[0] is None
    assert decided == {
        "b": (True, "kept", None, None, "a", None),
        "a": (False, "similar", "b", 0.9, "a", "b"),
        **{f"a{n}": (False, "exact_copy", "a", 1.0, "a", "b") for n in range(5)},
        **{f"b{n}": (False, "exact_copy", "b", 1.0, "a", "b") for n in range(5)},
        "c": (True, "kept", None, None, "c", None),
        "c0": (False, "exact_copy", "c", 1.0, "c", "c"),
        "e": (True, "no_tokens", None, None, None, None),
        "e0": (False, "exact_copy", "e", 1.0, None, "e"),
    }


def test_a_copy_of_a_document_that_only_others_join_to_the_kept_one_is_exact() -> None:
    rows = [
        edge("a", "b", 0.9, "a"),
        edge("b", "c", 0.9, "a"),
        *(document(name, name, "a") for name in "abc"),
        document("c0", "c", "a"),
    ]
    batches = pa.Table.from_pylist(rows, schema=SCHEMA).to_batches()
    (decided,) = decide_documents(batches, "one_per_component")
    columns = ("reason", "duplicate_of", "similarity", "kept_document")
    found = {row["doc_id"]: tuple(row[name] for name in columns) for row in decided.to_pylist()}
    assert found["c"] == ("connected", "a", None, "a")
    assert found["c0"] == ("exact_copy", "c", 1.0, "a")
