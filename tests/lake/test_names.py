"""The law of table names."""

from __future__ import annotations

import pytest

from factory.errors import ConfigurationError
from factory.lake import names
from factory.lake.lineage import Lineage
from factory.lake.names import TableName


def test_an_argument_names_its_table() -> None:
    assert TableName.from_argument("raw_python_code") == TableName("raw", "python_code")


@pytest.mark.parametrize("text", ["web", "row.web", "raw.Web", "raw.", "raw.web-strict"])
def test_a_name_outside_the_law_is_refused(text: str) -> None:
    with pytest.raises(ConfigurationError):
        TableName.parse(text)


def test_every_name_parses_back() -> None:
    for name in (
        names.raw("web"),
        names.rejected("web"),
        names.dedup("code", "edges"),
        names.placements("web"),
    ):
        assert TableName.parse(str(name)) == name


def test_a_stage_follows_from_the_namespace() -> None:
    assert names.depsort("web", "symbols").stage == "depsort"
    assert names.deduplicated("web").stage == "dedup"


def test_lineage_survives_snapshot_properties() -> None:
    lineage = Lineage("packed.web", "run", "v1", "c", "", {"tokenized.web": 7}, "00-1")
    assert Lineage.from_properties(lineage.to_properties()) == lineage
