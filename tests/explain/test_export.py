"""An export accounts for every document once, with text, key and the decision on it."""

from __future__ import annotations

import gzip
import json
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner, Result

from factory.cli import export as command
from factory.cli import main
from factory.errors import DamagedFile
from factory.explain.outcomes import Outcome, Outcomes
from factory.lake import names
from factory.lake.schemas.dedup import DECISIONS, DEDUPLICATED
from factory.lake.schemas.ingest import RAW
from factory.lake.tables import Lake
from factory.settings import Settings
from tests.explain.lakes import document, documents, publish, verdicts

KEPT = ("a", "d")
RAW_WEB, RAW_BOOKS = names.raw("web"), names.raw("books")


def deduplicate(lake: Lake) -> None:
    """Decide on the documents a to f of `web`, in one group with `books`, and publish the kept ones."""

    def decision(
        doc_id: str, reason: str, of: str | None = None, similarity: float | None = None, stays: str = ""
    ) -> Any:
        return {
            "doc_id": doc_id,
            "dataset": "books" if doc_id == "m" else "web",
            "kept": of is None,
            "reason": reason,
            "duplicate_of": of,
            "similarity": similarity,
            "kept_document": stays or of,
        }

    rows = [
        decision("a", "kept"),
        decision("b", "similar", "a", 0.9),
        decision("c", "exact_copy", "b", 1.0, stays="a"),
        decision("d", "no_tokens"),
        decision("e", "similar", "m", 0.85),
        decision("m", "kept"),
    ]
    upstream = (RAW_WEB, RAW_BOOKS, names.filtered("web"), names.filtered("books"))
    publish(lake, names.dedup("prose", "decisions"), DECISIONS, rows, *upstream)
    about = {"created_at": datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC), "metadata": {"snow": "雪"}}
    kept = [document(letter) | about for letter in KEPT]
    publish(lake, names.deduplicated("web"), DEDUPLICATED, kept, RAW_WEB, names.dedup("prose", "decisions"))


@pytest.fixture
def lake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Lake:
    """A lake in which `web` keeps a and d of six documents."""
    lake = Lake(Settings(home=tmp_path / "lake"))
    monkeypatch.setattr(command, "settings", lambda: lake.settings)
    documents(lake, "web", "abcdef")
    documents(lake, "books", "m")
    verdicts(lake, "web", {"f": {"word_count": 1.0}})
    verdicts(lake, "books", {}, "m")
    deduplicate(lake)
    return lake


def export(*arguments: object) -> Result:
    return CliRunner().invoke(main.app, ["export", *map(str, arguments)])


def test_kept_documents_come_with_text_key_and_reason(lake: Lake, tmp_path: Path) -> None:
    said = export("web", tmp_path / "kept.parquet").stdout
    assert "2 kept documents of web (kept 1, no_tokens 1)" in said
    rows = {row["doc_id"]: row for row in pq.read_table(tmp_path / "kept.parquet").to_pylist()}
    assert sorted(rows) == ["a", "d"]
    assert [rows[doc_id]["text"] for doc_id in "ad"] == ["a", "d"]
    assert [rows[doc_id]["key"] for doc_id in "ad"] == ["page a", "page d"]
    assert [rows[doc_id]["reason"] for doc_id in "ad"] == ["kept", "no_tokens"]
    assert dict(rows["a"]["metadata"]) == {"snow": "雪"}


def test_every_document_is_listed_with_its_reason(lake: Lake, tmp_path: Path) -> None:
    file = tmp_path / "all.jsonl"
    said = export("web", file, "--all", "--no-text").stdout
    assert "2 kept and 4 removed documents of web" in said
    rows = {row["doc_id"]: row for row in map(json.loads, file.read_text().splitlines())}
    assert sorted(rows) == list("abcdef")
    assert {row: (rows[row]["kept"], rows[row]["reason"]) for row in rows} == {
        "a": (True, "kept"),
        "b": (False, "similar"),
        "c": (False, "exact_copy"),
        "d": (True, "no_tokens"),
        "e": (False, "similar"),
        "f": (False, "filtered"),
    }
    partners = {doc_id: (row["duplicate_of"], row["duplicate_of_key"]) for doc_id, row in rows.items()}
    assert partners["c"] == ("b", "page b")
    assert partners["e"] == ("m", "page m")  # of another dataset of its group
    assert partners["a"] == partners["f"] == (None, None)
    assert [rows[doc_id]["similarity"] for doc_id in "abc"] == [None, 0.9, 1.0]
    stay = {doc_id: (row["kept_document"], row["kept_document_key"]) for doc_id, row in rows.items()}
    assert stay["b"] == stay["c"] == ("a", "page a")
    assert stay["e"] == partners["e"]
    assert stay["a"] == (None, None)
    assert rows["f"]["rejections"] == [{"rule": "word_count", "value": 1.0, "threshold": 9.0}]
    assert all("text" not in row for row in rows.values())


