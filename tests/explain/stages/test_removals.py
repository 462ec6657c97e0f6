"""Removals have one shape, whichever stage removed a document and whoever asks."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from factory.explain.stages import removals as removals_module
from factory.explain.stages.registry import STAGES
from factory.explain.stages.removals import REMOVALS, Read
from factory.explain.trace import trace_documents
from factory.lake import names
from factory.lake.schemas.dedup import DECISIONS, REPOSITORIES
from factory.lake.tables import Lake
from factory.settings import Settings
from tests.explain.lakes import decisions, documents, pack, publish, tokenize, verdicts


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    """A lake whose `web` lost a by rules, b and c as duplicates, d with its repository, e without tokens."""
    lake = Lake(Settings(home=tmp_path))
    documents(lake, "web", "abcdef")
    verdicts(lake, "web", {"a": {"words": 1.0, "lines": 2.0}})
    repository = {
        **dict.fromkeys(("repository_id", "dataset", "repository", "component", "component_in_topic"), "r"),
        **dict.fromkeys(("documents", "bytes", "common_documents"), 1),
        "share_elsewhere": 1.0,
        "kept": False,
        "reason": "duplicate",
        "duplicate_of": "web/other",
        "share": 0.9,
    }
    publish(lake, names.dedup("prose", "repositories"), REPOSITORIES, [repository])
    decided = {
        "b": ("similar", "f", 0.9),
        "c": ("connected", "f", None),
        "d": ("repository", None, None),
        "e": ("kept", None, None),
        "f": ("kept", None, None),
    }
    rows: list[dict[str, Any]] = [
        {
            "doc_id": doc_id,
            "dataset": "web",
            "component": "b",
            "kept": reason == "kept",
            "reason": reason,
            "duplicate_of": partner,
            "kept_document": partner,
            "similarity": similarity,
        }
        for doc_id, (reason, partner, similarity) in decided.items()
    ]
    publish(lake, names.dedup("prose", "decisions"), DECISIONS, rows, names.dedup("prose", "repositories"))
    tokenize(lake, "web", "ef", empty="e")
    pack(lake, "web", "f")
    return lake


def removals(lake: Lake, ids: pa.Array | None) -> list[dict[str, Any]]:
    read = Read(lake, frozenset(lake.names()), dataset="web")
    batches = [batch for view in STAGES for batch in view.removals(read, ids)]
    assert all(batch.schema == REMOVALS for batch in batches)
    return pa.Table.from_batches(batches, REMOVALS).to_pylist()


def test_every_removal_has_the_same_columns_for_some_documents_and_for_all(lake: Lake) -> None:
    every = removals(lake, None)
    assert [(row["doc_id"], row["outcome"], row["reason"], row["value"], row["limit"]) for row in every] == [
        ("a", "filtered", "words", 1.0, 9.0),
        ("a", "filtered", "lines", 2.0, 9.0),
        ("b", "duplicate", "similar", 0.9, None),
        ("c", "duplicate", "connected", None, None),
        ("d", "repository", "repository", None, None),
        ("e", "no_tokens", "no_tokens", None, None),
    ]
    assert [row["partner"] for row in every] == [None, None, "f", "f", None, None]
    assert [row["kept_document"] for row in every] == [None, None, "f", "f", None, None]
    some = removals(lake, pa.array(list("abcdef")))
    assert [row | {"sentence": None} for row in some] == every
    assert [row["sentence"] for row in some if row["sentence"]] == ["its repository was removed"]
    assert removals(lake, pa.array(["b", "x"])) == [row for row in some if row["doc_id"] == "b"]


def test_many_documents_are_compared_after_reading(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    ids = pa.array(list("abcx"))
    few = removals(lake, ids)
    monkeypatch.setattr(removals_module, "_LISTED", 0)
    assert removals(lake, ids) == few
    assert removals(lake, pa.array([], pa.string())) == []


def test_a_trace_ends_with_the_first_stage_that_removed_the_document(lake: Lake) -> None:
    outcomes = {trace.doc_id: trace.outcome for trace in trace_documents(lake, list("abcdef"))}
    assert outcomes == {
        "a": "filtered",
        "b": "duplicate",
        "c": "duplicate",
        "d": "repository",
        "e": "no_tokens",
        "f": "packed",
    }
    [empty] = trace_documents(lake, ["e"])
    assert empty.reason == "it has no tokens, so no sequence holds it"


def test_the_decision_of_the_last_of_two_groups_counts(lake: Lake) -> None:
    other = {"doc_id": "b", "kept": False, "reason": "exact_copy", "duplicate_of": "e", "similarity": 1.0}
    decisions(lake, "renamed", "web", other | {"kept_document": "e"})
    [trace] = trace_documents(lake, ["b"])
    assert trace.reason == "an exact copy of e, which is kept (similarity 1.0000)"
    assert {"dedup.prose_decisions", "dedup.renamed_decisions"} <= trace.tables.keys()


def test_what_is_published_meanwhile_does_not_mix_with_what_was_read(lake: Lake) -> None:
    read = Read(lake, frozenset(lake.names()), dataset="web")
    first = read.snapshot(names.filtered("web"))
    verdicts(lake, "web", {"f": {"words": 1.0}})
    assert read.snapshot(names.filtered("web")) == first
    [view] = [view for view in STAGES if view.stage == "filters"]
    ids = [row for batch in view.removals(read, None) for row in batch["doc_id"].to_pylist()]
    assert ids == ["a", "a"]
