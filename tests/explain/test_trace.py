"""Traces through blends of earlier versions of a table."""

from __future__ import annotations

import io
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from blender.catalog.blends import open_blends
from blender.records import Schedule, Source
from factory.cli.trace import document_tree, show_documents, show_step
from factory.errors import NotFound
from factory.explain.stages.registry import STAGES, line
from factory.explain.stages.removals import Read
from factory.explain.steps import MixtureUpdate, mixture_of, served_by, trace_step, trace_text
from factory.explain.trace import DocumentTrace, trace_documents
from factory.lake import names
from factory.lake.schemas.dedup import DECISIONS
from factory.lake.schemas.filters import FILTERED
from factory.lake.schemas.ingest import RAW
from factory.lake.tables import Lake
from factory.settings import Settings
from tests.explain.lakes import decisions, document, documents, pack, publish, verdicts


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    return Lake(Settings(home=tmp_path, cache=tmp_path / "cache"))


def test_a_document_is_traced_to_steps_of_a_blend_older_than_its_table(lake: Lake) -> None:
    documents(lake, "code", "abc")
    pack(lake, "code", "a", "b", "c", run_id="one")
    blends = open_blends(lake.settings)
    blend = blends.create([Source(table="packed.code", weight=1)]).id
    pack(lake, "code", "b", "a", run_id="two")
    served = {
        trace.doc_id: trace for trace in trace_documents(lake, ["a", "b", "c"], served_by(lake.settings)[0])
    }
    for offset, doc_id in enumerate("abc"):
        (row,) = blends.open(blend).explain(offset)
        assert [segment.doc_id for segment in row.segments] == [doc_id]
        assert [step.offset for step in served[doc_id].servings] == [offset]
    assert [served[doc_id].outcome for doc_id in "abc"] == ["served", "served", "under_way"]
    assert served["c"].reason == (
        f"under way; served first at step 2 of blend {blend}, from earlier packed sequences"
    )


def test_each_blend_that_serves_a_document_has_its_own_steps(lake: Lake) -> None:
    documents(lake, "code", "ab")
    pack(lake, "code", "a", "b")
    blends = open_blends(lake.settings)
    made = [blends.create([Source(table="packed.code", weight=1)], seed=seed).id for seed in range(4)]
    [trace] = trace_documents(lake, ["b"], served_by(lake.settings)[0])
    assert (trace.outcome, trace.reason) == ("served", "served by 4 blends")
    console = Console(record=True, width=120, file=io.StringIO())
    console.print(document_tree(trace))
    shown = console.export_text()
    for blend in made:
        steps = [at for at in range(2) if blends.open(blend).explain(at)[0].segments[0].doc_id == "b"]
        assert f"blend {blend}: step {steps[0]} (epoch 0)\n" in shown


def test_a_dataset_with_a_new_name_leaves_a_document_two_traces(lake: Lake) -> None:
    for dataset in ("web", "pages"):
        documents(lake, dataset, "ab")
    pack(lake, "pages", "a")
    pack(lake, "web", "b", "a")
    traces = trace_documents(lake, ["a", "b"])
    assert [(trace.doc_id, trace.dataset, trace.outcome) for trace in traces] == [
        ("a", "pages", "packed"),
        ("a", "web", "packed"),
        ("b", "pages", "under_way"),
        ("b", "web", "packed"),
    ]
    blend = open_blends(lake.settings).create([Source(table="packed.web", weight=1)]).id
    step = trace_step(lake.settings, blend, 0)
    assert [trace.dataset for trace in step.documents.values()] == ["web"]


