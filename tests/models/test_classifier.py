"""Classifiers: native scores are scikit-learn's, sources are kept apart, probabilities hold."""

from __future__ import annotations

import random

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.linear_model import LogisticRegression

from factory import _native
from factory.errors import ConfigurationError
from factory.models.calibration import Calibration, calibration_error, fit_calibration
from factory.models.classifier import contributions, feature_matrix, train
from spark_udfs.models import classifier as udf

BITS = 12
CLASSES = ["advert", "other"]
ADVERT = "buy cheap shoes now order today free shipping best price call shop sale discount"
OTHER = "the river rose because rain fell on hills while farmers repaired their stone walls"
WORDS = {"advert": ADVERT.split(), "other": OTHER.split()}
SHARED = ["and", "a", "of", "in", "with", "for", "to", "is", "was", "it", "that"]


def documents(
    n_sources: int = 12, n_each: int = 8, seed: int = 1, classes: tuple[str, ...] = ("advert", "other")
) -> pa.Table:
    """Examples of `classes`; each source has a footer of its own, which tells its class if it leaks."""
    chance = random.Random(seed)
    rows = []
    for kind in classes:
        for source in range(n_sources):
            for number in range(n_each):
                own = [chance.choice(WORDS.get(kind, [f"{kind}{n}" for n in range(9)])) for _ in range(40)]
                shared = [chance.choice(SHARED) for _ in range(40)]
                words = [*own, *shared]
                chance.shuffle(words)
                text = " ".join([*words, f"footer{kind}{source}"])
                key = f"{kind}/{source}/{number}"
                rows.append(
                    {"doc_id": key, "class": kind, "source": f"{kind}{source}", "key": key, "text": text}
                )
    return pa.Table.from_pylist(rows)


def stream(classifier: pa.Table) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, classifier.schema) as writer:
        writer.write_table(classifier)
    return sink.getvalue().to_pybytes()


def test_native_scores_are_those_of_scikit_learn() -> None:
    examples = documents()
    texts = examples["text"].combine_chunks()
    features = feature_matrix(texts, BITS)
    members = np.array([kind == "advert" for kind in examples["class"].to_pylist()])
    models = [LogisticRegression(C=strength).fit(features, members) for strength in (0.5, 5.0, 50.0)]
    weights = [model.coef_[0].astype("<f4").tobytes() for model in models]
    native = _native.LinearModels(BITS, weights, [float(model.intercept_[0]) for model in models])
    for column, model in zip(native.scores(texts, 1).columns, models, strict=True):
        assert np.abs(column.to_numpy() - model.decision_function(features)).max() < 1e-6


@pytest.mark.invariant("A classifier is checked on sources that it was not trained on.")
def test_whole_sources_are_held_out_and_the_model_tells_the_classes() -> None:
    trained = train(documents(), CLASSES, 0.25, BITS, first_alone=True)
    rows = trained.examples.to_pylist()
    held_out = {row["source"] for row in rows if row["held_out"]}
    assert held_out.isdisjoint(row["source"] for row in rows if not row["held_out"])
    assert {source.rstrip("0123456789") for source in held_out} == {"advert", "other"}
    [model] = trained.classifier.to_pylist()
    assert (model["class"], model["n_held_out_sources"]) == ("advert", len(held_out))
    assert model["n_trained"] + model["n_held_out"] == len(rows)
    assert model["auc"] > 0.99
    assert model["rejected_own"] < 0.05
    assert "shoes" in str(trained.facts["speaks for advert"])
    assert "river" in str(trained.facts["speaks against advert"])


def test_the_same_examples_in_any_order_give_the_same_model() -> None:
    examples = documents()
    shuffled = examples.take(np.random.default_rng(5).permutation(len(examples)))
    first, second = (train(table, CLASSES, 0.25, BITS) for table in (examples, shuffled))
    assert first.classifier.equals(second.classifier)
    assert first.examples.equals(second.examples)


def test_sources_can_be_named() -> None:
    trained = train(documents(), CLASSES, ["advert1", "other1*"], BITS)
    held_out = {row["source"] for row in trained.examples.to_pylist() if row["held_out"]}
    assert held_out == {"advert1", "other1", "other10", "other11"}
    with pytest.raises(ConfigurationError, match="has no example held out"):
        train(documents(), CLASSES, ["advert1"], BITS)


