"""The asset key of a table, and back."""

from __future__ import annotations

import dagster as dg
import pytest

from factory.errors import ConfigurationError
from factory.lake.names import TableName
from factory.orchestration.keys import key_of, table_of

WEB = TableName("raw", "web")


def test_a_key_is_the_full_name_in_one_part() -> None:
    assert key_of(WEB) == dg.AssetKey("raw.web")
    assert table_of(key_of(WEB)) == WEB


def test_a_key_of_two_parts_is_the_same_table() -> None:
    assert table_of(dg.AssetKey(["raw", "web"])) == WEB


def test_a_key_that_names_no_table_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="`blend` is not a table"):
        table_of(dg.AssetKey("blend"))
