"""Datasets declared in YAML: the assets they make, and the sentence for everything that can be wrong."""

from __future__ import annotations

from pathlib import Path

import dagster as dg
import pytest

from factory.errors import ConfigurationError
from factory.orchestration.datasets.assets import corpus
from factory.orchestration.datasets.file import datasets_file
from factory.orchestration.declare.located_yaml import LocatedYaml
from factory.orchestration.host.definitions import definitions
from factory.orchestration.table.table_asset import declaration_of
from factory.settings import Settings
from spark_udfs.ingest.address import place_of
from tests.orchestration.declared import GOOD, assert_refused, declared, refusal, tables


def test_a_file_makes_the_assets_that_refine_makes(folder: Path) -> None:
    found = declared(folder, GOOD)
    names = tables(found)
    assert found.datasets == ("notes", "notes__long", "notes__other", "notes__same", "pages", "mine")
    assert found.groups == ("code", "prose", "prose__long", "prose__other", "prose__same")
    assert {"raw.notes_rejected", "filtered.pages_r1", "sorted.mine", "packed.notes__long"} <= names
    assert not {"sorted.pages", "raw.notes__long", "signals.notes__long", "signals.notes__same"} & names
    assert dict(found.weights) == {"mine": 6, "notes": 2, "notes__long": 1}
    definitions(found.assets, Settings(home=folder / "lake"))  # every table that is read has a writer


@pytest.mark.parametrize("kind, last", [("prose", "deduplicated.only"), ("code", "sorted.only")])
def test_one_dataset_of_either_kind_is_enough(folder: Path, kind: str, last: str) -> None:
    found = declared(folder, f"datasets:\n- {{name: only, kind: {kind}, format: files, paths: notes}}\n")
    assert {last, "packed.only", "models.tokenizer"} <= tables(found)
    assert dict(found.weights) == {"only": 1}
    definitions(found.assets, Settings(home=folder / "lake"))


def test_options_of_a_group_reach_its_variants_unless_they_have_their_own(folder: Path) -> None:
    text = GOOD.replace(
        "  prose: {threshold: 0.7}\n", "  prose: {threshold: 0.7}\n  prose__long: {seed: 1}\n"
    )
    checks = {
        output.table.name: check.violations
        for asset in declared(folder, text).assets
        for output in declaration_of(asset).outputs
        for check in output.checks
        if check.name == "every_edge_is_similar"
    }
    assert "similarity >= 0.7" in checks["prose_edges"]
    assert checks["prose_edges"] == checks["prose__same_edges"]
    assert "similarity >= 0.8" in checks["prose__long_edges"]


def test_a_tokenizer_of_a_file_is_trained_on_nothing(folder: Path) -> None:
    (folder / "tokenizer.json").write_text("{}")
    text = GOOD.replace("{vocabulary: 1000}", "{file: tokenizer.json, begin: <s>, end: </s>}")
    model = dg.AssetKey("models.tokenizer")
    (given,) = (asset for asset in declared(folder, text).assets if model in asset.keys)
    assert not given.dependency_keys


def test_what_decides_the_documents_holds_no_folder_of_the_machine(folder: Path) -> None:
    (folder / "my.yaml").write_text(GOOD)
    for entry in LocatedYaml.read(folder / "my.yaml").build(datasets_file()).datasets:
        assert entry.reading()["paths"] == list(entry.paths)
        assert str(folder) not in str(entry.reading())


