"""Each line of a JSONL file lands exactly once: as a document, or rejected with its number."""

from __future__ import annotations

import bz2
import gzip
import io
import json
import lzma
import os
from datetime import UTC, datetime
from itertools import groupby
from pathlib import Path

import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from spark_udfs.ingest import bounds
from spark_udfs.ingest.jsonl import jsonl_file
from spark_udfs.ingest.lines import CHUNK_BYTES, Line, lines
from spark_udfs.ingest.records import Fields
from spark_udfs.ingest.rows import Origin
from tests.ingest import inputs
from tests.ingest.inputs import Rows, source

ORIGIN = Origin("web", metadata={"crawl": "1"})


def read(content: bytes, fields: Fields | None = None, name: str = "part.jsonl") -> Rows:
    return inputs.read(jsonl_file, name, content, fields or Fields(), origin=ORIGIN)


@pytest.mark.parametrize(
    "line, reason",
    [
        (b"{not json", "not_json"),
        (b'{"text": "a"} trailing', "not_json"),
        (b"[" * 100_000, "too_complex"),
        (b"[" * 101 + b"]" * 101, "too_complex"),
        (b'{"text": "a", "about": ' + b"[" * 100 + b"]" * 100 + b"}", "too_complex"),
        (b'{"text": "a", "about": ' + b'{"a":[' * 460 + b"]}" * 460 + b"}", "too_complex"),
        (b'{"text": "a", "about": [' + b"[]," * 1_000_000 + b"[]]}", "too_complex"),
        (b'{"text": "a", "n": ' + b"9" * 5000 + b"}", "not_json"),
        (b'{"a":' * 100_000, "too_complex"),
        (b'"' + b'\\"' * 200_000 + b"," * 1_000_001, "not_json"),
        (b'{"text": "a", "text": "b"}', "repeated_field"),
        (b'{"text": "a", "about": [{"x": 1, "x": 1}]}', "repeated_field"),
        (b'{"text": NaN}', "not_json"),
        (b'{"text": "a", "score": -Infinity}', "not_json"),
        (b'{"text": "a\\u0000b"}', "nul_byte"),
        (b'{"text": "a\0b"}', "not_json"),
        (b'["text"]', "not_an_object"),
        (b"null", "not_an_object"),
        (b"{}", "no_text"),
        (b'{"text": null}', "no_text"),
        (b'{"text": 7}', "text_not_a_string"),
        (b'{"text": ["a"]}', "text_not_a_string"),
        (b'{"text": ""}', "empty"),
        (b"", "empty"),
        (b" \r", "empty"),
        (b'{"text": "\xff"}', "not_utf8"),
        (b'{"text": "\\ud800"}', "not_unicode"),
        (b'{"text": "' + b"a" * 10_000 + b'"}', "too_long"),
    ],
)
def test_a_bad_line_is_rejected_and_its_neighbours_stay(line: bytes, reason: str) -> None:
    content = b'{"text": "before"}\n' + line + b'\n{"text": "after"}\n'
    limit = 10_000 if reason == "too_long" else 4 << 20
    before, bad, after = read(content, Fields(max_bytes=limit))
    assert (before["text"], after["text"]) == ("before", "after")
    assert (bad["reason"], bad["location"], bad["key"]) == (reason, "line 2", "part.jsonl:2")
    assert bad["n_bytes"] == len(line)
    assert bad["sample"] == line[:256]


@pytest.mark.parametrize("depth", [99, 450, 480, 495, 980])
def test_a_nested_value_is_kept_or_rejected_however_deep(depth: int) -> None:
    """Just below Python's limit decoding succeeded, and writing the value as text did not."""
    line = b'{"text": "a", "about": ' + b"[" * depth + b"1" + b"]" * depth + b"}\n"
    [row] = read(line, Fields(metadata=("about",)))
    if depth < 100:
        assert dict(row["metadata"])["about"] == "[" * depth + "1" + "]" * depth
    else:
        assert (row["reason"], row["location"]) == ("too_complex", "line 1")


def test_brackets_and_commas_in_a_text_are_not_counted_as_values() -> None:
    text = '[{,\\"' * 600_000
    [row] = read(json.dumps({"text": text}).encode())
    assert row["text"] == text


def test_a_key_longer_than_any_name_holds_bad_records() -> None:
    content = json.dumps({"text": "a", "id": "k" * 20_000}).encode()
    assert [row["reason"] for row in read(content, Fields(key="id"))] == ["too_long"]


