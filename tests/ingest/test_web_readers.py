"""Readers of web archives and pages: captures, tasks, endings, and the extra that they need."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from factory.errors import ConfigurationError
from factory.ingest.readers import Ingests
from tests.ingest.outcomes import outcome, rows
from tests.ingest.web.archives import SENTENCE, Fetch, archive, page, text_record

pytestmark = pytest.mark.spark


def test_of_several_captures_of_an_address_the_latest_is_the_document(
    ingests: Ingests, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def fetch(address: str, day: int) -> Fetch:
        return Fetch(f"http://a.example/{address}", page(day), date=f"2024-03-{day:02d}T00:00:00Z")

    (tmp_path / "a.warc.gz").write_bytes(archive([fetch("x", 2), fetch("y", 1), fetch("x", 3)]))
    (tmp_path / "b.warc.gz").write_bytes(
        archive([Fetch("http://b.example/", page(9), status="404 No"), fetch("x", 1)], offset=9)
    )
    every = ingests.warc(tmp_path)
    headlines = sorted(row["text"][:6] for row in rows(every.documents))
    assert headlines == ["Page 1", "Page 1", "Page 2", "Page 3"]
    latest = ingests.warc(tmp_path, captures="latest")
    assert sorted(row["text"][:6] for row in rows(latest.documents)) == ["Page 1", "Page 3"]
    reasons = [(row["reason"], row["detail"]) for row in rows(latest.rejected)]
    assert sorted(reason for reason, _ in reasons) == ["http_error", "older_capture", "older_capture"]
    [again] = {detail for reason, detail in reasons if reason == "older_capture"}
    assert again.startswith("The page was captured again: byte ")
    latest.documents.explain()
    plan = capsys.readouterr().out
    assert re.search(r"SortMergeJoin .*\baddress#", plan)
    assert not re.search(r"BroadcastHashJoin .*\baddress#", plan)
    assert {row["file"] for row in rows(latest.rejected)} == {"a.warc.gz", "b.warc.gz"}
    assert latest.count_files() == (2, 0)


def test_captures_without_an_address_or_a_time_stay(ingests: Ingests, tmp_path: Path) -> None:
    def fetch(number: int, date: str) -> Fetch:
        return Fetch("http://a.example/", page(number), date=date)

    texts = [Fetch("", SENTENCE.encode(), kind="conversion", headers={"Content-Type": "text/plain"})] * 2
    content = archive([fetch(1, "2024-03-01T00:00:00Z"), *texts, fetch(2, "2024-03-01T00:00:00Z")])
    (tmp_path / "a.warc.gz").write_bytes(content)
    latest = ingests.warc(tmp_path, captures="latest")
    assert sorted(row["text"][:6] for row in rows(latest.documents)) == ["Page 2", "The ri", "The ri"]


def test_a_web_archive_gives_the_same_rows_on_any_number_of_tasks(
    ingests: Ingests, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(9):
        content = archive([Fetch(f"http://a.example/{at}", page(at)) for at in range(7)], offset=7 * number)
        (tmp_path / f"{number}.warc.gz").write_bytes(content[: len(content) - 40 * number])
    runs = [rows(ingests.warc(tmp_path).documents)]
    monkeypatch.setattr("factory.ingest.tasks.TASKS_PER_CORE", 1)
    runs.append(rows(ingests.warc(tmp_path).documents))
    assert runs[0] == runs[1]
    assert len(runs[0]) == 9 * 7 - 8


def test_a_large_web_archive_is_read_in_parts_with_the_rows_of_the_whole(
    spark: SparkSession, tmp_path: Path
) -> None:
    inner = archive([Fetch(f"http://inner.example/{n}", page(n)) for n in range(90)], gzip=False)
    fetches = [Fetch(f"http://a.example/{n}", page(n)) for n in range(40)]
    fetches.insert(20, Fetch("http://a.example/warc", inner, headers={"Content-Type": "application/warc"}))
    (tmp_path / "a.warc").write_bytes(archive(fetches, gzip=False))
    whole, in_parts = Ingests(spark), Ingests(spark, part_bytes=40_000)
    try:
        whole_file, large_file = (readers.warc(tmp_path) for readers in (whole, in_parts))
        assert large_file.again is not None
        assert large_file.again.where("doc_id IS NULL").count()  # parts that began in the inner archive
        assert rows(large_file.documents) == rows(whole_file.documents)
        assert rows(large_file.rejected) == rows(whole_file.rejected)
        assert len(rows(large_file.documents)) == 40
        # Texts in a record, which parts take for records at first: bad ones in a response that loses
        # nothing, and good ones in a record that is no document.
        bad_texts, texts = (
            b"".join(text_record(text, f"{n}") for n in range(900)) for text in (b"\0", b"text")
        )
        response = Fetch("http://a.example/", bad_texts * 2, status="404 No")
        contents = {"missing": archive([response], gzip=False), "bad": text_record(b"\xff" + texts * 2, "a")}
        for name, content in contents.items():
            (tmp_path / name).mkdir()
            (tmp_path / name / "a.warc").write_bytes(content)
            counts = [readers.warc(tmp_path / name).count_files() for readers in (whole, in_parts)]
            assert counts == [(1, int(name == "bad"))] * 2
    finally:
        whole.release()
        in_parts.release()


def test_html_files_are_read_by_their_endings(ingests: Ingests, tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "a.html").write_bytes(page(1))
    (tmp_path / "b.htm").write_bytes(b"<html><body></body></html>")
    (tmp_path / "c.txt").write_text("text")
    outcomes = outcome(ingests.html(tmp_path, repository="site"))
    assert outcomes["b.htm"] == "no_main_text at byte 0"
    assert outcomes["sub/a.html"].startswith("Page 1\n")
    assert len(outcomes) == 2


def test_pages_need_an_extra_and_its_name_is_told(
    ingests: Ingests, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        "factory.ingest.html_extra.find_spec", lambda name: None if name == "brotli" else name
    )
    with pytest.raises(
        ConfigurationError, match=r"needs brotli\. Install it: pip install 'corpus-factory\[html\]'"
    ):
        ingests.warc(tmp_path)
