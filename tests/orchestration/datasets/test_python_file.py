"""The corpus of a Python file: its assets with their datasets, and a sentence for a file that is wrong."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

from factory.cli.main import app
from factory.errors import ConfigurationError
from factory.orchestration.datasets.assets import corpus

HEAD = "from factory.api import *\nfrom factory.api import table_asset\n"
TABLE = "@table_asset()\ndef books(pyspark):\n    return pyspark.spark_session.range(1)\n"
DATASET = """\
@source()
def web(own_books):
    return own_books
GROUP = dedup_group("web", ["web"], kind="prose")
WEB = refine("web", dedup_group=GROUP, rounds=[Round(rules=["word_count"])], tokenizer="small")
ASSETS = [books, web, *GROUP.assets, *WEB, tokenizer("small", ["web"])]
"""


def test_a_file_is_a_corpus_of_its_assets(tmp_path: Path) -> None:
    path = tmp_path / "my_tables.py"
    path.write_text(HEAD + TABLE)
    assert [asset.key.to_user_string() for asset in corpus(path).assets] == ["own.books"]
    path.write_text(HEAD + TABLE + DATASET)
    whole = corpus(path)
    assert (whole.datasets, whole.groups, dict(whole.weights)) == (("web",), ("web",), {"web": 1})


@pytest.mark.parametrize(
    "text, sentence",
    [
        ("", "my_tables.py declares no asset. Decorate a function"),
        ("x = ", "my_tables.py fails with SyntaxError"),
        ("1 / 0", "my_tables.py fails with ZeroDivisionError: division by zero. Correct it."),
        ("@table_asset(name='A')\ndef books(): ...\n", "my_tables.py: `A` is not a table name"),
        (
            TABLE + "ASSETS = [books, dedup_group('w', ['w'], kind='prose')]",
            "holds DedupGroup, which is no asset",
        ),
        (
            TABLE + TABLE.replace("def books", "def others").replace("()", "(name='books')", 1),
            "Two assets write",
        ),
        (TABLE + TABLE.replace("books(pyspark)", "b(own_boks)"), "Did you mean `own.books`?"),
    ],
)
def test_a_wrong_file_is_one_sentence(tmp_path: Path, text: str, sentence: str) -> None:
    path = tmp_path / "my_tables.py"
    path.write_text(HEAD + text)
    with pytest.raises(ConfigurationError) as caught:
        corpus(path)
    assert sentence in str(caught.value)


def test_check_counts_the_tables_of_a_file(tmp_path: Path) -> None:
    path = tmp_path / "my_tables.py"
    path.write_text(HEAD + TABLE)
    done = CliRunner().invoke(app, ["check", str(path)])
    assert "my_tables.py is correct: 0 datasets, 1 table." in done.output
    path.write_text(HEAD)
    assert CliRunner().invoke(app, ["check", str(path)]).exit_code == ConfigurationError.exit_code