def test_a_last_line_feed_and_a_byte_order_mark_are_optional() -> None:
    found = read(b'\xef\xbb\xbf{"text": "one"}\r\n{"text": "two"}')
    assert [(row["key"], row["text"]) for row in found] == [("part.jsonl:1", "one"), ("part.jsonl:2", "two")]


def test_fields_fill_columns_and_misfits_are_kept_as_metadata() -> None:
    fields = Fields(
        text="body",
        key="id",
        columns={"created_at": "when", "license": "license", "stars": "stars"},
        metadata=("url", "tags", "absent"),
        language="markdown",
    )
    good = {
        "body": "b",
        "id": 7,
        "when": "2024-05-01T12:00:00+02:00",
        "license": "MIT",
        "stars": 3,
        "url": "u\ud800",
        "tags": {"b": 1, "a": "é"},
    }
    odd = {"body": "b", "id": "x", "when": "yesterday", "license": ["MIT"], "stars": 10**30}
    first, second = read(f"{json.dumps(good)}\n{json.dumps(odd)}\n".encode(), fields)
    assert first["key"] == "7"
    assert first["created_at"] == datetime(2024, 5, 1, 10, tzinfo=UTC)
    assert (first["license"], first["stars"], first["language"]) == ("MIT", 3, "markdown")
    assert dict(first["metadata"]) == {"crawl": "1", "url": "u?", "tags": '{"a": "é", "b": 1}'}
    assert second["key"] == "x"
    assert (second.get("created_at"), second["license"], second.get("stars")) == (None, None, None)
    assert dict(second["metadata"]) == {
        "crawl": "1",
        "when": "yesterday",
        "license": '["MIT"]',
        "stars": str(10**30),
    }


@pytest.mark.parametrize("key", ["null", "true", "1.5", '""', '"\\ud800"', "{}"])
def test_a_record_without_its_key_holds_bad_records(key: str) -> None:
    [row] = read(f'{{"text": "a", "id": {key}}}\n'.encode(), Fields(key="id"))
    assert (row["reason"], row["key"]) == ("no_key", "part.jsonl:1")


CONTENT = b"".join(b'{"text": "line %d %s"}\n' % (n, os.urandom(40).hex().encode()) for n in range(1000))
COMPRESSORS = {
    "part.jsonl.gz": gzip.compress,
    "part.jsonl.zst": zstandard.ZstdCompressor().compress,
    "part.ndjson.bz2": bz2.compress,
    "part.json.xz": lzma.compress,
}


