"""What made a rule reject a document is worked out at the snapshots that its verdict was made from."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from factory.explain.diff import diff
from factory.explain.named_state import named_state
from factory.explain.stages.rounds import Removed, removed_by_round
from factory.explain.stages.stage import SummaryScope
from factory.explain.tables import sample
from factory.explain.trace import trace_documents
from factory.filters.limits import AtMost
from factory.filters.rounds import Round
from factory.lake import names
from factory.lake.tables import Lake
from factory.orchestration.chain.filters import Filters
from factory.orchestration.chain.link import Chain, linked
from factory.orchestration.chain.models.classifier import classifier
from factory.orchestration.chain.models.rule import RuleModel
from factory.orchestration.chain.models.word_list import word_list
from factory.settings import Settings
from tests.orchestration.chain.test_signal_parts import (
    LANGUAGES,
    TEXTS,
    examples,
    filters,
    raw,
    raw_by_kind,
)
from tests.orchestration.runs import run

pytestmark = pytest.mark.spark


JUDGED = "judged_in_rounds"


@pytest.fixture(scope="module")
def judged(spark: SparkSession, lake_settings: Settings, tmp_path_factory: pytest.TempPathFactory) -> Lake:
    """A lake with two rounds: a classifier of adverts, then a list of words and the language."""
    both = examples(JUDGED, "adver"), examples(JUDGED, "essay")
    ad = classifier(f"{JUDGED}_ad", *both, source="source", limit=AtMost(0.5))
    words = listed_words(JUDGED, tmp_path_factory.mktemp("words"), "river")
    rounds = [Round(rules=[ad.rule]), Round(rules=[words.rule], languages=["de"])]
    assert run(lake_settings, raw(JUDGED), ad.asset, words.asset, *filters(JUDGED, *rounds)).success
    return Lake(lake_settings)


def listed_words(name: str, folder: Path, word: str) -> RuleModel:
    """The list of one English word, whose file lies in `folder`."""
    (folder / "en.txt").write_text(f"{word}\n")
    return word_list(f"{name}_words", {"en": folder / "en.txt"})


def test_a_trace_names_the_ngrams_the_words_with_places_and_the_language(judged: Lake) -> None:
    advert, essay = trace_documents(judged, [f"advert0/0@{JUDGED}", f"essay0/0@{JUDGED}"])
    [by_model] = advert.rejections
    assert by_model.rule == f"{JUDGED}_ad"
    assert by_model.evidence is not None
    assert by_model.evidence.startswith(f"what speaks most for {JUDGED}_ad: `")
    assert any(word in by_model.evidence for word in ("buy", "cheap", "shoes"))
    evidence = {rejection.rule: rejection.evidence for rejection in essay.rejections}
    place = TEXTS["essay0/0"].index("river")
    assert (evidence[f"{JUDGED}_words"] or "").startswith(
        f"profane words of `en` by character: `river` at {place},"
    )
    assert evidence["language_score"] == "detected as `en`"


def test_a_sample_and_a_diff_show_it_too(judged: Lake) -> None:
    rows = sample(
        judged, named_state(judged, str(names.filtered(JUDGED))), 3, 0, rejected_by="language_score"
    )
    assert {row["evidence"]["language_score"] for row in rows} == {"detected as `en`"}
    moved = diff(judged, f"filtered.{JUDGED}_r1", f"filtered.{JUDGED}", 2).leave
    [cause] = [cause for cause in moved.causes if cause.cause == f"{JUDGED}_words"]
    assert all(example.evidence and "`river` at" in example.evidence for example in cause.examples)


def test_each_round_removes_documents_bytes_and_reckoned_tokens(judged: Lake) -> None:
    scope = SummaryScope.in_lake(judged, [JUDGED])
    figure = removed_by_round(scope, JUDGED, names.filtered(JUDGED))
    assert figure is not None
    n_bytes = {
        kind: sum(len(text) for key, text in TEXTS.items() if key.startswith(kind)) for kind in ("ad", "es")
    }
    first, last = figure.values
    assert (first["n_entered"], first["total"]) == (96, vars(Removed(48, n_bytes["ad"], None)))
    assert (last["n_entered"], last["total"]) == (48, vars(Removed(48, n_bytes["es"], None)))
    assert set(last["by_rule"]) == {f"{JUDGED}_words", "language_score"}
    assert figure.lines[0] == f"filtered.{JUDGED}_r1: 48 documents, 0.0 MB (50.0%)"


def test_a_model_whose_snapshot_has_expired_costs_only_its_own_phrase(
    spark: SparkSession, lake_settings: Settings, unique: str, tmp_path: Path
) -> None:
    lake, words = Lake(lake_settings), listed_words(unique, tmp_path, "river")
    chain = filters(unique, Round(rules=[words.rule], languages=["de"]))
    assert run(lake_settings, raw(unique), words.asset, *chain).success
    assert run(lake_settings, listed_words(unique, tmp_path, "rain").asset).success
    table = lake.table(names.model(f"{unique}_words"))
    old = [snapshot.snapshot_id for snapshot in table.snapshots()][:-1]
    table.maintenance.expire_snapshots().by_ids(old).commit()
    [essay] = trace_documents(lake, [f"essay0/0@{unique}"])
    evidence = {rejection.rule: rejection.evidence for rejection in essay.rejections}
    assert evidence["language_score"] == "detected as `en`"
    assert (evidence[f"{unique}_words"] or "").startswith(
        f"what made it cannot be told: Table models.{unique}_words has no snapshot"
    )


def test_each_partition_is_explained_by_the_model_that_judged_it(
    spark: SparkSession, lake_settings: Settings, unique: str, tmp_path: Path
) -> None:
    lake, documents = Lake(lake_settings), raw_by_kind(unique)
    for kind, word in {"advert": "buy", "essay": "river"}.items():
        words = listed_words(unique, tmp_path, word)
        chain = linked(
            Chain.from_raw(unique, partitions_def=LANGUAGES), [Filters([Round(rules=[words.rule])])]
        )
        assert run(lake_settings, words.asset).success
        partitioned = [key for asset in (documents, *chain) for key in asset.keys]
        assets = (documents, words.asset, *chain)
        assert run(lake_settings, *assets, selection=partitioned, span=(kind, kind), reuse=True).success
    traces = trace_documents(lake, [f"advert0/0@{unique}", f"essay0/0@{unique}"])
    for trace, word in zip(traces, ("buy", "river"), strict=True):
        [rejection] = trace.rejections
        assert f"`{word}` at" in (rejection.evidence or "")


def test_rounds_that_no_longer_exist_removed_nothing(
    spark: SparkSession, lake_settings: Settings, unique: str
) -> None:
    lake, adverts = Lake(lake_settings), Round(predicates={"metadata.label": ["adver"]})
    for rounds in ([adverts, Round(languages=["de"])], [adverts]):
        assert run(lake_settings, raw(unique), *filters(unique, *rounds)).success
    figure = removed_by_round(SummaryScope.in_lake(lake, [unique]), unique, names.filtered(unique))
    assert figure is not None
    assert [(part["table"], part["n_entered"]) for part in figure.values] == [(f"filtered.{unique}", 96)]
