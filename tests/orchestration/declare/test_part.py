"""A stage that registers a part has options in a datasets file, and no file of the product changes for it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from factory.orchestration.datasets.guess import guess
from factory.orchestration.datasets.template import template
from factory.orchestration.table.table_asset import declaration_of
from tests.brevity import registered
from tests.orchestration.declared import declared, refusal
from tests.orchestration.runs import reads

NOTES = """\
datasets:
  - name: notes
    kind: prose
    format: files
    paths: notes
    brevity: {least: 200}
    variants:
      long: {brevity: {least: 400}}
      same: {limits: {word_count: [9, 100]}}
      nearer: {threshold: 0.9}
groups:
  prose: {sweep: [0.7]}
"""


@pytest.fixture(autouse=True)
def stage() -> Iterator[None]:
    with registered():
        yield


def least(folder: Path, table: str) -> str:
    """The option that the asset of a table is declared with."""
    declarations = map(declaration_of, declared(folder, NOTES).assets)
    (values,) = [declaration.values for declaration in declarations if str(declaration.table) == table]
    return values["least"]


def test_a_dataset_and_its_variants_have_the_options_of_a_stage(folder: Path) -> None:
    tables = reads(declared(folder, NOTES).assets)
    assert tables["brevity.notes"] == {"raw.notes", "filtered.notes"}
    assert tables["brevity.notes__long"] == {"raw.notes", "filtered.notes__long"}
    assert {"raw.notes", "brevity.notes"} <= tables["dedup.prose_bags"]
    assert {"raw.notes", "brevity.notes__long"} <= tables["dedup.prose__long_bags"]
    assert "brevity.notes__nearer" not in tables  # it only decides in another way


@pytest.mark.parametrize("table, number", [("notes", 200), ("notes__long", 400), ("notes__same", 200)])
def test_a_variant_has_its_own_options_or_those_of_its_dataset(folder: Path, table: str, number: int) -> None:
    assert least(folder, f"brevity.{table}") == str(number)


@pytest.mark.parametrize(
    "written, sentence",
    [
        ("{least: 0}", "my.yaml, line 6, datasets[0].brevity.least: `0` does not fit. It should be greater"),
        (
            "{lest: 3}",
            "line 6, datasets[0].brevity.lest: Unknown field `lest`. Did you mean `least`?",
        ),
        ("3", "my.yaml, line 6, datasets[0].brevity: Expected fields with values, found `3`."),
    ],
)
def test_a_mistake_in_an_option_has_file_line_and_field(folder: Path, written: str, sentence: str) -> None:
    assert sentence in refusal(folder, NOTES.replace("{least: 200}", written))


def test_a_variant_that_only_decides_has_no_options_of_earlier_stages(folder: Path) -> None:
    nearer = NOTES.replace("{threshold: 0.9}", "{threshold: 0.9, brevity: {least: 3}}")
    error = refusal(folder, nearer)
    assert error.startswith("my.yaml, line 10, datasets[0].variants.nearer.brevity: `notes__nearer` takes")


def test_an_unknown_field_is_compared_with_those_of_the_stage(folder: Path) -> None:
    assert "Did you mean `brevity`?" in refusal(folder, NOTES.replace("    brevity:", "    brevty:"))


def test_the_file_that_init_writes_has_the_comment_of_the_stage(folder: Path) -> None:
    (folder / "notes" / "a.md").write_text("A note of several words.")
    assert "    # brevity: {least: 200} # drop short documents of prose\n" in template(
        guess(folder), "my.yaml"
    )
