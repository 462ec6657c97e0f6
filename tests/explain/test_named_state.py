"""The states of a table that a person may name."""

from __future__ import annotations

from pathlib import Path

import pytest

from factory.errors import NotFound, TableNotFound
from factory.explain.named_state import named_state
from factory.explain.tables import sample
from factory.lake import names
from factory.lake.schemas.ingest import RAW
from factory.lake.tables import Lake
from factory.settings import Settings
from tests.explain.lakes import document, publish


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    return Lake(Settings(home=tmp_path))


def keys(lake: Lake, text: str) -> set[str]:
    return {row["key"] for row in sample(lake, named_state(lake, text), 9, 0)}


def test_a_sample_shows_the_newest_an_earlier_state_or_a_branch(lake: Lake) -> None:
    first = publish(lake, names.raw("web"), RAW, [document("a")])
    publish(lake, names.raw("web"), RAW, [document("b")])
    with lake.table(names.raw("web")).manage_snapshots() as snapshots:
        snapshots.create_branch(snapshot_id=first, branch_name="failed_3f2a")
    assert keys(lake, "raw.web") == {"page b"}
    for text in ("raw.web@before", f"raw.web@{first}", "raw.web.branch_failed_3f2a"):
        assert keys(lake, text) == {"page a"}
    with pytest.raises(TableNotFound, match="has no branch `other`"):
        named_state(lake, "raw.web.branch_other")


def test_a_dataset_may_be_called_as_branches_are(lake: Lake) -> None:
    publish(lake, names.raw("branch_bank"), RAW, [document("a")])
    assert keys(lake, "raw.branch_bank") == {"page a"}


def test_names_of_nothing_are_answered(lake: Lake) -> None:
    publish(lake, names.raw("web"), RAW, [document("a")])
    with pytest.raises(TableNotFound, match="Did you mean `raw"):
        named_state(lake, "raw.webb")
    with pytest.raises(TableNotFound, match=r"materialize '\*raw"):
        named_state(lake, "raw.chats")
    with pytest.raises(NotFound, match="Nothing was published"):
        named_state(lake, "raw.web@before")
    with pytest.raises(TableNotFound, match="`factory clean` dropped them"):
        named_state(lake, "raw.web.branch_failed_1")