WRONG = [
    ("include:", "inclde:", "line 6, datasets[0].inclde: Unknown field `inclde`."),
    ("kind: prose", "kind: prse", "line 3, datasets[0].kind: Unknown value `prse`. Did you mean `prose`?"),
    ("format: files", "format: fils", "line 4, datasets[0].format: Unknown value `fils`. Did"),
    ("    format: files\n", "", "line 2, datasets[0].format: `format` is missing. Add it."),
    ("    paths: notes\n", "", "line 2, datasets[0].paths: A dataset has `paths` or `from`. Name the files"),
    ("name: pages", "name: notes", "line 12, datasets[1].name: `notes` is the name of"),
    (
        "gopher_quality",
        "gophr_quality",
        "line 19, datasets[1].rounds[0].rules: Unknown rule set or rule `gophr_quality`",
    ),
    (
        "[stop_words]",
        "[stop_word]",
        "line 10, datasets[0].variants.other.rules: Unknown rule set or rule `stop_word`",
    ),
    (
        "{word_count: [200, 100000]}}",
        "{words: 50}}",
        "line 9, datasets[0].variants.long.limits: `words` is not among the chosen rules. "
        "Did you mean `word_count`?",
    ),
    ("{word_count: [200", "{word_cont: [200", "line 9, datasets[0].variants.long.limits: `word_cont`"),
    ("long: {limits", "long: {limts", "line 9, datasets[0].variants.long.limts: Unknown field `limts`"),
    ("long:", "1:", "line 8, datasets[0].variants[1]: YAML reads this as 1, which is not text. Put it in"),
    ("long:", "l-ong:", "line 8, datasets[0].variants: `x__l-ong` is not a dataset name"),
    ("created_at", "creatd_at", "line 17, datasets[1].columns: Unknown column `creatd_at`"),
    (
        "languages: [en]",
        "languages: [xx]",
        "line 20, datasets[1].rounds[1].languages: The model does not detect `xx`.",
    ),
    ("    rounds:", "    rules: [c4]\n    rounds:", "line 18, datasets[1].rules: `rules` cannot be"),
    ("{word_count: [200", "{word_count: [.nan", "line 9, datasets[0].variants.long.limits: The limit of"),
    ("paths: notes", "paths: ~nobody_here/x", "line 5, datasets[0].paths[0]: `~nobody_here/x` cannot be"),
    ("paths: notes", f"paths: {'a' * 300}", "line 5, datasets[0].paths[0]: `aaa"),
    (
        "{threshold",
        "{value_bits: 3, threshold",
        "line 28, groups.prose.value_bits: Unknown value `3`. Use one of `1`, `2`, `4`, `8`, `16`.",
    ),
    (
        "paths: [p.jsonl]",
        "paths: []",
        "line 15, datasets[1].paths: A dataset has `paths` or `from`. Name the files",
    ),
    ("paths: notes", "paths: {a: b}", "line 5, datasets[0].paths: `{'a': 'b'}` does not fit."),
    ("name: mine", "name: mine_r1", "line 21, datasets[2].name: `mine_r1` is not a dataset name"),
    ("name: mine", "name: mine__x", "line 21, datasets[2].name: `mine__x` contains two underscores"),
    ("license: MIT", "license: no", "line 25, datasets[2].license: YAML reads this as False"),
    ("kind: code", "kind: code\n    group: prose", "line 23, datasets[2].group: `prose` holds `notes`"),
    (
        "{sequence_length",
        "{sequence_len",
        "line 26, datasets[2].packing.sequence_len: Unknown field `sequence_len`",
    ),
    ("{sequence_length", "{token_bytes: 4, s", "line 26, datasets[2].packing.token_bytes: It follows"),
    ("threshold", "treshold", "line 28, groups.prose.treshold: Unknown field `treshold`."),
    (
        "{vocabulary: 1000}",
        "{file: none.json}",
        "line 30, tokenizers.tokenizer.file: There is no file `none.json`. Paths are relative",
    ),
    (
        "{vocabulary: 1000}",
        "{vocabulary: 1000, file: my.yaml}",
        "line 30, tokenizers.tokenizer.vocabulary: The tokenizer of a `file` has the vocabulary it has.",
    ),
    ("0.7", "80", "line 28, groups.prose.threshold: Threshold 80 is out of range. Write 0.8 for 80 %."),
    ("0.7", "7", "line 28, groups.prose.threshold: Threshold 7 is out of range. Use at least 0.3 and less"),
    ("0.7", ".nan", "line 28, groups.prose.threshold: Threshold nan is out of range. Use at least 0.3"),
    ("{threshold", "{sweep: [0.1], threshold", "line 28, groups.prose.sweep[0]: Threshold 0.1 is out of"),
    ("license: MIT", "max_rejected: 5", "line 25, datasets[2].max_rejected: `5` is out of range. Write 0.05"),
    (
        "license: MIT",
        "threshold: 0.8",
        "line 25, datasets[2].threshold: `threshold` belongs to a group or a variant. "
        "Write `groups: {code: {threshold: 0.8}}`.",
    ),
    (
        "license: MIT",
        "group: ours\n    shingle: 3",
        "line 26, datasets[2].shingle: `shingle` belongs to a group. Write `groups: {ours: {shingle: 3}}`.",
    ),
    ("{threshold", "{tokens: o200k, threshold", "line 28, groups.prose.tokens: Unknown value `o200k`."),
    ("{threshold", "{keep: all, threshold", "line 28, groups.prose.keep: Unknown value `all`. Use one of"),
    ("1000}", "1000000000}", "line 30, tokenizers.tokenizer.vocabulary: `1000000000` does not fit."),
    ("{threshold", "{kind: code, threshold", "line 28, groups.prose.kind: A group has the kind of its"),
    ("  prose: {", "  proze: {", "line 28, groups.proze: Unknown group `proze`. Did you mean"),
    ("tokenizer: {v", "tok: {v", "line 30, tokenizers.tok: Unknown tokenizer `tok`"),
    ("mine: 6", "mne: 6", "line 32, blend.weights.mne: Unknown dataset or variant `mne`."),
    ("mine: 6", "mine: 0", "line 32, blend.weights.mine: `0` does not fit"),
    ("mine: 6", "mine: .5", "line 32, blend.weights.mine: The weight is 0.5. Weights are whole rows per"),
    ("pad: true", "pad: false", "line 32, blend.weights.notes: Rows of `notes` hold 8192 tokens and those"),
    ("kind: code", "kind: code\n    tokenizer: t2", "line 33, blend.weights.notes: `notes` has"),
    ("text: body", "text: body\n    text: x", "line 17: `text` is already on line 16. Keep one."),
    ("datasets:", "dataset:", "line 1, dataset: Unknown field `dataset`. Did you mean `datasets`?"),
    ("  - name: mine", "\t- name: mine", "line 21: this is not YAML (found character '\\t'"),
]