def test_a_blend_leads_to_the_documents_as_they_were_when_its_rows_were_made(lake: Lake) -> None:
    documents(lake, "code", "abc")
    raw = names.raw("code")
    verdicts(lake, "code", {}, "abc")
    pack(lake, "code", "a", "b", "c", upstream=(names.filtered("code"), raw), run_id="one")
    blends = open_blends(lake.settings)
    blend = blends.create([Source(table="packed.code", weight=1)]).id
    assert all(trace.outcome == "served" for trace in traced(lake, "abc"))
    rewritten = {**document("b"), "content_hash": "new", "n_bytes": 99, "license": "MIT"}
    publish(lake, raw, RAW, [document("a"), rewritten], run_id="two")
    pack(lake, "code", "b", "a", upstream=(raw,), run_id="two")
    for retired in (False, True):
        if retired:
            blends.retire(blend)
        same, changed, gone = traced(lake, "abc")
        assert (same.outcome, same.reason) == ("served", f"served first at step 0 of blend {blend}")
        assert (changed.outcome, changed.about["n_bytes"]) == ("packed", 99)
        assert changed.reason == (
            "packed into 1 sequence(s); an earlier text of it is served first at step 1 of blend "
            f"{blend}, from earlier packed sequences"
        )
        assert gone.reason == f"served first at step 2 of blend {blend}; no raw table holds it any more"
        assert list(gone.tables) == ["raw.code", "filtered.code", "packed.code_placements"]
        assert [trace.doc_id for trace in trace_text(lake.settings, "page c")[0]] == ["c"]
    console = Console(record=True, width=120, file=io.StringIO())
    for offset in range(3):
        show_step(trace_step(lake.settings, blend, offset), console, as_json=False)
    console.print(document_tree(changed))
    printed = console.export_text()
    for letter in "abc":
        assert f"tokens 0 to 4 of web / page {letter} (license unknown)" in printed
    assert f"blend {blend}, an earlier text: step 1 (epoch 0)" in printed


@pytest.fixture
def two(lake: Lake) -> tuple[str, str]:
    """Blends of two states of a dataset: of documents a, b and c, then of b, d and e."""
    made = []
    for letters in ("abc", "bde"):
        documents(lake, "code", letters)
        pack(lake, "code", *letters, upstream=(names.raw("code"),), run_id=letters)
        made.append(open_blends(lake.settings).create([Source(table="packed.code", weight=1)]).id)
    return made[0], made[1]


def test_a_document_that_is_gone_has_the_steps_of_the_blends_that_served_it(
    lake: Lake, two: tuple[str, str]
) -> None:
    first, second = two
    gone, kept = traced(lake, "ab")
    assert [(step.blend, step.offset) for step in gone.servings] == [(first, 0)]
    assert [(step.blend, step.offset) for step in kept.servings] == [(first, 1), (second, 0)]
    assert not any(step.of_earlier_text for step in kept.servings)
    assert kept.reason == "served by 2 blends"
    assert list(trace_step(lake.settings, second, 0).documents) == ["b"]


def test_damage_behind_one_blend_leaves_the_rest_of_a_trace(lake: Lake, two: tuple[str, str]) -> None:
    raw = lake.table(names.raw("code"))
    [old_file] = [
        task.file.file_path for task in raw.scan(snapshot_id=raw.history()[0].snapshot_id).plan_files()
    ]
    Path(old_file.removeprefix("file://")).unlink()
    assert [trace.reason for trace in traced(lake, "b")] == ["served by 2 blends"]
    assert trace_step(lake.settings, two[0], 1).documents["b"].about["n_bytes"] == 2  # by the newest tables
    with pytest.raises(NotFound):
        trace_text(lake.settings, "page zzz")
    lake.catalog.drop_table(names.placements("code").identifier)
    assert trace_step(lake.settings, two[1], 0).documents["b"].outcome == "under_way"


def test_retired_blends_whose_rows_are_gone_are_counted(lake: Lake) -> None:
    documents(lake, "code", "a")
    pack(lake, "code", "a")
    blends = open_blends(lake.settings)
    for seed in range(2):
        blends.retire(blends.create([Source(table="packed.code", weight=1)], seed=seed).id)
    lake.catalog.drop_table(names.packed("code").identifier)
    assert served_by(lake.settings) == ([], ["2 retired blends are left out: their snapshots have expired."])


def traced(lake: Lake, letters: str) -> list[DocumentTrace]:
    return trace_documents(lake, list(letters), served_by(lake.settings)[0])


