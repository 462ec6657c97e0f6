"""Fixtures of the tests of declarations."""

from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with everything that GOOD names."""
    for path in ("notes/a.md", "repos/a/x.py", "p.jsonl"):
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text("{}\n")
    return tmp_path