@pytest.mark.parametrize("name", COMPRESSORS)
def test_a_compressed_file_reads_as_a_plain_one(name: str) -> None:
    half = CONTENT.index(b"\n", len(CONTENT) // 2)
    members = COMPRESSORS[name](CONTENT[:half]) + COMPRESSORS[name](CONTENT[half:])  # concatenated members
    packed = read(members, name=name)
    assert [row["text"] for row in packed] == [row["text"] for row in read(CONTENT)]
    assert len(packed) == 1000


@pytest.mark.parametrize("name", COMPRESSORS)
def test_a_cut_stream_keeps_its_lines_and_is_recorded(name: str) -> None:
    packed = COMPRESSORS[name](CONTENT)[:-20]
    *good, bad = read(packed, name=name)
    lines = CONTENT.splitlines()[: len(good)]
    assert [row["text"] for row in good] == [json.loads(line)["text"] for line in lines]
    assert (bad["reason"], bad["key"], bad["n_bytes"]) == ("corrupt", name, len(packed))
    assert bad["location"] == f"line {len(good) + 1}"


@pytest.mark.parametrize("name", COMPRESSORS)
def test_a_file_that_is_not_compressed_is_one_rejected_record(name: str) -> None:
    [bad] = read(b'{"text": "a"}\n', name=name)
    assert (bad["reason"], bad["location"]) == ("corrupt", "line 1")


def test_a_missing_file_is_one_rejected_record(tmp_path: Path) -> None:
    [bad] = jsonl_file(source(tmp_path, "gone.jsonl"), Fields())
    assert (bad["reason"], bad["key"]) == ("vanished", "gone.jsonl")


@pytest.mark.parametrize(
    "name, content", [("a.jsonl", b""), ("a.jsonl.gz", gzip.compress(b"", mtime=0)), ("a.jsonl.gz", b"")]
)
def test_a_file_without_a_line_is_recorded(name: str, content: bytes) -> None:
    [bad] = read(content, name=name)
    assert (bad["reason"], bad["key"], bad["location"]) == ("empty", name, "line 1")


def test_of_a_long_line_only_its_beginning_is_held() -> None:
    stream = io.BytesIO(b"ab\n" + b"x" * (3 * CHUNK_BYTES) + b"\ncd")
    assert list(lines(stream.read, 10)) == [
        Line(1, b"ab", 2),
        Line(2, b"x" * 10, 3 * CHUNK_BYTES),
        Line(3, b"cd", 2),
    ]


PIECES = st.sampled_from(
    [b"\n", b"\n", b"\n\n\n", b" \r\n", b"   ", b"\t\x0b\n", b"{}", b"x\n", b"\xff", b"\xc2\xa0\n"]
)


def is_blank(line: bytes, max_bytes: int) -> bool:
    return len(line) <= max_bytes and not line.strip()


@given(st.lists(PIECES, max_size=40).map(b"".join), st.integers(1, 7), st.sampled_from([2, 1000]))
def test_lines_end_at_line_feeds_and_blank_ones_are_one_however_the_stream_is_cut(
    content: bytes, size: int, max_bytes: int
) -> None:
    stream = io.BytesIO(content)
    expected = content.split(b"\n")
    if not expected[-1]:
        expected.pop()
    runs = [list(run) for _, run in groupby(enumerate(expected, 1), lambda it: is_blank(it[1], max_bytes))]
    records = [
        part for run in runs for part in ([run] if is_blank(run[0][1], max_bytes) else [[it] for it in run])
    ]
    assert list(lines(lambda _: stream.read(size), max_bytes)) == [
        Line(run[0][0], run[0][1][:max_bytes], sum(len(line) for _, line in run), len(run)) for run in records
    ]


def test_a_run_of_blank_lines_is_one_record_with_their_number() -> None:
    content = b'{"text": "a"}\n' + b"\n" * 5 + b" \r\n" + b'{"text": "b"}\n\n'
    first, blank, second, last = read(content)
    assert (first["text"], second["text"], second["row"]) == ("a", "b", 8)
    assert (blank["reason"], blank["key"], blank["location"]) == ("empty", "part.jsonl:2", "line 2")
    assert (blank["n_records"], blank["n_bytes"]) == (6, 2)
    assert blank["detail"] == "The lines 2 to 7 are empty."
    assert (last["location"], last["n_records"], last["detail"]) == ("line 9", None, "The line is empty.")


@pytest.mark.parametrize("name", ["part.jsonl.gz", "part.jsonl.zst"])  # bzip2 loses its whole block
def test_blank_lines_before_the_damage_stay(name: str) -> None:
    packed = COMPRESSORS[name](b"\n" * (8 << 20) + os.urandom(1 << 16).hex().encode())[: -(1 << 15)]
    blank, damage = read(packed, name=name)
    assert (blank["reason"], blank["n_records"]) == ("empty", 8 << 20)
    assert (damage["reason"], damage["location"]) == ("corrupt", f"line {(8 << 20) + 1}")


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=3), inner, max_size=2),
    max_leaves=4,
)
JSON_LINES = st.builds(
    lambda text, rest: json.dumps({**rest, "text": text}).encode(),
    VALUES,
    st.dictionaries(st.sampled_from(["id", "url", "stars"]), VALUES, max_size=3),
)
ANY_LINES = JSON_LINES | st.binary(max_size=30).map(lambda data: data.replace(b"\n", b""))


@given(st.lists(ANY_LINES, min_size=1, max_size=20), st.sampled_from([None, "id"]))
def test_each_line_lands_exactly_once(content: list[bytes], key: str | None) -> None:
    fields = Fields(key=key, columns={"stars": "stars", "license": "url"}, metadata=("url",))
    rows = read(b"".join(line + b"\n" for line in content), fields)
    number = 1
    for row in rows:
        n_lines = row.get("n_records") or 1
        line = b"".join(content[number - 1 : number - 1 + n_lines])
        if "reason" in row:
            assert (row["location"], row["n_bytes"]) == (f"line {number}", len(line))
            assert n_lines == 1 or not line.strip()
        else:
            value = json.loads(line.decode("utf-8-sig"))
            assert row["text"] == value["text"]
            assert row["key"] == (str(value["id"]) if key else f"part.jsonl:{number}")
        number += n_lines
    assert number == len(content) + 1


def test_a_bomb_is_left_after_its_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bounds, "FREE_BYTES", 2 * CHUNK_BYTES)
    monkeypatch.setattr(bounds, "MAX_EXPANSION", 2)
    content = b'{"text": "a"}\n' + b"0" * (5 * CHUNK_BYTES)
    good, bad = read(gzip.compress(content), name="part.jsonl.gz")
    assert good["text"] == "a"
    assert (bad["reason"], bad["location"], bad["key"]) == ("bomb", "line 2", "part.jsonl.gz")