@pytest.mark.invariant("An error in a datasets file names file, line and field before anything runs.")
@pytest.mark.parametrize("good, bad, said", WRONG)
def test_what_is_wrong_is_told_with_file_line_and_field(folder: Path, good: str, bad: str, said: str) -> None:
    assert_refused(folder, GOOD, good, bad, said)


def test_a_path_that_is_missing_says_what_it_is_relative_to(folder: Path) -> None:
    said = refusal(folder, GOOD.replace("paths: notes", "paths: note"))
    assert said == (
        "my.yaml, line 5, datasets[0].paths[0]: `note` does not exist. "
        f"Paths are relative to the folder of this file, {folder}."
    )


def test_a_path_in_the_home_folder_is_shown_expanded(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(folder))
    text = GOOD.replace("paths: notes", "paths: ~/docs")
    assert refusal(folder, text) == (
        "my.yaml, line 5, datasets[0].paths[0]: `~/docs` does not exist. "
        f"`~` is a home folder: the path is {folder}/docs. Correct it."
    )
    (folder / "docs").mkdir()
    assert declared(folder, text).paths["notes"] == (place_of(folder / "docs"),)


def test_everything_that_is_wrong_is_told_at_once(folder: Path) -> None:
    said = refusal(folder, GOOD.replace("include:", "inclde:").replace("mine: 6", "mine: x"))
    assert [line.split(":")[0] for line in said.splitlines()] == [
        "my.yaml, line 6, datasets[0].inclde",
        "my.yaml, line 32, blend.weights.mine",
    ]


def test_a_rule_that_is_wrong_is_told_of_its_dataset_and_not_of_each_variant(folder: Path) -> None:
    said = refusal(folder, GOOD.replace("stop_words: 1}", "stop_wards: 1}"))
    assert said.splitlines()[0].startswith(
        "my.yaml, line 7, datasets[0].limits: `stop_wards` is not among the chosen rules"
    )
    assert "variants.same" not in said


MERGED = "a0: &a0 {x: 1}\n" + "".join(
    f"a{n}: &a{n} {{<<: [{', '.join([f'*a{n - 1}'] * 8)}]}}\n" for n in range(1, 20)
)


NO_DATASETS = [
    ("", "my.yaml, line 1: Expected fields with values, found nothing"),
    ("- {name: a}", "my.yaml, line 1: The file is a list. Begin it with `datasets:`, and put the list below"),
    ("datasets:", "my.yaml, line 1, datasets: nothing does not fit. It should be a valid list."),
    ("datasets: [1]", "my.yaml, line 1, datasets[0]: Expected fields with values, found `1`"),
    ("x: [", "my.yaml, line 1: this is not YAML"),
    ("? [a]\n: 1", "my.yaml, line 1: a list or mapping cannot be a name."),
    ("a: {b: 1,\n b: 2}", "my.yaml, line 2: `b` is already on line 1. Keep one."),
    (
        "b: 1\na: 2024-02-31",
        "my.yaml, line 2, a: `2024-02-31` cannot be read (day is out of range for month). Correct or",
    ),
    ("a: \x01", "my.yaml is not YAML (unacceptable character #x0001"),
    ("a: &x [*x]", "my.yaml, line 1, a: Unknown field `a`."),
    ("a: " + "[" * 5000, "my.yaml is nested too deeply."),
    (MERGED, "my.yaml holds more than 100,000 values, counting repeats by aliases"),
]


@pytest.mark.parametrize("text, said", NO_DATASETS)
def test_what_is_no_file_of_datasets_is_one_sentence(folder: Path, text: str, said: str) -> None:
    assert refusal(folder, text).startswith(said)


def test_a_file_that_cannot_be_read_is_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="No such file or directory"):
        corpus(tmp_path / "none.yaml")
    (tmp_path / "latin.yaml").write_bytes("a: é".encode("latin-1"))
    with pytest.raises(ConfigurationError, match="is not UTF-8"):
        corpus(tmp_path / "latin.yaml")