def test_a_step_is_traced_whatever_its_shuffle_and_columns(lake: Lake) -> None:
    documents(lake, "code", "ab")
    pack(lake, "code", "a", "b", "c", run_id="one")
    blends = open_blends(lake.settings)
    code = Source(table="packed.code", weight=3, shuffle="row", oversample=True, columns=("n_tokens",))
    parent = blends.create([code], seed=5)
    child = blends.update(parent.id, 4, {"packed.code": 1}).id
    for offset, n in ((3, 3), (4, 1)):
        step = trace_step(lake.settings, child, offset)
        assert [row.ordinal for row in step.rows] == blends.open(child).step(offset)["ordinal"].to_pylist()
        assert len(step.rows) == n
    assert step.mixture == MixtureUpdate(child, 4, {"packed.code": 1})
    console = Console(record=True, width=120, file=io.StringIO())
    show_step(step, console, as_json=False)
    assert f"since step 4, by update {child}: packed.code 1" in console.export_text()
    last = blends.update(child, 6, {}, schedule=Schedule(2, ((6, {"packed.code": 1}),), "constant")).id
    schedule = MixtureUpdate(last, 6, {})
    assert [mixture_of(blends, last, offset) for offset in (5, 6, 9)] == [
        step.mixture,
        schedule,
        schedule,
    ]
    step = trace_step(lake.settings, child, 3)
    assert step.mixture is None
    assert {row.epoch for row in step.rows} == {3}
    assert {doc_id: trace.outcome for doc_id, trace in step.documents.items()} == dict.fromkeys(
        "ab", "served"
    )
    console = Console(record=True, width=120, file=io.StringIO())
    show_step(step, console, as_json=False)
    printed = console.export_text()
    assert "tokens 0 to 4 of web / page b (license unknown)" in printed
    assert "tokens 0 to 4 of c, which no raw table holds" in printed
    show_step(step, console, as_json=True)
    assert json.loads(console.export_text())["rows"][2]["row"] == 2


def test_a_variant_that_is_filtered_like_its_dataset_has_its_verdicts(lake: Lake) -> None:
    loose = names.variant("code", "loose")
    documents(lake, "code", "abc")
    verdicts(lake, "code", {"a": {"code_lines": 3.0}}, "abc")
    removed = {"doc_id": "b", "kept": False, "reason": "similar", "duplicate_of": "c", "similarity": 0.7}
    decisions(lake, loose, loose, removed, {"doc_id": "c", "kept": True, "reason": "kept"})
    publish(lake, names.deduplicated(loose), RAW, [document("c")])
    first, second, third = (trace.variants[loose] for trace in trace_documents(lake, ["a", "b", "c"]))
    assert first.reason == "rejected by 1 rule(s): code_lines is 3 (limit 9)"
    assert (second.outcome, second.duplicate_of) == ("duplicate", "c")
    assert third.outcome == "under_way"


@pytest.mark.invariant(
    "A condition that asks for a value rejects a document without one, a condition that only excludes "
    "keeps it, and verdicts, run and trace name every rule that a document passes without a value."
)
def test_a_rule_without_a_value_is_said_of_documents_that_it_rejects_and_lets_pass(lake: Lake) -> None:
    documents(lake, "web", "abc")
    verdicts(lake, "web", {"a": {"quality": None, "words": 3.0}}, "abc", without_value={"b": ["perplexity"]})
    first, second, third = trace_documents(lake, ["a", "b", "c"])
    sentence = "quality has no value (`missing: keep` would let it pass), words is 3 (limit 9)"
    assert first.reason == f"rejected by 2 rule(s): {sentence}"
    assert first.rejections[0].value is None
    table = names.filtered("web")
    assert line(second, table) == "passes every rule, without a value of `perplexity`"
    assert line(third, table) == "passes every rule"


def test_verdicts_of_an_earlier_version_are_traced_without_the_rules_that_had_no_value(lake: Lake) -> None:
    columns = FILTERED.columns
    earlier = replace(FILTERED, columns=columns.remove(columns.get_field_index("without_value")))
    documents(lake, "web", "ab")
    verdicts(lake, "web", {"a": {"words": 3.0}}, "ab", schema=earlier)
    first, second = trace_documents(lake, ["a", "b"])
    assert first.reason == "rejected by 1 rule(s): words is 3 (limit 9)"
    assert line(second, names.filtered("web")) == "passes every rule"
    lake.create(names.filtered("web"), FILTERED)  # as the next run does, which has published nothing yet
    first, second = trace_documents(lake, ["a", "b"])
    assert (first.outcome, second.without_value) == ("filtered", [])


