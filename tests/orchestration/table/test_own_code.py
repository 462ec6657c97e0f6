"""The code version of a function in a user's file covers the code of the file that it names, and no other."""

from __future__ import annotations

from pathlib import Path

import pytest

from factory.orchestration.datasets.python_file import python_corpus
from factory.orchestration.table.table_asset import declaration_of

FILE = """\
from factory.api import table_asset

LIMIT = 5
OTHER = 1

def longer(text):
    return len(text) > least()

def least():
    return LIMIT  # letters

@table_asset()
def words(pyspark):
    return pyspark.spark_session.range(1).filter(longer)
"""


CHANGES = """\
from random import Random

from factory.api import table_asset

WORDS = {}
WORDS["a"] = 1
N = 1
N += 2
LAST = [N]
LAST = [*LAST, 4]
LAST.append(5)
Random(0).shuffle(LAST)
OTHER = {}
OTHER["b"] = 6
try:
    import fast as speed
except ImportError:
    speed = 7
if N:
    def step():
        return 8
for n in range(9):
    WORDS[n] = n

@table_asset()
def words(pyspark):
    return pyspark.spark_session.range(LAST[0] + WORDS["a"] + speed + step())
"""


def version(folder: Path, text: str) -> str:
    path = folder / f"tables{len(list(folder.iterdir()))}.py"
    path.write_text(text)
    [asset] = python_corpus(path).assets
    return declaration_of(asset).code_version


@pytest.mark.parametrize(
    "before, after, is_other",
    [
        ("LIMIT = 5", "LIMIT = 6", True),
        ("return LIMIT", "return LIMIT + 1", True),
        ("range(1)", "range(2)", True),
        ("OTHER = 1", "OTHER = 2", False),
        ("# letters", "# characters", False),
        ("def longer(text):\n", "def longer(text):\n\n", False),
    ],
)
def test_a_change_counts_if_the_function_needs_it(
    tmp_path: Path, before: str, after: str, is_other: bool
) -> None:
    assert (version(tmp_path, FILE) != version(tmp_path, FILE.replace(before, after))) is is_other


@pytest.mark.parametrize(
    "before, after, is_other",
    [
        ('WORDS["a"] = 1', 'WORDS["a"] = 10', True),
        ("N = 1", "N = 10", True),
        ("N += 2", "N += 20", True),
        ("LAST = [N]", "LAST = [N, N]", True),
        ("append(5)", "append(50)", True),
        ("Random(0)", "Random(1)", True),
        ('OTHER["b"] = 6', 'OTHER["b"] = 60', False),
        ("speed = 7", "speed = 70", True),
        ("return 8", "return 80", True),
        ("range(9)", "range(90)", True),
    ],
)
def test_every_statement_that_changes_a_needed_name_counts(
    tmp_path: Path, before: str, after: str, is_other: bool
) -> None:
    assert before in CHANGES
    assert (version(tmp_path, CHANGES) != version(tmp_path, CHANGES.replace(before, after))) is is_other
