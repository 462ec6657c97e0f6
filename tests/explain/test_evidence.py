"""What made a rule reject a document is worked out at the snapshots that its verdict was made from."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from factory.explain.diff import diff
from factory.explain.stages.rounds import Removed, removed_by_round
from factory.explain.stages.stage import SummaryScope
from factory.explain.tables import sample
from factory.explain.trace import trace_documents
from factory.filters.limits import AtMost
from factory.filters.rounds import Round
from factory.lake import names
from factory.lake.tables import Lake
from factory.orchestration.chain.models_classifier import classifier
from factory.orchestration.chain.models_word_list import word_list
from factory.settings import Settings
from tests.orchestration.chain.test_signal_parts import TEXTS, examples, filters, raw
from tests.orchestration.runs import run

pytestmark = pytest.mark.spark


@pytest.fixture
def judged(spark: SparkSession, lake_settings: Settings, unique: str, tmp_path: Path) -> Lake:
    """A lake with two rounds: a classifier of adverts, then a list of words and the language."""
    (tmp_path / "en.txt").write_text("river\n")
    ad = classifier(
        f"{unique}_ad",
        examples(unique, "adver"),
        examples(unique, "essay"),
        source="source",
        limit=AtMost(0.5),
    )
    words = word_list(f"{unique}_words", {"en": tmp_path / "en.txt"})
    rounds = [Round(rules=[ad.rule]), Round(rules=[words.rule], languages=["de"])]
    assert run(lake_settings, raw(unique), ad.asset, words.asset, *filters(unique, *rounds)).success
    return Lake(lake_settings)


def test_a_trace_names_the_ngrams_the_words_with_places_and_the_language(judged: Lake, unique: str) -> None:
    advert, essay = trace_documents(judged, ["advert0/0", "essay0/0"])
    [by_model] = advert.rejections
    assert by_model.rule == f"{unique}_ad"
    assert by_model.evidence is not None
    assert by_model.evidence.startswith(f"what speaks most for {unique}_ad: `")
    assert any(word in by_model.evidence for word in ("buy", "cheap", "shoes"))
    evidence = {rejection.rule: rejection.evidence for rejection in essay.rejections}
    place = TEXTS["essay0/0"].index("river")
    assert (evidence[f"{unique}_words"] or "").startswith(
        f"profane words of `en` by character: `river` at {place},"
    )
    assert evidence["language_score"] == "detected as `en`"


def test_a_sample_and_a_diff_show_it_too(judged: Lake, unique: str) -> None:
    rows = sample(judged, names.filtered(unique), 3, 0, rejected_by="language_score")
    assert {row["evidence"]["language_score"] for row in rows} == {"detected as `en`"}
    moved = diff(judged, f"filtered.{unique}_r1", f"filtered.{unique}", 2).leave
    [cause] = [cause for cause in moved.causes if cause.cause == f"{unique}_words"]
    assert all(example.evidence and "`river` at" in example.evidence for example in cause.examples)


def test_each_round_removes_documents_bytes_and_reckoned_tokens(judged: Lake, unique: str) -> None:
    scope = SummaryScope.in_lake(judged, [unique])
    figure = removed_by_round(scope, unique, names.filtered(unique))
    assert figure is not None
    n_bytes = {
        kind: sum(len(text) for key, text in TEXTS.items() if key.startswith(kind)) for kind in ("ad", "es")
    }
    first, last = figure.values
    assert (first["n_entered"], first["total"]) == (96, vars(Removed(48, n_bytes["ad"], None)))
    assert (last["n_entered"], last["total"]) == (48, vars(Removed(48, n_bytes["es"], None)))
    assert set(last["by_rule"]) == {f"{unique}_words", "language_score"}
    assert figure.lines[0] == f"filtered.{unique}_r1: 48 documents, 0.0 MB (50.0%)"
