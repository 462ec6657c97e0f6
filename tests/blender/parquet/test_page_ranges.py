"""Ranges of a store: the bytes asked for, in the order asked, by as few requests as the gap allows."""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from obstore.store import HTTPStore, MemoryStore

from blender.parquet.page_ranges import StoreRanges

CONTENT = bytes(range(256)) * 2
RANGES = st.lists(
    st.tuples(st.integers(0, 400), st.integers(1, 60)).map(lambda it: (it[0], it[0] + it[1])), max_size=20
)


class Served(BaseHTTPRequestHandler):
    """Serves ranges of CONTENT and notes them."""

    asked: list[tuple[int, int]]

    def do_GET(self) -> None:
        found = re.fullmatch(r"bytes=(\d+)-(\d+)", self.headers["Range"])
        assert found is not None
        first, last = int(found[1]), int(found[2])
        self.asked.append((first, last + 1))
        self.send_response(206)
        self.send_header("Content-Range", f"bytes {first}-{last}/{len(CONTENT)}")
        self.send_header("Content-Length", str(last + 1 - first))
        self.send_header("Last-Modified", "Mon, 01 Jan 2024 00:00:00 GMT")
        self.send_header("ETag", '"1"')
        self.end_headers()
        self.wfile.write(CONTENT[first : last + 1])

    def log_message(self, format: str, *args: object) -> None:
        """Print nothing."""


@pytest.fixture
def server() -> Iterator[tuple[HTTPStore, list[tuple[int, int]]]]:
    """A store over HTTP, and the ranges it was asked for."""
    asked: list[tuple[int, int]] = []
    handler = type("Handler", (Served,), {"asked": asked})
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as http:
        threading.Thread(target=http.serve_forever, daemon=True).start()
        url = f"http://127.0.0.1:{http.server_port}/"
        yield HTTPStore.from_url(url, client_options={"allow_http": True}), asked
        http.shutdown()


@pytest.mark.parametrize(
    "gap, requests", [(2, [(0, 20), (50, 60)]), (1, [(0, 10), (12, 20), (50, 60)]), (30, [(0, 60)])]
)
def test_a_gap_is_read_where_it_is_small_enough(
    server: tuple[HTTPStore, list[tuple[int, int]]], gap: int, requests: list[tuple[int, int]]
) -> None:
    store, asked = server
    wanted = [(50, 60), (0, 10), (12, 20)]
    found = StoreRanges(store, gap_bytes=gap).read("object", wanted)
    assert found == [CONTENT[begin:end] for begin, end in wanted]
    assert sorted(asked) == requests


def test_touching_ranges_are_one_request(server: tuple[HTTPStore, list[tuple[int, int]]]) -> None:
    store, asked = server
    assert StoreRanges(store, gap_bytes=0).read("object", [(10, 20), (0, 10)]) == [
        CONTENT[10:20],
        CONTENT[:10],
    ]
    assert asked == [(0, 20)]


@settings(deadline=None)
@given(wanted=RANGES, gap=st.integers(0, 50))
def test_the_bytes_read_are_the_bytes_wanted(wanted: list[tuple[int, int]], gap: int) -> None:
    store = MemoryStore()
    store.put("some/object", CONTENT)
    ranges = StoreRanges(store, gap_bytes=gap)
    assert ranges.size("some/object") == 512
    assert ranges.read("some/object", wanted) == [CONTENT[begin:end] for begin, end in wanted]


def test_a_missing_object_raises_file_not_found() -> None:
    with pytest.raises(FileNotFoundError):
        StoreRanges(MemoryStore()).size("missing")