def test_a_single_source_is_split_by_document_and_says_so() -> None:
    trained = train(documents(n_sources=1, n_each=60), CLASSES, 0.2, BITS, first_alone=True)
    [model] = trained.classifier.to_pylist()
    assert model["n_held_out_sources"] == 0
    assert model["n_held_out"] > 0


def test_several_classes_each_have_a_row_and_a_text_has_the_likeliest() -> None:
    kinds = ("advert", "other", "recipe")
    trained = train(documents(classes=kinds), list(kinds), 0.25, BITS)
    assert trained.classifier["class"].to_pylist() == list(kinds)
    texts = pa.array([" ".join(WORDS["other"] * 4), " ".join(WORDS["advert"] * 5), "too short", None])
    columns = udf.likeliest(
        texts, texts, classifier=stream(trained.classifier), name="k", score="s", least_tokens=50
    )
    assert columns["k"].to_pylist() == ["other", "advert", None, None]
    assert columns["s"].is_valid().to_pylist() == [True, True, False, False]
    assert all(share > 0.5 for share in columns["s"].to_pylist()[:2])


def test_a_class_of_few_examples_is_refused() -> None:
    examples = documents(n_sources=2, n_each=2)
    with pytest.raises(ConfigurationError, match="`advert` has 4 examples of at least 50 words"):
        train(examples, CLASSES)


def test_what_an_ngram_adds_sums_up_to_the_score() -> None:
    trained = train(documents(), CLASSES, 0.25, BITS, first_alone=True)
    [row] = trained.classifier.to_pylist()
    text = documents(seed=9)["text"][0].as_py()
    added = contributions(text, row["weights"], row["bits"])
    models = _native.LinearModels(row["bits"], [row["weights"]], [row["intercept"]])
    [score] = models.scores(pa.array([text]), 1).column(0).to_pylist()
    assert sum(weight for _, weight in added) + row["intercept"] == pytest.approx(score, abs=1e-6)
    assert added == sorted(added, key=lambda pair: (-pair[1], pair[0]))


def test_calibrated_probabilities_are_shares_and_rise() -> None:
    chance = np.random.default_rng(2)
    scores = chance.normal(size=20_000)
    truth = 1 / (1 + np.exp(-(3 * scores + 1)))
    members = chance.random(20_000) < truth
    calibration = fit_calibration(scores[:10_000], members[:10_000])
    assert calibration_error(calibration.probability(scores[10_000:]), members[10_000:]) < 0.03
    ascending = np.linspace(-9, 9, 1_000)
    assert (np.diff(calibration.logit(ascending)) > 0).all()


@settings(max_examples=60, deadline=None)
@given(
    members=st.lists(st.booleans(), min_size=4, max_size=60).filter(
        lambda flags: 0 < sum(flags) < len(flags)
    ),
    seed=st.integers(0, 9),
)
def test_a_calibration_of_any_labels_keeps_the_order_of_scores(members: list[bool], seed: int) -> None:
    scores = np.random.default_rng(seed).normal(size=len(members))
    calibration = fit_calibration(scores, np.array(members))
    logits = calibration.logit(np.sort(scores))
    assert np.isfinite(logits).all()
    assert (np.diff(logits) >= 0).all()


def test_a_missing_score_stays_missing() -> None:
    calibration = Calibration(np.array([0.0, 1.0]), np.array([-1.0, 2.0]), 1.0)
    assert np.isnan(calibration.probability(np.array([np.nan]))).all()


def test_one_wrong_label_at_the_low_end_lifts_no_other_probability() -> None:
    chance = np.random.default_rng(1)
    scores = np.sort(np.concatenate([chance.normal(-4, 1, 2_000), chance.normal(2, 1, 2_000)]))
    members = chance.random(len(scores)) < 1 / (1 + np.exp(-2 * scores))
    members[:400] = False
    members[1] = True
    low = fit_calibration(scores, members).probability(np.array([-6.0, -4.0]))
    assert low.max() < 0.02


def test_a_share_that_leaves_a_side_empty_is_refused() -> None:
    with pytest.raises(ConfigurationError, match=r"`holdout: 0\.999` a class has no example"):
        train(documents(n_sources=1, n_each=30), CLASSES, holdout=0.999, bits=BITS)
