"""Locations of files, as every reader of a lake takes them."""

from __future__ import annotations

import pytest

from factory.lake.files.location import local_path, location


@pytest.mark.parametrize("path", ["/lake/data/0.parquet", "/my lake/name=C%2B%2B/0.parquet", "/lake/\udcff"])
def test_a_path_comes_back_from_its_location(path: str) -> None:
    assert local_path(location(path)) == path


def test_a_path_is_its_own_location() -> None:
    assert local_path("/lake/0.parquet") == "/lake/0.parquet"
    assert local_path("file:/lake/0.parquet") == "/lake/0.parquet"


def test_a_file_in_a_store_has_no_path() -> None:
    assert local_path("s3://bucket/lake/0.parquet") is None