def test_a_compressed_file_has_the_same_lines_with_text(lake: Lake, tmp_path: Path) -> None:
    plain, packed = tmp_path / "kept.jsonl", tmp_path / "kept.jsonl.gz"
    assert (export("web", plain).exit_code, export("web", packed).exit_code) == (0, 0)
    lines = plain.read_text()
    assert gzip.decompress(packed.read_bytes()).decode() == lines
    (first,) = [row for row in map(json.loads, lines.splitlines()) if row["doc_id"] == "a"]
    assert (first["text"], first["metadata"], first["created_at"]) == (
        "a",
        {"snow": "雪"},
        "2026-01-02T03:04:05+00:00",
    )
    assert "雪" in lines


def test_an_export_shows_the_snapshots_of_the_decisions(lake: Lake, tmp_path: Path) -> None:
    documents(lake, "web", "abcdefgh")  # two arrive after the decisions
    verdicts(lake, "web", {"a": {"word_count": 1.0}}, "abcdefgh")
    export("web", tmp_path / "all.jsonl", "--all")
    rows = list(map(json.loads, (tmp_path / "all.jsonl").read_text().splitlines()))
    assert sorted(row["doc_id"] for row in rows) == list("abcdef")
    assert sorted(row["doc_id"] for row in rows if row["kept"]) == list(KEPT)


def test_a_document_without_a_decision_is_not_called_kept(lake: Lake, tmp_path: Path) -> None:
    documents(lake, "web", "abcdefg")
    kept = [document(letter) for letter in KEPT]
    publish(lake, names.deduplicated("web"), DEDUPLICATED, kept, RAW_WEB, names.dedup("prose", "decisions"))
    export("web", tmp_path / "all.jsonl", "--all")
    rows = {row["doc_id"]: row for row in map(json.loads, (tmp_path / "all.jsonl").read_text().splitlines())}
    assert (rows["g"]["kept"], rows["g"]["reason"]) == (False, "undecided")


def test_the_scratch_of_a_killed_export_has_no_name(tmp_path: Path) -> None:
    outcomes = Outcomes(tmp_path, Outcome(kept=False, reason="absent"))
    outcomes.add([("a", True, "kept", None, None, None, None)])
    outcomes.index()
    assert list(tmp_path.iterdir()) == []
    assert [outcome.reason for outcome in outcomes.look_up(["b", "a"])] == ["absent", "kept"]
    outcomes.close()


def test_an_export_deletes_the_leftovers_of_a_killed_one(lake: Lake, tmp_path: Path) -> None:
    folder = tmp_path / "out"
    folder.mkdir()
    write = (
        "import os, sys; from pathlib import Path; from factory.atomic_file import replacing\n"
        "with replacing(Path(sys.argv[1])) as temporary: temporary.touch(); os._exit(9)"
    )
    subprocess.run([sys.executable, "-c", write, folder / "older.jsonl"], check=False)
    assert len(list(folder.iterdir())) == 1
    assert export("web", folder / "kept.jsonl").exit_code == 0
    assert [path.name for path in folder.iterdir()] == ["kept.jsonl"]


def test_a_failed_export_leaves_the_older_file_and_nothing_else(lake: Lake, tmp_path: Path) -> None:
    folder = tmp_path / "out"
    folder.mkdir()
    (folder / "kept.parquet").write_text("older")
    data = next((lake.settings.files.warehouse / "deduplicated" / "web" / "data").glob("*.parquet"))
    data.write_bytes(data.read_bytes()[:-20])
    failed = export("web", folder / "kept.parquet")
    assert failed.exit_code == DamagedFile.exit_code
    assert data.name in failed.stderr
    assert [path.name for path in folder.iterdir()] == ["kept.parquet"]
    assert (folder / "kept.parquet").read_text() == "older"


@pytest.mark.parametrize(
    "arguments, code, words",
    [
        (("web", "kept.csv"), 2, "names no format. End it in .parquet"),
        (("web", "kept.json.gz"), 2, "names no format"),
        (("web", "no/kept.parquet"), 2, "does not exist. Create it"),
        (("webb", "kept.parquet"), 5, "Unknown deduplicated dataset `webb`. Did you mean `web`?"),
        (("Web", "kept.parquet"), 2, "is not a dataset name"),
    ],
)
def test_an_impossible_export_is_refused_in_one_sentence(
    lake: Lake, tmp_path: Path, arguments: tuple[str, str], code: int, words: str
) -> None:
    refused = export(arguments[0], tmp_path / arguments[1])
    assert (refused.exit_code, refused.stdout) == (code, "")
    assert words in refused.stderr


def test_an_empty_dataset_gives_a_file_with_columns(lake: Lake, tmp_path: Path) -> None:
    publish(lake, names.deduplicated("web"), DEDUPLICATED, [], RAW_WEB, names.dedup("prose", "decisions"))
    assert "0 kept documents" in export("web", tmp_path / "kept.parquet").stdout
    written = pq.read_table(tmp_path / "kept.parquet")
    assert written.num_rows == 0
    assert set(RAW.names) - {"content", "partition"} <= set(written.column_names)
