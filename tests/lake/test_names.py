"""Names of tables: how they are formed, parsed and refused."""

from __future__ import annotations

import pytest

from factory.errors import ConfigurationError
from factory.lake import names
from factory.lake.lineage import Lineage
from factory.lake.names import TableName


def test_an_argument_names_its_table() -> None:
    assert TableName.from_argument("raw_python_code") == TableName("raw", "python_code")


@pytest.mark.parametrize("text", ["web", "packed", "row.web", "raw.Web", "raw.", "raw.web-strict"])
def test_an_invalid_name_is_refused(text: str) -> None:
    with pytest.raises(ConfigurationError):
        TableName.parse(text)


def test_every_name_parses_back() -> None:
    dedup = names.dedup("code", "edges")
    for name in (names.raw("web"), names.rejected("web"), dedup, names.placements("web")):
        assert TableName.parse(str(name)) == name


def test_a_variant_shares_its_raw_tables_and_no_other() -> None:
    strict = names.variant("web", "strict")
    assert strict == "web__strict"
    assert names.raw(strict) == names.raw("web") == names.raw(names.in_round(strict, 1, 3))
    assert names.rejected(strict) == names.rejected("web")
    assert names.packed(strict) == TableName("packed", "web__strict")


def test_the_last_round_has_the_plain_name() -> None:
    assert [names.in_round("web", number, 3) for number in (1, 2, 3)] == ["web_r1", "web_r2", "web"]
    assert names.in_round("web", 1, 1) == "web"


def test_the_variants_of_a_dataset_are_listed_without_rounds() -> None:
    tables = [names.filtered(of) for of in ("web", "web__b", "web__a", "web__a_r1", "web_r1", "webs__c")]
    others = [names.packed("web__d"), names.deduplicated("web__c"), names.deduplicated("web__b")]
    assert names.variants([*tables, *others], "web") == ["web__a", "web__b", "web__c"]


@pytest.mark.parametrize(
    "name", ["web", "web2", "my_web", "web__strict", "web_rare", "rejected", "web__very_strict"]
)
def test_a_valid_name_of_a_dataset_is_returned(name: str) -> None:
    assert names.dataset(name) == name


@pytest.mark.parametrize(
    "name", ["", "Web", "web-x", "web_", "web__", "__a", "a__b__c", "web_r1", "web_rejected", "a___b"]
)
def test_a_name_that_another_table_would_have_is_refused(name: str) -> None:
    with pytest.raises(ConfigurationError, match="is not a dataset name"):
        names.dataset(name)


def test_a_stage_follows_from_the_namespace() -> None:
    assert names.depsort("web", "symbols").stage == "depsort"
    assert names.deduplicated("web").stage == "dedup"


def test_lineage_survives_snapshot_properties() -> None:
    lineage = Lineage("packed.web", "run", "v1", "c", "", {"tokenized.web": 7}, "00-1")
    assert Lineage.from_properties(lineage.to_properties()) == lineage
