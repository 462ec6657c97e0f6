"""The page on tables in DuckDB and Polars: its blocks run as they stand, and print what it shows."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from factory.lake.tables import Lake
from factory.settings import Settings
from tests.explain.lakes import documents, verdicts
from tests.pages import FENCE

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "tables.md"
BLOCKS = [body for _, body in FENCE.findall(PAGE.read_text())]
PAIRS = list(zip(BLOCKS[::2], BLOCKS[1::2], strict=True))


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Lake:
    """The lake of the page: six documents, two of which fail a rule or two."""
    lake = Lake(Settings(home=tmp_path_factory.mktemp("lake")))
    documents(lake, "web", "abcdef")
    verdicts(lake, "web", {"a": {"word_count": 1.0}, "b": {"word_count": 3.0, "stop_words": 0.0}})
    return lake


def test_each_library_has_a_block_of_its_own() -> None:
    assert ["import duckdb" in code for code, _ in PAIRS] == [True, False, True]
    assert ["import polars" in code for code, _ in PAIRS] == [False, True, False]


@pytest.mark.parametrize("code, output", PAIRS, ids=["DuckDB", "Polars", "files"])
def test_a_block_prints_what_the_page_shows(lake: Lake, code: str, output: str) -> None:
    environment = os.environ | {"PYTHONPATH": str(ROOT), "FACTORY_HOME": str(lake.settings.home)}
    run = subprocess.run(
        [sys.executable, "-c", code],
        env=environment,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert run.returncode == 0, run.stderr
    assert run.stdout.strip() == output.strip()
