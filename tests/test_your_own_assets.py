"""The page on assets of one's own: its blocks are one file, and its commands print what it shows."""

from __future__ import annotations

import os
import sqlite3
import subprocess
from contextlib import closing
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from factory.lake.names import TableName
from factory.lake.tables import Lake
from factory.settings import Settings
from tests.pages import commands, fenced, is_shown

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "your-own-assets.md"


def write_inputs(folder: Path) -> None:
    """Articles in two languages, one without a title; a library of 30 books, two of them without a text."""
    (folder / "articles").mkdir()
    for language, titles in {"de": ["Eins", None], "en": ["One", "Two"]}.items():
        table = pa.table({"title": pa.array(titles, pa.string()), "words": pa.array([3, 4], pa.int32())})
        pq.write_table(table, folder / "articles" / f"{language}.parquet")
    sentence = "It was the best of number {}, it was the worst of them all, and we had to count to it. "
    rows = [(n, f"Book {n}", sentence.format(n) * 20 if n < 28 else "") for n in range(30)]
    with closing(sqlite3.connect(folder / "library.db")) as database:
        database.execute("CREATE TABLE books (id INTEGER, title TEXT, body TEXT)")
        database.executemany("INSERT INTO books VALUES (?, ?, ?)", rows)
        database.commit()


def test_the_blocks_are_one_file_that_declares_every_table(tmp_path: Path) -> None:
    from factory.orchestration.datasets.assets import corpus

    (tmp_path / "my_tables.py").write_text("\n".join(fenced(PAGE, "python")))
    tables = {
        key.to_user_string() for asset in corpus(tmp_path / "my_tables.py").assets for key in asset.keys
    }
    assert {"own.example_asset", "own.books", "own.lengths", "raw.library_texts"} <= tables
    assert "packed.library_texts" in tables


@pytest.mark.slow
@pytest.mark.process
@pytest.mark.long
@pytest.mark.timeout(900)
def test_every_command_of_the_page_prints_what_it_shows(tmp_path: Path) -> None:
    write_inputs(tmp_path)
    environment = os.environ | {
        "FACTORY_CACHE": str(Settings().cache),
        "FACTORY_SPARK_MASTER": "local[2]",
        "FACTORY_SPARK_DRIVER_MEMORY": "2g",
        "FACTORY_SPARK_SHUFFLE_PARTITIONS": "1",
        "PYTHONPATH": str(ROOT),
        "COLUMNS": "160",
    }
    for name in ("FACTORY_HOME", "FACTORY_DATASETS", "FACTORY_WAREHOUSE"):
        environment.pop(name, None)
    parts = PAGE.read_text().split("\n## ")
    code = ""
    for number, part in enumerate(parts):
        section = tmp_path / f"section{number}.md"
        section.write_text(part)
        code += "\n".join(fenced(section, "python"))
        (tmp_path / "my_tables.py").write_text(code)
        for step in commands(section):
            if step.text.startswith("factory ui") or not step.shown:
                continue
            done = subprocess.run(
                ["bash", "-c", step.text],
                cwd=tmp_path,
                env=environment,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                timeout=600,
                check=False,
            )
            assert done.returncode == 0, f"{step.text}: {done.stdout}"
            assert is_shown(step.shown, done.stdout), f"{step.text} printed\n{done.stdout}"
    lake = Lake(Settings(home=tmp_path / ".factory"))
    assert lake.read(TableName("own", "lengths"))["letters"].null_count == 0
    reasons = lake.read(TableName("raw", "library_texts_rejected"))["reason"].to_pylist()
    assert reasons == ["empty", "empty"]
