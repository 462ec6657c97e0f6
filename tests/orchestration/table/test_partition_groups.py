"""The calls of an asset's function, one for each partition."""

from __future__ import annotations

from typing import Any

import pytest

from factory.errors import ConfigurationError
from factory.orchestration.table.declaration import PartitionSelection, Tables
from factory.orchestration.table.partition_groups import call
from factory.orchestration.table.table_asset import declaration_of
from tests.orchestration.runs import component_table


def test_scratch_of_a_dead_jvm_does_not_hide_why_a_partition_failed() -> None:
    @component_table(name="parts")
    def parts() -> None: ...

    def release() -> None:
        raise ConnectionRefusedError("no gateway")

    def rows(key: str | None) -> Tables:
        if key == "b":
            raise ConfigurationError("No files of b.")
        frame: Any = None
        return Tables(frame, release=release)

    with pytest.raises(ConfigurationError, match="No files of b"):
        call(rows, PartitionSelection(("a", "b")), declaration_of(parts))
