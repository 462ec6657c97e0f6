"""Responses are read with all codings that servers send, and with those that archives undid."""

from __future__ import annotations

import gzip
import random
import time
import zlib
from contextlib import suppress

import brotli
import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from spark_udfs.ingest.rows import BadRecord
from spark_udfs.ingest.web.headers import Headers
from spark_udfs.ingest.web.http_message import Body, body_of, status_of

PLAIN = b"<html><body>" + b"text " * 2_000 + b"</body></html>"
SKIPPED = b"\x50\x2a\x4d\x18\x03\x00\x00\x00abc"  # a frame that decoders pass over
UNSIZED = zstandard.ZstdCompressor(write_content_size=False)
raw_deflate = zlib.compressobj(wbits=-15)
CODED = {
    "gzip": gzip.compress(PLAIN),
    "x-gzip": gzip.compress(PLAIN[:100]) + gzip.compress(PLAIN[100:]),
    "deflate": zlib.compress(PLAIN),
    "deflate, identity": raw_deflate.compress(PLAIN) + raw_deflate.flush(),
    "br": brotli.compress(PLAIN),
    "zstd": zstandard.compress(PLAIN),
    "zstd, identity": zstandard.compress(PLAIN[:100]) + SKIPPED + UNSIZED.compress(PLAIN[100:]) + b"end",
    "gzip, br": brotli.compress(gzip.compress(PLAIN)),
}


ENCODERS = {
    "gzip": gzip.compress,
    "deflate": zlib.compress,
    "br": brotli.compress,
    "zstd": zstandard.compress,
}


def body(content: bytes, max_bytes: int = 1 << 20, **fields: str) -> bytes:
    whole, is_whole = beginning(content, max_bytes, **fields)
    assert is_whole
    return whole


def beginning(content: bytes, max_bytes: int = 1 << 20, **fields: str) -> Body:
    headers = Headers({name.replace("_", "-"): [field] for name, field in fields.items()})
    return body_of(headers, content, max_bytes)


@pytest.mark.parametrize("coding", CODED)
def test_codings_are_undone(coding: str) -> None:
    assert body(CODED[coding], content_encoding=coding) == PLAIN


@pytest.mark.parametrize("coding", CODED)
def test_a_body_that_the_archive_decoded_is_taken_as_it_is(coding: str) -> None:
    assert body(PLAIN, content_encoding=coding, transfer_encoding="chunked") == PLAIN


