"""The files that decide the documents of pictures: captions and figures, too."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from factory.ingest.image_items import state_places
from factory.ingest.state import listing
from spark_udfs.ingest.address import place_of
from spark_udfs.ingest.image_document import ImageLayout, ImageOptions


@pytest.mark.invariant("A caption or a figure that changed makes the tables of its picture or page stale.")
@pytest.mark.parametrize("layout, companion", [("captions", "a.txt"), ("pages", "figures/a.png")])
@pytest.mark.parametrize("path", ["a.png", "*.png", ""])
def test_a_changed_companion_changes_the_state(
    tmp_path: Path, layout: ImageLayout, companion: str, path: str
) -> None:
    for name in ("a.png", "a.txt", "figures/a.png"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("before")
    places = [place_of(tmp_path / path)]

    def state() -> str:
        return listing(state_places(places, ImageOptions(layout=layout))).state

    before = state()
    assert state() == before
    (tmp_path / companion).write_text("after this one")
    os.utime(tmp_path / companion, ns=(1, 1))
    assert state() != before


def test_other_layouts_list_what_is_named(tmp_path: Path) -> None:
    (tmp_path / "a.tar").write_text("")
    place = place_of(tmp_path / "a.tar")
    assert state_places([place], ImageOptions(layout="webdataset")) == [place]
