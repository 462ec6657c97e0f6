"""The graph that Dagster shows of a corpus: groups, descriptions, owners, columns, and the blend."""

from __future__ import annotations

import re
from pathlib import Path

import dagster as dg
import pytest

from factory.orchestration.datasets.assets import corpus
from factory.orchestration.datasets.blend_asset import BLEND, blend_asset
from factory.orchestration.host.definitions import definitions
from factory.settings import Settings
from tests.orchestration.declared import GOOD, assert_refused, declared
from tests.orchestration.large_lake import LARGE, fill

OWNED = GOOD.replace("    license: MIT\n", "    license: MIT\n    owners: [ada@example.org, 'team:code']\n")


@pytest.fixture
def specs(folder: Path) -> dict[str, dg.AssetSpec]:
    """Every asset by its table."""
    found = declared(folder, OWNED)
    return {spec.key.to_user_string(): spec for asset in found.assets for spec in asset.specs}


@pytest.mark.parametrize(
    "table, group",
    [
        ("raw.notes", "notes"),
        ("filtered.notes", "notes"),
        ("deduplicated.notes", "dedup/prose"),
        ("deduplicated.notes__long", "dedup/prose/long"),
        ("tokenized.notes", "packed/notes"),
        ("packed.notes", "packed/notes"),
        ("packed.notes__long", "packed/notes/long"),
        ("raw.notes_rejected", "diagnostics/notes"),
        ("packed.notes_placements", "diagnostics/notes"),
        ("filtered.notes__long", "notes/long"),
        ("depsort.mine_symbols", "packed/mine"),
        ("dedup.code_edges", "dedup/code"),
        ("dedup.prose_sweep", "diagnostics/dedup/prose"),
        ("dedup.prose__long_bags", "dedup/prose/long"),
        ("models.tokenizer", "tokenizers"),
    ],
)
def test_a_dataset_has_a_group_before_its_dedup_group_and_one_behind_it(
    specs: dict[str, dg.AssetSpec], table: str, group: str
) -> None:
    assert specs[table].group_name == group


def test_a_description_names_what_the_table_is_of(specs: dict[str, dg.AssetSpec]) -> None:
    for table, spec in specs.items():
        if spec.group_name != "tokenizers":
            of = next(
                group_name
                for group_name in ("notes", "pages", "mine", "prose", "code")
                if group_name in table
            )
            assert of in str(spec.description), table
    assert "raw.notes" in str(specs["raw.notes_rejected"].description)
    assert "`notes`" in str(specs["models.tokenizer"].description)


def test_every_column_has_a_description(specs: dict[str, dg.AssetSpec]) -> None:
    for table, spec in specs.items():
        columns = spec.metadata["dagster/column_schema"].columns
        assert [column.name for column in columns if not column.description] == [], table
    signals = specs["signals.notes"].metadata["dagster/column_schema"].columns
    (words,) = [signal.description for signal in signals if signal.name == "word_count"]
    assert words == "Words with at least one letter or number. Unit: words."


def test_the_description_of_a_check_is_a_sentence_without_sql(folder: Path) -> None:
    code = re.compile(r"[<>=]=|!=|\b(AND|NOT|NULL|CASE)\b|\(")
    descriptions = {
        check.name: str(check.description)
        for asset in corpus(fill(folder, LARGE)).assets
        for check in asset.check_specs
    }
    assert len(descriptions) > 30
    wrong = {
        name: text
        for name, text in descriptions.items()
        if code.search(text) or not text[0].isupper() or not text.endswith(".") or " " not in text
    }
    assert wrong == {}


def test_owners_own_the_tables_of_their_dataset_and_group(specs: dict[str, dg.AssetSpec]) -> None:
    owned = {table for table, spec in specs.items() if spec.owners}
    assert owned == {table for table in specs if ".mine" in table or ".code_" in table}
    assert list(specs["packed.mine_placements"].owners) == ["ada@example.org", "team:code"]


def test_an_owner_is_an_address_or_a_team(folder: Path) -> None:
    sentence = "line 26, datasets[2].owners: `ada` is not an owner. Write a mail address"
    assert_refused(folder, OWNED, "ada@example.org", "ada", sentence)


def test_the_blend_is_downstream_of_its_tables_and_no_run_makes_it(folder: Path) -> None:
    found = declared(folder, GOOD)
    location = definitions(found.assets, Settings(home=folder / "lake"), external=[blend_asset(found)])
    graph = location.resolve_asset_graph()
    parents = {key.to_user_string() for key in graph.get(BLEND).parent_keys}
    assert parents == {"packed.mine", "packed.notes", "packed.notes__long"}
    assert "6 of `packed.mine`" in str(graph.get(BLEND).description)
    assert BLEND not in graph.executable_asset_keys