@pytest.mark.parametrize("coding", ["gzip", "deflate", "br", "zstd", "gzip, br"])
def test_of_a_body_that_breaks_off_the_beginning_is_read(coding: str) -> None:
    chance = random.Random(1)
    words = [f"word{chance.randrange(10**6)} " for _ in range(60_000)]
    page = f"<html><body>{''.join(words)}".encode()
    encoded = page
    for name in coding.split(", "):
        encoded = ENCODERS[name](encoded)
    content, is_whole = beginning(encoded[: len(encoded) // 2], content_encoding=coding)
    assert not is_whole
    assert page.startswith(content)
    assert len(content) > len(page) / 8
    with pytest.raises(BadRecord) as error:
        beginning(encoded[:3], content_encoding=coding)
    assert error.value.reason == "wrong_coding"


@pytest.mark.parametrize("n_left", [len(PLAIN) // 2, len(PLAIN) + 5, len(PLAIN) + 8])
def test_chunks_that_break_off_are_read_up_to_there(n_left: int) -> None:
    size = b"%x\r\n" % len(PLAIN)
    message = size + PLAIN + b"\r\n" + size + PLAIN + b"\r\n0\r\n\r\n"
    content, is_whole = beginning(message[:n_left], transfer_encoding="chunked")
    assert not is_whole
    assert (PLAIN + PLAIN).startswith(content)
    assert len(content) > len(PLAIN) // 3


@pytest.mark.parametrize("coding", ["gzip", "deflate", "br", "zstd"])
def test_a_body_in_another_coding_is_a_bad_record(coding: str) -> None:
    damaged = CODED[coding][:20] + b"\xff" * 20 + CODED[coding][40:]
    for content in (b"\x07 nothing of the kind", damaged):
        with pytest.raises(BadRecord) as error:
            body(content, content_encoding=coding)
        assert error.value.reason == "wrong_coding"


@pytest.mark.parametrize("coding", ["gzip", "deflate", "br", "zstd"])
def test_a_body_that_expands_too_far_holds_bad_records(coding: str) -> None:
    with pytest.raises(BadRecord) as error:
        body(CODED[coding], max_bytes=1_000, content_encoding=coding)
    assert error.value.reason == "too_large"


def test_frames_that_expand_too_far_together_or_without_a_size_hold_bad_records() -> None:
    for content in (zstandard.compress(PLAIN) * 3, UNSIZED.compress(bytes(1 << 24))):
        with pytest.raises(BadRecord) as error:
            body(content, max_bytes=2 * len(PLAIN), content_encoding="zstd")
        assert error.value.reason == "too_large"
    cut = zstandard.compress(PLAIN) + zstandard.compress(PLAIN)[:-5]
    content, is_whole = beginning(cut, content_encoding="zstd")
    assert (content[: len(PLAIN)], is_whole) == (PLAIN, False)


@pytest.mark.parametrize(
    "coding, stream, next_stream",
    [
        ("gzip", gzip.compress(PLAIN), gzip.compress(PLAIN)),
        ("zstd", zstandard.compress(PLAIN), zstandard.compress(PLAIN)),
        ("zstd", zstandard.compress(PLAIN), SKIPPED),
    ],
    ids=["gzip", "zstd", "a skippable frame"],
)
def test_a_stream_that_breaks_off_anywhere_leaves_those_before_it(
    coding: str, stream: bytes, next_stream: bytes
) -> None:
    n_magic = {"gzip": 1, "zstd": 4}[coding]
    for n_bytes in range(n_magic, min(len(next_stream), 40)):
        content, is_whole = beginning(stream + next_stream[:n_bytes], content_encoding=coding)
        assert (content[: len(PLAIN)], is_whole) == (PLAIN, False)


@pytest.mark.parametrize("coding", ["gzip", "zstd"])
def test_very_many_small_streams_are_read_in_linear_time(coding: str) -> None:
    text = b"<p>" + random.Random(1).randbytes(600)
    begin = time.process_time()
    content = body(ENCODERS[coding](text) * 20_000, max_bytes=1 << 24, content_encoding=coding)
    assert content == text * 20_000
    assert time.process_time() - begin < 3


@pytest.mark.parametrize("coding", ["utf-8", "UTF-8", "text/html", "binary", "compress"])
def test_plain_markup_is_taken_whatever_coding_is_named(coding: str) -> None:
    assert body(b" <p>x", content_encoding=coding) == b" <p>x"


@pytest.mark.parametrize(
    "stated, media_type",
    [
        ("text/html", "text/html"),
        ("Text/HTML; charset=x", "text/html"),
        ("text/html, text/html", "text/html"),
        ('"text/html"', "text/html"),
        ("'text/html' ;q", "text/html"),
        ("unknown/unknown", ""),
        ("*/*", ""),
        ("application/unknown; charset=x", ""),
    ],
)
def test_a_media_type_is_read_as_servers_write_it(stated: str, media_type: str) -> None:
    assert Headers({"content-type": [stated]}).media_type == media_type


def test_an_unknown_coding_is_named() -> None:
    with pytest.raises(BadRecord, match="`compress` of the body is not known"):
        body(b"\x1f\x9d", content_encoding="compress")


def test_chunks_are_joined_and_their_lengths_checked() -> None:
    chunked = b"5\r\nhello\r\n6;x=y\r\n world\r\n0\r\n\r\n"
    assert body(chunked, transfer_encoding="chunked") == b"hello world"
    with pytest.raises(BadRecord) as error:
        body(chunked.replace(b"6;", b"5;"), transfer_encoding="chunked")
    assert error.value.reason == "wrong_coding"


def test_a_status_line_in_small_letters_is_one() -> None:
    assert status_of(b"http/1.1 404 not found\r\n\r\nx")[0] == 404


def test_lines_that_are_no_header_are_left_out() -> None:
    lines = [b"HTTP/1.1 200 OK", b"Content-Type: text/html;", b" charset='UTF-8'"]
    lines += [b"nonsense", b": x", b"\xff\xfe: y"]
    message = b"\r\n".join([*lines, b"", b"body"])
    status, headers, content = status_of(message)
    assert (status, headers.media_type, headers.charset, content) == (200, "text/html", "UTF-8", b"body")


@given(st.binary(max_size=300))
def test_any_bytes_are_a_response_or_rejected(message: bytes) -> None:
    with suppress(BadRecord):
        assert 0 <= status_of(message)[0] <= 999


def test_a_body_of_white_space_is_looked_at_once() -> None:
    with pytest.raises(BadRecord) as error:
        body(b" " * 3_000_000, content_encoding="gzip", max_bytes=1 << 25)
    assert error.value.reason == "wrong_coding"
