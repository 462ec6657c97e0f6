"""Pictures never come to the texts of another version of their document."""

from __future__ import annotations

from pathlib import Path

import pytest

from factory.lake import names
from factory.settings import Settings
from tests.blender.picture_tables import draw
from tests.orchestration.declared import declared
from tests.orchestration.runs import failure, run

pytestmark = [pytest.mark.spark, pytest.mark.slow]

TEXT = """datasets:
- {name: NAME, kind: prose, format: images, paths: pictures, layout: pages, rules: [], tokenizer: NAMEt}
tokenizers: {NAMEt: {vocabulary: 300}}
"""
PARAGRAPH = "<p>A long paragraph of main text, with enough words that the extractor keeps it as such.</p>"
RED, BLUE = '<p>A red cat:</p><img src="a.png">', '<p>A blue dog:</p><img src="b.png">'


def page(body: str) -> str:
    return f"<html><body><main><h1>Head</h1>{PARAGRAPH}{body}{PARAGRAPH}</main></body></html>"


def test_a_page_whose_pictures_changed_places_is_not_packed_with_its_earlier_text(
    lake_settings: Settings, unique: str, tmp_path: Path
) -> None:
    folder = tmp_path / "pictures"
    folder.mkdir()
    for name, width in (("a", 40), ("b", 60)):
        (folder / f"{name}.png").write_bytes(draw(width, 50).content)
    (folder / "page.html").write_text(page(RED + BLUE))
    assets = declared(tmp_path, TEXT.replace("NAME", unique)).assets
    assert run(lake_settings, *assets).success
    (folder / "page.html").write_text(page(BLUE + RED))
    raw, sequences = str(names.raw(unique)), str(names.packed(unique))
    keys = {
        table: [
            key for asset in assets if table in {key.path[-1] for key in asset.keys} for key in asset.keys
        ]
        for table in (raw, sequences)
    }
    assert run(lake_settings, *assets, selection=keys[raw]).success
    attempt = run(lake_settings, *assets, selection=keys[sequences])
    assert not attempt.success
    assert "changed since" in failure(attempt) or "pictures would come to the wrong texts" in failure(attempt)
    assert run(lake_settings, *assets).success
