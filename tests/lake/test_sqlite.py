"""Why SQLite withholds a database, by its error code."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from factory.lake.sqlite import withheld


def test_a_full_disk_asks_for_space(tmp_path: Path) -> None:
    file = tmp_path / "catalog.db"
    with sqlite3.connect(file) as connection:
        connection.execute("create table texts (text)")
        connection.execute("PRAGMA max_page_count = 2")
        with pytest.raises(sqlite3.OperationalError) as raised:
            connection.execute("insert into texts values (?)", ["a" * (1 << 20)])
    assert str(withheld(file, raised.value)).startswith(
        f"The database {file} cannot be written (database or disk is full). Free space on its disk"
    )
