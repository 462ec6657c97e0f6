"""Traces through blends of earlier versions of a table."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from rich.console import Console

from blender.catalog.blends import open_blends
from blender.records import Source
from factory.cli.trace import document_tree, show_step
from factory.explain.steps import served_by, trace_step
from factory.explain.trace import trace_documents
from factory.lake import names
from factory.lake.fingerprint import fingerprint
from factory.lake.lineage import Lineage
from factory.lake.names import TableName
from factory.lake.schemas import (
    DECISIONS,
    FILTERED,
    PACKED,
    PLACEMENTS,
    RAW,
    SEQUENCE_LENGTH,
    TOKEN_BYTES,
    TableSchema,
)
from factory.lake.tables import Lake
from factory.settings import Settings


def replace(lake: Lake, name: TableName, schema: TableSchema, rows: list[dict], run_id: str) -> None:
    """What a run of an asset leaves: other rows, and a snapshot that says whose they are."""
    table = lake.create(name, schema)
    if table.current_snapshot() is not None:
        table.delete()
    arrow = pa.Table.from_pylist(rows, schema=schema.columns)
    content = str(fingerprint(arrow.to_batches(), schema.fingerprinted))
    lineage = Lineage(asset=str(name), run_id=run_id, code_version="1", content=content)
    table.append(arrow, snapshot_properties=lineage.to_properties())


def pack(lake: Lake, doc_ids: list[str], run_id: str, dataset: str = "code") -> None:
    """A sequence for each document, in the order given."""
    placed: list[dict[str, Any]] = [
        {"doc_id": doc_id, "ordinal": ordinal, "doc_offset": 0, "length": 4}
        for ordinal, doc_id in enumerate(doc_ids)
    ]
    packed = [
        {
            "ordinal": row["ordinal"],
            "tokens": np.full(4, ord(row["doc_id"]), "<u2").tobytes(),
            "n_tokens": 4,
            "segments": [{name: row[name] for name in ("doc_id", "doc_offset", "length")}],
            **dict.fromkeys(("append", "bucket", "chunk"), 0),
        }
        for row in placed
    ]
    replace(lake, names.placements(dataset), PLACEMENTS, placed, run_id)
    replace(lake, names.packed(dataset), PACKED, packed, run_id)
    with lake.table(names.packed(dataset)).transaction() as transaction:
        transaction.set_properties({TOKEN_BYTES: "2", SEQUENCE_LENGTH: "4"})


def raw(doc_id: str) -> dict[str, object]:
    return {
        "doc_id": doc_id,
        "source": "test",
        "key": doc_id,
        "text": doc_id,
        "content_hash": doc_id,
        "n_bytes": 1,
        "media_type": "text/plain",
    }


def test_a_document_is_traced_to_steps_of_a_blend_older_than_its_table(
    tmp_path: Path,
) -> None:
    lake = Lake(Settings(home=tmp_path, cache=tmp_path / "cache"))
    replace(lake, names.raw("code"), RAW, [raw(doc_id) for doc_id in "abc"], "one")
    pack(lake, ["a", "b", "c"], "one")
    blends = open_blends(lake.settings)
    blend = blends.create([Source(table="packed.code", weight=1)]).id
    pack(lake, ["b", "a"], "two")
    served = {
        trace.doc_id: trace for trace in trace_documents(lake, ["a", "b", "c"], served_by(lake.settings)[0])
    }
    for offset, doc_id in enumerate("abc"):
        (row,) = blends.open(blend).explain(offset)
        assert [segment.doc_id for segment in row.segments] == [doc_id]
        assert [step.offset for step in served[doc_id].servings] == [offset]
    assert [served[doc_id].outcome for doc_id in "abc"] == ["served", "served", "under_way"]
    assert "serves it first at step 2" in served["c"].reason


def test_a_step_is_traced_whatever_its_shuffle_and_columns(
    tmp_path: Path,
) -> None:
    lake = Lake(Settings(home=tmp_path, cache=tmp_path / "cache"))
    replace(lake, names.raw("code"), RAW, [raw(doc_id) for doc_id in "ab"], "one")
    pack(lake, ["a", "b", "c"], "one")
    blends = open_blends(lake.settings)
    code = Source(table="packed.code", weight=3, shuffle="row", oversample=True, columns=("n_tokens",))
    parent = blends.create([code], seed=5)
    child = blends.update(parent.id, 4, {"packed.code": 1}).id
    for offset, n in ((3, 3), (4, 1)):
        step = trace_step(lake.settings, child, offset)
        assert [row.ordinal for row in step.rows] == blends.open(child).step(offset)["ordinal"].to_pylist()
        assert len(step.rows) == n
    step = trace_step(lake.settings, child, 3)
    assert {row.epoch for row in step.rows} == {3}
    assert {doc_id: trace.outcome for doc_id, trace in step.documents.items()} == dict.fromkeys(
        "ab", "served"
    )
    console = Console(record=True, width=120, file=io.StringIO())
    show_step(step, console, as_json=False)
    printed = console.export_text()
    assert "tokens 0 to 4 of test / b (license unknown)" in printed
    assert "tokens 0 to 4 of c, which no raw table holds" in printed
    show_step(step, console, as_json=True)
    assert json.loads(console.export_text())["rows"][2]["row"] == 2


def test_a_variant_that_is_filtered_like_its_dataset_has_its_verdicts(tmp_path: Path) -> None:
    lake = Lake(Settings(home=tmp_path, cache=tmp_path / "cache"))
    loose = names.variant("code", "loose")
    replace(lake, names.raw("code"), RAW, [raw(doc_id) for doc_id in "abc"], "one")
    failing = {"rule": "code_lines", "value": 3.0, "threshold": 10.0}
    verdicts = [{"doc_id": it, "kept": it != "a", "rejections": [failing] * (it == "a")} for it in "abc"]
    replace(lake, names.filtered("code"), FILTERED, verdicts, "one")
    removed = {"kept": False, "reason": "similar", "duplicate_of": "c", "similarity": 0.7, "component": "b"}
    kept = {"kept": True, "reason": "kept", "component": "b"}
    decided = [{"doc_id": "b", "dataset": loose, **removed}, {"doc_id": "c", "dataset": loose, **kept}]
    replace(lake, names.dedup("code__loose", "decisions"), DECISIONS, decided, "one")
    replace(lake, names.deduplicated(loose), RAW, [raw("c")], "one")
    first, second, third = (trace.variants[loose] for trace in trace_documents(lake, ["a", "b", "c"]))
    assert first.reason == "rejected by 1 rule(s): code_lines is 3 (limit 10)"
    assert (second.outcome, second.duplicate_of) == ("duplicate", "c")
    assert third.outcome == "under_way"


def test_a_document_that_is_joined_through_others_is_not_called_similar(tmp_path: Path) -> None:
    lake = Lake(Settings(home=tmp_path, cache=tmp_path / "cache"))
    replace(lake, names.raw("code"), RAW, [raw(doc_id) for doc_id in "abc"], "one")
    rows = [
        {"doc_id": "a", "kept": True, "reason": "kept"},
        {"doc_id": "b", "kept": False, "reason": "similar", "duplicate_of": "a", "similarity": 0.85},
        {"doc_id": "c", "kept": False, "reason": "connected", "duplicate_of": "a"},
    ]
    decided = [{"dataset": "code", "component": "a", **row} for row in rows]
    replace(lake, names.dedup("code", "decisions"), DECISIONS, decided, "one")
    _, second, third = trace_documents(lake, ["a", "b", "c"])
    assert second.reason == "a near duplicate of a, which is kept (similarity 0.8500)"
    assert third.reason == "removed for a, which is kept: joined to it through others, like none that is kept"
    assert (third.outcome, third.duplicate_of, third.similarity) == ("duplicate", "a", None)


def test_a_document_has_a_way_through_each_variant_of_its_dataset(tmp_path: Path) -> None:
    lake = Lake(Settings(home=tmp_path, cache=tmp_path / "cache"))
    strict = names.variant("code", "strict")
    failing = {"rule": "code_lines", "value": 3.0, "threshold": 10.0}
    replace(lake, names.raw("code"), RAW, [raw(doc_id) for doc_id in "ab"], "one")
    for dataset, rejected in (("code", ""), (strict, "a")):
        verdicts: list[dict[str, Any]] = [
            {"doc_id": it, "kept": it not in rejected, "rejections": [failing] if it in rejected else []}
            for it in "ab"
        ]
        replace(lake, names.filtered(dataset), FILTERED, verdicts, "one")
        pack(lake, [it for it in "ab" if it not in rejected], "one", dataset)
    blends = open_blends(lake.settings)
    sources = [Source(table=str(names.packed(of)), weight=1) for of in ("code", strict)]
    made = [blends.create([source]).id for source in sources]
    first, second = trace_documents(lake, ["a", "b"], served_by(lake.settings)[0])
    assert (first.outcome, first.variants[strict].outcome) == ("served", "filtered")
    assert first.variants[strict].reason == "rejected by 1 rule(s): code_lines is 3 (limit 10)"
    assert [{step.blend for step in it.servings} for it in (second, second.variants[strict])] == [
        {blend} for blend in made
    ]
    console = Console(width=200)
    with console.capture() as captured:
        console.print(document_tree(first))
    shown = captured.get()
    assert f"variant {strict}" in shown
    assert shown.count("raw.code at snapshot") == 1  # shared, so it stands once
    assert f"filtered.{strict} at snapshot" in shown
