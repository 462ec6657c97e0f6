"""The models of a datasets file: datasets know their rules, and what is wrong is told with its line."""

from __future__ import annotations

from pathlib import Path

import pytest

from factory.errors import ConfigurationError
from factory.filters.limits import AtLeast, AtMost, Limit
from factory.filters.rules.classified import Category
from factory.orchestration.datasets.assets import corpus
from factory.orchestration.datasets.file import datasets_file
from factory.orchestration.declare.located_yaml import LocatedYaml
from tests.orchestration.runs import reads

DATASET = "datasets: [{name: web, kind: prose, format: files, paths: ., rules: [word_count, quality]}]\n"


def declared(folder: Path, models: str, dataset: str = DATASET) -> dict[str, set[str]]:
    (folder / "a.txt").write_text("a")
    (folder / "words.txt").write_text("darn\n")
    (folder / "empty.txt").write_text("# none\n\n")
    (folder / "pattern.txt").write_text("cr[a-z]p\n")
    (folder / "binary.txt").write_bytes(b"\xff\xfe")
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
        ("word_lists: {quality: {profane: {en: empty.txt}}}", "has no entry"),
        ("word_lists: {quality: {profane: {en: binary.txt}}}", "It is a text in UTF-8"),
        ("word_lists: {quality: {profane: {en: pattern.txt}}}", "line 1: `cr[a-z]p` has a sign"),
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
    file = LocatedYaml.read(tmp_path / "datasets.yaml").build(datasets_file())
    [_, rule] = file.datasets[0].in_rounds()[0].build()
    assert isinstance(rule, Category)
    assert (rule.limit, rule.wanted) == (AtLeast(0.9), ("forum",))


@pytest.mark.parametrize("name, limit", [("advertisement", AtMost(0.7)), ("quality", AtLeast(0.7))])
def test_a_number_is_a_limit_on_the_side_of_the_model(tmp_path: Path, name: str, limit: Limit) -> None:
    models = f"classifiers: {{{name}: {{positives: web, negatives: web, limit: 0.7}}}}"
    declared(tmp_path, models, DATASET.replace("quality", name))
    file = LocatedYaml.read(tmp_path / "datasets.yaml").build(datasets_file())
    assert file.classifiers[name].rule(name).limit == limit


LIMITED = DATASET.replace("quality]", "quality], limits: {word_count: {top: 0.3}, quality: 0.5}")


@pytest.mark.parametrize(
    "models, dataset, message",
    [
        ("", LIMITED.replace(", quality]", ", word_cuont]"), "Unknown rule set or rule `word_cuont`"),
        (WEAK.replace("fails: 1", "fails: 9"), LIMITED, "asks for more rules than the 3 named"),
        ("classifiers: {quality: {positivs: web}}", LIMITED, "Unknown field `positivs`"),
    ],
)
def test_a_mistake_beside_limits_is_told_alone(
    tmp_path: Path, models: str, dataset: str, message: str
) -> None:
    with pytest.raises(ConfigurationError) as error:
        declared(tmp_path, models, dataset)
    assert message in str(error.value)
    assert len(str(error.value).splitlines()) <= 2


@pytest.mark.parametrize(
    "field, message",
    [
        ("filtered.web.kept", "is made from the verdicts that it decides"),
        ("deduplicated.web.quality", "is made from the verdicts that it decides"),
        ("filtered.wbe.kept", "Unknown table `filtered.wbe`. Did you mean `filtered.web`?"),
        ("raw.web.n_byts", "Unknown column of `raw.web`: `n_byts`. Did you mean `n_bytes`?"),
    ],
)
def test_a_predicate_on_a_table_is_checked(tmp_path: Path, field: str, message: str) -> None:
    dataset = DATASET.replace(", quality]", f"], predicates: {{{field}: {{at_least: 1}}}}")
    with pytest.raises(ConfigurationError) as error:
        declared(tmp_path, "", dataset)
    assert message in str(error.value)


def test_a_predicate_may_read_the_documents_of_its_own_dataset(tmp_path: Path) -> None:
    dataset = DATASET.replace(", quality]", "], predicates: {raw.web.n_bytes: {at_least: 1}}")
    assert declared(tmp_path, "", dataset)["signals.web_by_raw_web_n_bytes"] == {"raw.web"}


@pytest.mark.parametrize("name", ["doc_id", "words_flagged", "gopher_quality"])
def test_a_rule_whose_column_is_taken_is_refused(tmp_path: Path, name: str) -> None:
    models = f"{WEAK.replace('quality', name)}\nword_lists: {{words: {{profane: {{en: words.txt}}}}}}"
    with pytest.raises(ConfigurationError, match="has the taken name"):
        declared(tmp_path, models, DATASET.replace("quality]", f"words, {name}]"))


def test_two_models_of_one_table_are_refused(tmp_path: Path) -> None:
    both = f"{WEAK[:-1]}, quality_examples: {{positives: web, negatives: web}}}}"
    with pytest.raises(ConfigurationError, match=r"`models\.quality_examples` is a table of another model"):
        declared(tmp_path, both)
