"""Web archives: each record is a document or a rejected record with its offset."""

from __future__ import annotations

import gzip
import pickle
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pytest

from spark_udfs.ingest.html import WebPages, html_file
from spark_udfs.ingest.place import LocalFiles
from spark_udfs.ingest.warc import warc_file
from spark_udfs.ingest.work import WORK, read_work
from tests.ingest.inputs import Rows, read, rejected, texts
from tests.ingest.web.archives import SENTENCE, Fetch, archive, page, pages


def rows(content: bytes, name: str = "a.warc.gz", options: WebPages = WebPages()) -> Rows:  # noqa: B008
    return read(warc_file, name, content, options)


def test_a_page_is_a_document_with_its_id_place_and_facts() -> None:
    content = pages(2, gzip=True)
    first, second = rows(content)
    assert first["key"] == "urn:uuid:00000000-0000-0000-0000-000000000000"
    assert first["text"].startswith("Page 0\n")
    assert first["created_at"] == datetime(2024, 3, 1, 10, tzinfo=UTC)
    facts = dict(first["metadata"])
    assert (facts["url"], facts["host"], facts["title"]) == ("http://a.example/0", "a.example", "Page 0")
    place = dict(second["metadata"])
    begin, length = int(place["warc_offset"]), int(place["warc_length"])
    assert b"Page 1" in gzip.decompress(content[begin : begin + length])
    assert (place["warc_file"], second["location"]) == ("a.warc.gz", f"byte {begin}")


def test_every_opt_out_of_repeated_headers_counts() -> None:
    stated = {"X-Robots-Tag": "noarchive", "x-robots-tag": "otherbot: noai", "TDM-Reservation": "1"}
    (row,) = rows(
        archive([Fetch("http://a.example/", page(1), headers={"Content-Type": "text/html", **stated})])
    )
    facts = dict(row["metadata"])
    assert facts["robots"] == "noarchive, otherbot: noai"
    assert (facts["noai"], facts["tdm_reservation"]) == ("true", "1")


def test_what_is_no_page_is_counted_by_reason() -> None:
    content = archive(
        [
            Fetch("http://a.example/", page(1)),
            Fetch("http://a.example/moved", b"", status="301 Moved", headers={"Location": "/"}),
            Fetch("http://a.example/gone", page(2), status="404 Not Found"),
            Fetch("http://a.example/x.png", b"\x89PNG", headers={"Content-Type": "image/png"}),
            Fetch("http://a.example/r", b"", kind="metadata", headers={"Content-Type": "text/plain"}),
            Fetch("http://a.example/e", b"<html></html>"),
        ],
        requests=True,
    )
    found = rows(content)
    reasons = [row["reason"] for row in rejected(found)]
    assert sorted(reasons) == sorted(
        ["no_page"] * 7 + ["redirect", "http_error", "other_media", "no_main_text"]
    )
    assert len(texts(found)) == 1
    assert len({row["location"] for row in found}) == len(found) == 12


def test_an_answer_of_a_name_server_is_no_loss() -> None:
    answer = b"20240301100000\na.example. 300 IN A 10.0.0.1\n"
    fields = ["WARC/1.0", "WARC-Type: response", "WARC-Target-URI: dns:a.example", "Content-Type: text/dns"]
    head = "\r\n".join([*fields, f"Content-Length: {len(answer)}", "", ""]).encode()
    found = rows(head + answer + b"\r\n\r\n" + pages(1, gzip=False), "a.warc")
    assert [row.get("reason") for row in found] == ["no_page", None]


def test_resources_and_the_texts_of_wet_files_are_documents() -> None:
    html = {"Content-Type": "text/html"}
    wet = {"Content-Type": "text/plain"}
    content = archive(
        [
            Fetch("file:///a.html", page(1), kind="resource", headers=html),
            Fetch(
                "http://a.example/2",
                SENTENCE.encode(),
                kind="conversion",
                headers=wet,
                fields={"WARC-Identified-Content-Language": "eng,deu"},
            ),
        ]
    )
    first, second = rows(content)
    assert first["text"].startswith("Page 1")
    assert second["text"] == SENTENCE
    assert (
        dict(second["metadata"]).items()
        >= {"extractor": "wet", "languages": "eng,deu", "host": "a.example"}.items()
    )


