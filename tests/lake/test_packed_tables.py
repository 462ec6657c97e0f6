"""Sentences about tables that a blend cannot read."""

from __future__ import annotations

import pytest

from factory.lake.names import TableName
from factory.lake.packed_tables import unknown_sentence, unpacked_sentence

NAMES = [
    TableName.parse(name) for name in ("raw.web", "raw.notes", "filtered.notes", "packed.web", "packed.code")
]


@pytest.mark.parametrize(
    "table, remedy",
    [
        ("packed.wbe", "Did you mean `packed.web`?"),
        ("packed.codes", "Did you mean `packed.code`?"),
        ("code", "Did you mean `packed.code`?"),
        ("tokenized.code", "Did you mean `packed.code`?"),
        ("Packed.Web", "Did you mean `packed.web`?"),
        (
            "packed.notes",
            "Dataset `notes` has `raw.notes`, `filtered.notes` and is not packed yet.",
        ),
        ("notes", "Run `factory materialize packed.notes` first."),
        (
            "packed.zzzzzz",
            "Packed tables are `packed.web`, `packed.code`; `factory tables` lists all",
        ),
    ],
)
def test_the_table_that_is_meant_is_named(table: str, remedy: str) -> None:
    sentence = unknown_sentence(table, NAMES)
    assert sentence.startswith(f"The lake has no table `{table}`. ")
    assert remedy in sentence


def test_a_lake_without_packed_tables_says_how_to_make_one() -> None:
    assert unknown_sentence("packed.web", []) == (
        "The lake has no table `packed.web`. It has no packed table at all. Make one: `factory materialize "
        "'packed.*'`."
    )


def test_a_table_of_an_earlier_stage_is_told_from_the_packed_one() -> None:
    assert unpacked_sentence("raw.web", NAMES).endswith("reads packed rows. Blend `packed.web`.")
    assert "Run `factory materialize packed.notes`, then" in unpacked_sentence("raw.notes", NAMES)
