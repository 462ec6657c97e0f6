"""The page of a main text is found again at its place, with what the main text leaves out."""

from __future__ import annotations

import io
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from rich.console import Console

from factory.cli.tables import show_pages
from factory.errors import ConfigurationError, NotFound
from factory.explain.pages import whole_text
from factory.lake import names
from factory.lake.tables import Lake
from factory.orchestration.datasets.assets import corpus
from factory.settings import Settings
from spark_udfs.ingest.address import place_of
from tests.ingest.web.archives import SENTENCE, Fetch, archive
from tests.orchestration.runs import run

pytestmark = pytest.mark.spark

PAGE = f"<nav>Beside it</nav><h1>Title</h1><p>{SENTENCE}</p><p>{SENTENCE}</p>"


def test_a_page_is_read_again_from_its_archive_its_file_or_its_document(
    spark: SparkSession, lake_settings: Settings, unique: str, tmp_path: Path
) -> None:
    lake = Lake(lake_settings)
    (tmp_path / "a.warc.gz").write_bytes(
        archive([Fetch("http://a.example/", b"<p>"), Fetch("http://a.example/2", PAGE.encode())])
    )
    (tmp_path / "b.html").write_text(PAGE)
    (tmp_path / "c.jsonl").write_text(f'{{"html": "{PAGE}"}}\n')
    (tmp_path / "all.yaml").write_text(
        "datasets:\n"
        f"  - {{name: {unique}a, kind: prose, format: warc, paths: a.warc.gz}}\n"
        f"  - {{name: {unique}b, kind: prose, format: html, paths: .}}\n"
        f"  - {{name: {unique}c, kind: prose, format: jsonl, text: html, paths: c.jsonl}}\n"
        f"  - {{name: {unique}d, kind: prose, format: html, from: {unique}c}}\n"
    )
    declared = corpus(tmp_path / "all.yaml")
    wanted = {str(names.raw(f"{unique}{letter}")) for letter in "abcd"}
    raw = [asset for asset in declared.assets if wanted & {key.to_user_string() for key in asset.keys}]
    assert run(lake_settings, *raw).success
    for letter in "abd":
        table = names.raw(f"{unique}{letter}")
        [row] = lake.read(table).to_pylist()
        paths = declared.paths.get(table.name, ())
        text = whole_text(lake, table, row, paths)
        assert "Beside it" in text
        assert "Beside it" not in row["text"]
        assert text.count(SENTENCE) == row["text"].count(SENTENCE) == 2
        printed = Console(width=10_000, file=io.StringIO())
        show_pages(
            Lake(lake_settings.model_copy(update={"datasets": tmp_path / "all.yaml"})), table, [row], printed
        )
        shown = printed.file.getvalue()  # type: ignore[attr-defined]
        assert (f"\n+ {SENTENCE}\n" in shown, "\n- Beside it\n" in shown) == (True, True)
        if paths:
            with pytest.raises(NotFound, match="have no file"):
                whole_text(lake, table, row, [place_of(tmp_path / "elsewhere")])
    [row] = lake.read(names.raw(f"{unique}c")).to_pylist()
    with pytest.raises(ConfigurationError, match="does not say where pages of"):
        whole_text(lake, names.raw(f"{unique}c"), row, ())