def test_a_document_that_is_joined_through_others_is_not_called_similar(lake: Lake) -> None:
    documents(lake, "code", "abc")
    decisions(
        lake,
        "code",
        "code",
        {"doc_id": "a", "kept": True, "reason": "kept"},
        removal("b", "similar", "a", 0.85, "a"),
        removal("c", "connected", "a", None, "a"),
    )
    _, second, third = trace_documents(lake, ["a", "b", "c"])
    assert second.reason == "a near duplicate of a, which is kept (similarity 0.8500)"
    assert second.duplicate_name == third.duplicate_name == "web / page a"
    assert third.reason == (
        "removed for a, which is kept: joined to it through others, similar to no kept document"
    )
    assert (third.outcome, third.duplicate_of, third.similarity) == ("duplicate", "a", None)


def removal(doc_id: str, reason: str, of: str, similarity: float | None, stays: str) -> dict[str, Any]:
    """The decision against a document."""
    named = {"duplicate_of": of, "similarity": similarity, "kept_document": stays}
    return {"doc_id": doc_id, "kept": False, "reason": reason, **named}


def test_an_exact_copy_of_a_removed_document_names_it_and_the_kept_one(lake: Lake) -> None:
    documents(lake, "code", "abc")
    near, copied = removal("b", "similar", "a", 0.85, "a"), removal("c", "exact_copy", "b", 1.0, "a")
    decisions(lake, "code", "code", near, copied)
    [copy] = trace_documents(lake, ["c"])
    assert copy.reason == "an exact copy of b (similarity 1.0000); a is kept in place of both"
    assert (copy.duplicate_of, copy.similarity, copy.kept_document) == ("b", 1.0, "a")
    console = Console(record=True, width=120, file=io.StringIO())
    show_documents([copy], [], console, as_json=False)
    printed = console.export_text()
    assert "exact copy of: web / page b" in printed
    assert "kept: web / page a" in printed


def test_decisions_of_an_earlier_version_name_the_kept_document_of_an_exact_copy(lake: Lake) -> None:
    columns = DECISIONS.columns
    earlier = replace(DECISIONS, columns=columns.remove(columns.get_field_index("kept_document")))
    documents(lake, "code", "abc")
    row = {"dataset": "code", **removal("c", "exact_copy", "a", 0.85, "")}
    del row["kept_document"]
    publish(lake, names.dedup("code", "decisions"), earlier, [row])
    [copy] = trace_documents(lake, ["c"])
    assert copy.reason == "an exact copy of a near duplicate of a, which is kept (similarity 0.8500)"
    assert (copy.kept_document, copy.kept_name) == ("a", "web / page a")
    read = Read(lake, frozenset(lake.names()), dataset="code")
    [batch] = [batch for view in STAGES for batch in view.removals(read, None)]
    assert [(row["partner"], row["kept_document"]) for row in batch.to_pylist()] == [("a", "a")]


def test_a_document_has_a_way_through_each_variant_of_its_dataset(lake: Lake) -> None:
    strict = names.variant("code", "strict")
    documents(lake, "code", "ab")
    verdicts(lake, "code", {}, "ab")
    verdicts(lake, strict, {"a": {"code_lines": 3.0}}, "ab")
    pack(lake, "code", "a", "b")
    pack(lake, strict, "b")
    blends = open_blends(lake.settings)
    sources = [Source(table=str(names.packed(of)), weight=1) for of in ("code", strict)]
    made = [blends.create([source]).id for source in sources]
    first, second = trace_documents(lake, ["a", "b"], served_by(lake.settings)[0])
    assert (first.outcome, first.variants[strict].outcome) == ("served", "filtered")
    assert first.variants[strict].reason == "rejected by 1 rule(s): code_lines is 3 (limit 9)"
    assert [
        {step.blend for step in document_trace.servings}
        for document_trace in (second, second.variants[strict])
    ] == [{blend} for blend in made]
    console = Console(width=200)
    with console.capture() as captured:
        console.print(document_tree(first))
    shown = captured.get()
    assert f"variant {strict}" in shown
    assert shown.count("raw.code at snapshot") == 1  # shared, so it stands once
    assert f"filtered.{strict} at snapshot" in shown


def test_documents_made_from_one_are_told_apart_by_their_tables(lake: Lake) -> None:
    documents(lake, "code", "a")
    child = {**document("b"), "metadata": [("derived_from", "a")]}
    for dataset in ("essays", "texts"):  # as after a new name of the dataset
        publish(lake, names.raw(dataset), RAW, [child], names.raw("code"))
    [trace] = traced(lake, "a")
    assert [(descendant.doc_id, descendant.dataset) for descendant in trace.descendants] == [
        ("b", "essays"),
        ("b", "texts"),
    ]
