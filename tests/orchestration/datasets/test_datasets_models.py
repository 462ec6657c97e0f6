"""The models of a datasets file: datasets know their rules, and what is wrong is told with its line."""

from __future__ import annotations

from pathlib import Path

import pytest

from factory.errors import ConfigurationError
from factory.orchestration.datasets.assets import corpus
from tests.orchestration.runs import reads

DATASET = "datasets: [{name: web, kind: prose, format: files, paths: ., rules: [word_count, quality]}]\n"


def declared(folder: Path, models: str, dataset: str = DATASET) -> dict[str, set[str]]:
    (folder / "a.txt").write_text("a")
    (folder / "words.txt").write_text("darn\n")
    (folder / "datasets.yaml").write_text(f"{models}\n{dataset}")
    return reads(corpus(folder / "datasets.yaml").assets)


WEAK = "classifiers: {quality: {positives: web, negatives: {table: web, rules: [c4], fails: 1}}}"


@pytest.mark.parametrize(
    "models, upstream",
    [
        (WEAK, {"raw.web"}),
        ("word_lists: {quality: {profane: {en: words.txt}}}", set()),
        ("language_models: {quality: {table: web, languages: [en]}}", {"raw.web"}),
        ("onnx_models: {quality: {file: words.txt}}", set()),
    ],
)
def test_a_model_is_a_table_and_a_rule_of_its_name(tmp_path: Path, models: str, upstream: set[str]) -> None:
    tables = declared(tmp_path, models)
    assert tables["models.quality"] == upstream
    assert tables["signals.web_by_quality"] == {"raw.web", "models.quality"}
    assert tables["filtered.web"] == {"signals.web", "signals.web_by_quality"}


@pytest.mark.parametrize(
    "models, message",
    [
        ("classifiers: {quality: {positives: wbe, negatives: web}}", "Unknown table `raw.wbe`. Did you mean"),
        ("classifiers: {quality: {positives: web, negatives: deduplicated.web}}", "which it decides itself"),
        ("classifiers: {quality: {positives: web}}", "Give `positives` and `negatives`"),
        (WEAK.replace("rules: [c4], ", ""), "asks for more rules than the 0 named"),
        ("classifiers: {Qual-ity: {positives: web, negatives: web}}", "`Qual-ity` is not a table name"),
        ("classifiers: {word_count: {positives: web, negatives: web}}", "the taken name `word_count`"),
        ("word_lists: {tokenizer: {profane: {en: words.txt}}}", "is among `tokenizers` already"),
        ("word_lists: {quality: {profane: {en: x.txt}}}", "There is no file `x.txt`"),
        ("word_lists: {quality: {profane: {english: words.txt}}}", "no language that is detected"),
        ("word_lists: {quality: {}}", "has no file"),
        ("language_models: {quality: {table: web, vocabulary: 10}}", "cannot have 10 tokens"),
        ("onnx_models: {quality: {file: no.onnx}}", "There is no file `no.onnx`"),
        ("onnx_models: {quality: {file: words.txt, limit: {top: 2}}}", "Give one between 0 and 1"),
    ],
)
def test_what_is_wrong_is_told_with_its_line_and_field(tmp_path: Path, models: str, message: str) -> None:
    dataset = DATASET if "quality" in models else DATASET.replace(", quality", "")
    with pytest.raises(ConfigurationError) as error:
        declared(tmp_path, models, dataset)
    kind, name = models.partition(":")[0], models.partition("{")[2].partition(":")[0]
    assert message in str(error.value)
    assert f"datasets.yaml, line 1, {kind}.{name}" in str(error.value)


def test_classes_are_wanted_or_unwanted_by_predicates(tmp_path: Path) -> None:
    models = "classifiers: {kind: {classes: {a: web, b: {table: web, rules: [c4]}}}}"
    dataset = DATASET.replace("rules: [word_count, quality]", "predicates: {kind: {none_of: [a]}}")
    assert declared(tmp_path, models, dataset)["filtered.web"] == {"signals.web", "signals.web_by_kind"}


def test_a_column_of_the_name_of_a_rule_is_refused(tmp_path: Path) -> None:
    models = "classifiers: {quality: {positives: web, negatives: web}}"
    dataset = DATASET.replace("quality]", "quality], predicates: {quality: {at_least: 1}}")
    with pytest.raises(ConfigurationError, match="`quality` is a rule of this round, which has `limits`"):
        declared(tmp_path, models, dataset)
