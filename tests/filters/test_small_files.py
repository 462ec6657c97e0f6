"""Rules of bulk have no value for a repository's small files and package files."""

from __future__ import annotations

import pyarrow as pa
import pytest

from factory.filters.rules.code import RULES
from factory.filters.text import Text
from factory.lake.schemas.filters import signals_table
from spark_udfs.filters.signals import measure
from spark_udfs.filters.small_files import SMALL, small_files

NAMES = [rule.name for rule in RULES]
OF_BULK = [rule.name for rule in RULES if rule.of_bulk]
LICENSE_ONLY = "# Licensed to whom it may concern, under the terms that are named below.\n" * 20


@pytest.mark.parametrize(
    "text,repository,path,small",
    [
        ("", "r", "pkg/a.py", True),
        ("x" * (SMALL - 1), "r", "a.py", True),
        ("é" * (SMALL - 1), "r", "a.py", True),
        ("x" * SMALL, "r", "a.py", False),
        ("x" * SMALL, "r", "pkg/__init__.py", True),
        ("x" * SMALL, "r", "__init__.py", True),
        ("x" * SMALL, "r", "pkg/my__init__.py", False),
        ("x" * SMALL, "r", "pkg/index.ts", True),
        ("x" * SMALL, "r", None, False),
        ("", "r", None, True),
        ("", None, "a.py", False),
        ("", None, None, False),
        (None, "r", "a.py", False),
    ],
)
def test_a_small_file_belongs_to_a_repository(
    text: str | None, repository: str | None, path: str | None, small: bool
) -> None:
    columns = [pa.array([value], pa.string()) for value in (text, repository, path)]
    assert small_files(*columns).to_pylist() == [small]


def test_rules_of_bulk_spare_the_files_that_a_repository_needs() -> None:
    rows = [
        ("alone", LICENSE_ONLY, None, None, "__init__.py"),
        ("init", LICENSE_ONLY, None, "r", "__init__.py"),
        ("empty", "", None, "r", "a.py"),
    ]
    columns = [pa.array(column, pa.string()) for column in zip(*rows, strict=True)]
    batch = pa.RecordBatch.from_arrays(columns, ["doc_id", "text", "partition", "repository", "path"])
    [measured] = measure(iter([batch]), signals_table(NAMES).columns, OF_BULK)
    failing = {
        row["doc_id"]: [rule.name for rule in RULES if rule.limit.violated(row[rule.name]) is not None]
        for row in measured.to_pylist()
    }
    assert failing == {"alone": ["code_duplicate_lines", "code_comments"], "init": [], "empty": []}
    alone, init, _ = measured.to_pylist()
    for rule in RULES:
        assert alone[rule.name] == rule.measure(Text(LICENSE_ONLY))
        assert init[rule.name] == (None if rule.of_bulk else alone[rule.name])


def test_generated_files_and_long_lines_are_rejected_at_any_size() -> None:
    spared = {"code_bytes", "code_longest_line", "code_replacement_chars", "code_generated", "code_xml"}
    assert spared <= set(NAMES) - set(OF_BULK)
