"""The models of a datasets file: datasets know their rules, and what is wrong is told with its line."""

from __future__ import annotations

from pathlib import Path

import pytest

from factory.errors import ConfigurationError
from factory.filters.classified import Category
from factory.filters.limits import AtLeast, AtMost, Limit
from factory.orchestration.datasets.assets import corpus
from factory.orchestration.datasets.file import DatasetsFile
from factory.orchestration.datasets.located_yaml import LocatedYaml
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
        (
            WEAK.replace("rules: [c4], fails: 1", "rules: [word_count], limits: {word_count: {top: 0.1}}"),
            "Give a value",
        ),
        (WEAK.replace("fails: 1}", "fails: 1}, source: metadat.site"), "field of a document: `metadat.site`"),
        ("language_models: {quality: {table: filtered.web}}", "filtered.web holds no texts"),
        ("language_models: {quality: {table: web, limit: 3}}", "the rule has two bounds"),
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


CATEGORY = "classifiers: {quality: {classes: {forum: web, essay: web}, limit: 0.9}}"


def test_a_class_that_the_classifier_lacks_is_refused(tmp_path: Path) -> None:
    dataset = DATASET.replace("quality]", "quality], predicates: {quality: {none_of: [formu]}}")
    with pytest.raises(
        ConfigurationError, match=r"Unknown class of `quality`: `formu`\. Did you mean `forum`"
    ):
        declared(tmp_path, CATEGORY, dataset)


def test_the_limit_of_a_category_stands_beside_its_classes(tmp_path: Path) -> None:
    dataset = DATASET.replace("quality]", "quality], predicates: {quality: [forum]}")
    declared(tmp_path, CATEGORY, dataset)
    file = LocatedYaml.read(tmp_path / "datasets.yaml").build(DatasetsFile)
    [_, rule] = file.datasets[0].in_rounds()[0].build()
    assert isinstance(rule, Category)
    assert (rule.limit, rule.wanted) == (AtLeast(0.9), ("forum",))


@pytest.mark.parametrize("name, limit", [("advertisement", AtMost(0.7)), ("quality", AtLeast(0.7))])
def test_a_number_is_a_limit_on_the_side_of_the_model(tmp_path: Path, name: str, limit: Limit) -> None:
    models = f"classifiers: {{{name}: {{positives: web, negatives: web, limit: 0.7}}}}"
    declared(tmp_path, models, DATASET.replace("quality", name))
    file = LocatedYaml.read(tmp_path / "datasets.yaml").build(DatasetsFile)
    assert file.classifiers[name].rule(name).limit == limit