def test_codings_and_charsets_are_undone_on_the_way() -> None:
    text = "<h1>Łódź</h1>" + "<p>Zażółć gęślą jaźń. Łódź leży nad rzeką, a kůň úpěl ódy tam.</p>" * 3
    headers = {"Content-Type": "text/html; charset=iso-8859-2", "Content-Encoding": "gzip"}
    [row] = rows(
        archive([Fetch("http://a.example/", gzip.compress(text.encode("iso8859-2")), headers=headers)])
    )
    assert row["text"].startswith("Łódź")
    assert dict(row["metadata"])["charset_from"] == "header"


@pytest.mark.parametrize("fields, truncated", [({"WARC-Truncated": "length"}, "length"), ({}, "unspecified")])
def test_a_coded_page_that_breaks_off_is_a_document_and_says_so(
    fields: dict[str, str], truncated: str
) -> None:
    text = "".join(f"<p>{SENTENCE} Number {number * 7919 % 10_000}.</p>" for number in range(2_000))
    coded = gzip.compress(f"<html><body><h1>Rivers</h1>{text}".encode())
    headers = {"Content-Type": "text/html", "Content-Encoding": "gzip"}
    fetch = Fetch("http://a.example/", coded[: len(coded) // 2], headers=headers, fields=fields)
    [row] = rows(archive([fetch]))
    assert row["text"].count(SENTENCE) > 500
    assert dict(row["metadata"])["truncated"] == truncated


def test_a_rejected_record_with_an_id_names_its_file(tmp_path: Path) -> None:
    moved = Fetch("http://a.example/", b"", status="301 Moved")
    (tmp_path / "crawl").mkdir()
    (tmp_path / "crawl" / "a.warc.gz").write_bytes(archive([moved, Fetch("http://a.example/", page(1))]))
    work = {**dict.fromkeys(WORK.names), "format": "warc", "source": "web", "names": [b"crawl/a.warc.gz"]}
    batches = read_work(
        [pa.RecordBatch.from_pylist([{**work, "place": pickle.dumps(LocalFiles.at(tmp_path))}], WORK)],
        WebPages(),
    )
    redirect, document = pa.Table.from_batches(batches).to_pylist()
    assert redirect["key"].startswith("urn:uuid:")
    assert (redirect["file"], redirect["location"]) == ("crawl/a.warc.gz", "byte 0")
    assert document["file"] == "crawl/a.warc.gz"


def test_a_cut_page_says_so() -> None:
    [row] = rows(archive([Fetch("http://a.example/", page(1), fields={"WARC-Truncated": "length"})]))
    assert dict(row["metadata"])["truncated"] == "length"


@pytest.mark.parametrize("name, content", [("a.warc", b""), ("a.warc.gz", b"")])
def test_an_empty_file_is_one_rejected_record(name: str, content: bytes) -> None:
    [row] = rows(content, name)
    assert row["reason"] == "empty"


def test_a_page_beyond_the_limit_is_rejected_at_its_place() -> None:
    found = rows(pages(3), options=WebPages(max_bytes=200))
    assert [row["reason"] for row in rejected(found)] == ["too_large"] * 3


def test_an_html_file_is_a_document_of_its_path() -> None:
    [row] = read(html_file, "a.html", page(7), WebPages())
    assert (row["key"], row["path"], row["media_type"]) == ("a.html", "a.html", "text/plain")
    assert row["text"].startswith("Page 7")
    [bad] = read(html_file, "a.html", b"x" * 100, WebPages(max_bytes=10))
    assert bad["reason"] == "too_large"


def test_a_page_without_a_media_type_is_told_by_its_markup() -> None:
    none: dict[str, str] = {}
    identified = {"WARC-Identified-Payload-Type": "image/png"}
    content = archive(
        [
            Fetch("http://a.example/1", b"\n <!-- a page -->" + page(1), headers=none),
            Fetch("http://a.example/2", b"\x89PNG", headers=none),
            Fetch("http://a.example/3", page(3), headers=none, fields=identified),
        ]
    )
    first, second, third = rows(content)
    assert first["text"].startswith("Page 1")
    assert (second["reason"], third["reason"]) == ("no_media_type", "other_media")


def test_long_addresses_are_kept_whole() -> None:
    address = f"http://a.example/?q={'x' * 900}&id=1"
    [row] = rows(archive([Fetch(address, page(1))]))
    assert dict(row["metadata"])["url"] == address
