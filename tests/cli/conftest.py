"""The lake that most tests of the command read."""

from __future__ import annotations

from pathlib import Path

import pytest

from factory.cli import root
from factory.lake.names import filtered, raw
from factory.lake.schemas.filters import FILTERED
from factory.lake.schemas.ingest import RAW
from factory.lake.tables import Lake
from factory.settings import Settings
from tests.explain.lakes import publish


@pytest.fixture
def lake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Lake:
    """A lake with ten documents, four of them rejected, that the command works on."""
    lake = Lake(Settings(home=tmp_path))
    monkeypatch.setattr(root, "lake_settings", lambda: lake.settings)
    documents = [
        {
            "doc_id": f"{number:032x}",
            "source": "book",
            "key": f"page {number}" if number else "page [id].tsx [/]",
            "text": f"text of page {number}",
            "content_hash": f"{number}",
            "n_bytes": 14,
            "media_type": "text/plain",
        }
        for number in range(10)
    ]
    failing = [{"rule": "word_count", "value": 3.0, "threshold": 50.0}]
    verdicts = [
        {"doc_id": row["doc_id"], "kept": number > 3, "rejections": [] if number > 3 else failing}
        for number, row in enumerate(documents)
    ]
    publish(lake, raw("book"), RAW, documents)
    publish(lake, filtered("book"), FILTERED, verdicts)
    return lake
