"""The page for teams that only deduplicate: its commands run as they stand, and give the list it promises."""

from __future__ import annotations

import json
import os
import re
import subprocess
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from factory.settings import Settings
from tests.pages import commands, fenced, is_shown

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "only-deduplicate.md"
PATIENCE_S = 1_200  # two minutes where nothing else runs


def write_texts(folder: Path) -> None:
    """Articles with a copy, two near copies and a bad record; a shelf with ten near copies of articles."""
    from pydoc_data.topics import topics

    words = re.findall(r"\S+", " ".join(topics[name] for name in sorted(topics)))
    texts = [" ".join(words[150 * n : 150 * n + 150]) for n in range(51)]
    articles = {f"a{n:02}": text for n, text in enumerate(texts[:40])}
    articles |= {"copy": texts[0], "near1": f"{texts[1]} One more.", "near2": f"{texts[2]} One more."}
    (folder / "articles").mkdir(parents=True)
    for name, text in articles.items():
        (folder / "articles" / f"{name}.txt").write_text(text)
    shelved = [f"{text} Seen on a shelf." for text in texts[30:40]] + texts[40:]
    (folder / "articles" / "broken.txt").write_bytes("Not UTF-8: é".encode("latin-1"))
    urls = [f"https://example.org/{n}" for n in range(len(shelved))]
    pq.write_table(pa.table({"url": urls, "body": shelved}), folder / "shelf.parquet")


@pytest.mark.slow
@pytest.mark.process
@pytest.mark.long
@pytest.mark.timeout(PATIENCE_S + 30)
def test_the_page_leads_from_texts_to_a_list_of_duplicates(tmp_path: Path) -> None:
    (tmp_path / ".venv").symlink_to(ROOT / ".venv")
    write_texts(tmp_path / "my-texts")
    (tmp_path / "my-texts" / "datasets.yaml").write_text(fenced(PAGE, "yaml")[0])
    environment = os.environ | {
        "FACTORY_CACHE": str(Settings().cache),
        "FACTORY_SPARK_MASTER": "local[2]",
        "FACTORY_SPARK_DRIVER_MEMORY": "2g",
        "FACTORY_SPARK_SHUFFLE_PARTITIONS": "1",
        "COLUMNS": "160",
    }
    for name in ("FACTORY_HOME", "FACTORY_DATASETS"):
        environment.pop(name, None)
    script = "\n".join(["set -e", *(f"printf '@@@\\n'; {command.text}" for command in commands(PAGE))])
    done = subprocess.run(
        ["timeout", "-k", "5", str(PATIENCE_S), "bash", "-c", script],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    said: dict[str, str] = {}
    for command, printed in zip(commands(PAGE), done.stdout.split("@@@\n")[1:], strict=True):
        said[command.text] = printed
        assert not command.shown or is_shown(command.shown, printed), f"{command.text} printed\n{printed}"

    rows = {
        row["key"]: row for row in map(json.loads, (tmp_path / "articles.jsonl").read_text().splitlines())
    }
    assert len(rows) == 43
    copies = {rows["a00.txt"]["reason"], rows["copy.txt"]["reason"]}
    assert copies == {"kept", "exact_copy"}
    for near, like in (("near1.txt", "a01.txt"), ("near2.txt", "a02.txt")):
        removed, kept = sorted((rows[near], rows[like]), key=lambda row: row["kept"])
        assert (removed["reason"], removed["duplicate_of_key"], kept["kept"]) == (
            "similar",
            kept["key"],
            True,
        )
        assert 0.8 <= removed["similarity"] < 1
    shelf = pq.read_table(tmp_path / "shelf.parquet").to_pylist()
    across = [row for row in [*shelf, *rows.values()] if row["reason"] == "similar"]
    assert len(shelf) == 21
    assert len(across) == 12  # two within the articles, ten between them and the shelf
    kept = pq.read_table(tmp_path / "kept.parquet").to_pylist()
    assert {row["key"] for row in kept} == {key for key, row in rows.items() if row["kept"]}
    assert all(row["text"] for row in kept)
    traced = "an exact copy of" in said["factory trace document copy.txt"]
    assert traced == (not rows["copy.txt"]["kept"])
    assert "not_utf8" in said["factory sample raw.articles_rejected -n 5"]
    assert "deduplicated.shelf" in (tmp_path / "deduplication.html").read_text()
