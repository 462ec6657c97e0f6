"""A dataset's card gives defaults, and the name of a file its split."""

from __future__ import annotations

from pathlib import Path

import pytest

from factory.errors import ConfigurationError
from factory.ingest.hugging_face import Card, card_of, numbered_split
from spark_udfs.ingest.place import LocalFiles

CARD = """---
license: other
license_name: llama-community
language:
  - en
  - de
pretty_name: " Small Talk "
configs:
- config_name: default
  data_files:
  - split: train
    path: "data/part-*.parquet"
  - split: held_out
    path: ["other/*.parquet", "more/**"]
- config_name: odd
  data_files: "x.parquet"
---
# Read me
license: mit
"""


def test_a_card_has_name_license_language_and_splits(tmp_path: Path) -> None:
    (tmp_path / "README.md").write_text(CARD)
    card = card_of(LocalFiles.at(tmp_path))
    assert card == Card(
        name="Small Talk",
        license="llama-community",
        language=None,  # of two, no document says which is its own
        splits=(("train", "data/part-*.parquet"), ("held_out", "other/*.parquet"), ("held_out", "more/**")),
    )
    assert card.split_of("data/part-7.parquet") == "train"
    assert card.split_of("more/deep/x.parquet") == "held_out"
    assert card.split_of("x.parquet") is None


@pytest.mark.parametrize(
    "path, split",
    [
        ("data/train-00000-of-00012.parquet", "train"),
        ("data/train_sft-00000-of-00001-9f3a61.parquet", "train_sft"),
        ("validation/0000.parquet", "validation"),
        ("x-dev.jsonl", "validation"),
        ("eval.jsonl.gz", "test"),
        ("latest.jsonl", None),
        ("trained.parquet", None),
    ],
)
def test_the_split_of_a_file_follows_from_its_name(path: str, split: str | None) -> None:
    assert Card().split_of(path) == split


def test_without_a_card_only_a_numbered_name_has_a_split() -> None:
    assert numbered_split("a/train-00000-of-00012.parquet") == "train"
    assert numbered_split("a/train.parquet") is None


@pytest.mark.parametrize(
    "text", [None, "# No YAML\n", "---\nA line above a rule.\n", "---\n- a list\n---\n", ""]
)
def test_a_readme_without_a_card_gives_nothing(tmp_path: Path, text: str | None) -> None:
    if text is not None:
        (tmp_path / "README.md").write_text(text)
    assert card_of(LocalFiles.at(tmp_path)) is None


def test_values_of_another_shape_give_nothing(tmp_path: Path) -> None:
    (tmp_path / "README.md").write_text(
        "---\nlicense: [mit, apache-2.0]\nlanguage: {a: b}\nconfigs: {a: b}\n---\n"
    )
    assert card_of(LocalFiles.at(tmp_path)) == Card()


@pytest.mark.parametrize(
    "text, card",
    [
        ("language: no\nlicense: mit", Card(license="mit", language="no")),  # Norwegian
        ("released: 2024-13-45\nlicense: null\nlanguage: ~", Card()),
        ("n: " + "1:" * 100_000 + "1", Card()),  # a number of the base 60 to other readers
    ],
)
def test_values_are_read_as_written(tmp_path: Path, text: str, card: Card) -> None:
    (tmp_path / "README.md").write_text(f"---\n{text}\n---\n")
    assert card_of(LocalFiles.at(tmp_path)) == card


LAUGHS = "\n".join(f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]" for n in range(1, 30))


@pytest.mark.parametrize(
    "text, error",
    [
        (f"a0: &a0 [lol]\n{LAUGHS}", r"has an alias, `\*a0`, in line 3\. Correct"),
        ("a0: &a0 {x: y}\na1: {<<: [*a0, *a0]}", "has an alias"),
        ("a: " + "[" * 200 + "]" * 200, "nests lists and mappings deeper than 100 in line 2"),
        ("a: " + "[" * 50_000, "nests lists and mappings deeper than 100"),
        ("- " * 5_000 + "a", "nests lists and mappings deeper than 100"),
        ("configs: [" + "{data_files: [{split: a, path: [" + "b," * 10_001 + "]}]}]", "10,001 patterns"),
        ("a: " + "b" * (1 << 20), "has more than 1,048,576 bytes between its lines of dashes"),
    ],
    ids=["laughs", "merge", "deep", "deeper", "items", "patterns", "long"],
)
def test_a_card_beyond_bounds_is_refused_at_once(tmp_path: Path, text: str, error: str) -> None:
    (tmp_path / "README.md").write_text(f"---\n{text}\n---\n")
    with pytest.raises(ConfigurationError, match=error):
        card_of(LocalFiles.at(tmp_path))


def test_a_card_that_is_not_yaml_is_refused_with_its_line(tmp_path: Path) -> None:
    (tmp_path / "README.md").write_text("---\nlicense: mit\nlanguage: [en\n---\n")
    with pytest.raises(ConfigurationError, match=r"README\.md, line 4 is not YAML: .*\. Correct the text"):
        card_of(LocalFiles.at(tmp_path))
