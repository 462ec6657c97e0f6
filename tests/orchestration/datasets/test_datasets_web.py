"""Datasets of web pages, datasets from datasets, and facts, as a datasets file declares them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from factory.errors import ConfigurationError
from factory.explain.trace import trace_documents
from factory.lake import names
from factory.lake.names import TableName
from factory.lake.tables import Lake
from factory.orchestration.datasets.assets import corpus
from factory.settings import Settings
from tests.ingest.web.archives import Fetch, archive, page
from tests.orchestration.runs import reads, run

HOSTS = "{paths: hosts.csv, by: host}"
FILE = """
datasets:
  - {name: pages, kind: prose, format: jsonl, text: html, key: id, metadata: url, paths: pages, group: pages}
  - name: main
    kind: prose
    format: html
    from: pages
    rules: [word_count]
    facts: {paths: hosts.csv, by: host}
    predicates: {facts.rank: {at_most: 10}}
"""


def declared(folder: Path, text: str = FILE) -> dict[str, set[str]]:
    (folder / "pages").mkdir(exist_ok=True)
    (folder / "pages" / "a.jsonl").write_text(
        "".join(
            json.dumps({"id": f"{n}", "html": page(n, 5).decode(), "url": f"http://h{n % 2}.example/{n}"})
            + "\n"
            for n in range(6)
        )
    )
    if not (folder / "hosts.csv").exists():
        (folder / "hosts.csv").write_text("host,rank\nh0.example,5\nh1.example,50\n")
    (folder / "datasets.yaml").write_text(text)
    return reads(corpus(folder / "datasets.yaml").assets)


def test_a_dataset_from_another_reads_its_documents_and_no_files(tmp_path: Path) -> None:
    tables = declared(tmp_path)
    assert tables["raw.main"] == {"raw.pages"}
    assert tables["facts.main"] == {"raw.main", "facts.main_rows"}
    assert tables["signals.main_by_facts_rank"] == {"raw.main", "facts.main"}
    assert set(corpus(tmp_path / "datasets.yaml").paths) == {"pages"}


@pytest.mark.parametrize(
    "old, new, message",
    [
        ("from: pages", "from: mian", "Unknown dataset `mian`. Did you mean `main`?"),
        ("from: pages", "from: main", "`main` reads `main`. Name another dataset."),
        ("from: pages", "from: pages\n    paths: pages", "A dataset has `paths` or `from`. Leave one out."),
        ("format: html", "format: files", "`files` reads files, and the texts of a dataset can be read as"),
        (
            "kind: prose\n    format: html",
            "kind: code\n    format: repositories",
            "`repositories` reads files, and the texts of a dataset can be read as `html`.",
        ),
        ("    from: pages\n", "", "A dataset has `paths` or `from`. Name the files"),
        (
            "format: html",
            "format: jsonl",
            "`jsonl` reads files, and the texts of a dataset can be",
        ),
        ("by: host", "by: hots", "Unknown value `hots`. Did you mean `host`?"),
        ("facts.rank", "facts.rnak", "Unknown fact `rnak`. Did you mean `rank`?"),
        ("    facts: {paths: hosts.csv, by: host}\n", "", "and the dataset has no `facts`. Declare them."),
        ("hosts.csv", "none.csv", "`none.csv` holds no file of facts."),
        (
            "hosts.csv",
            "s3a://bucket/hosts.csv",
            "`s3a://bucket/hosts.csv` has a scheme of Hadoop. Write `s3://bucket/hosts.csv`.",
        ),
        ("{paths: hosts.csv, by", '{paths: "hosts/*.csv", by', "`hosts/*.csv` has no folder:"),
        (HOSTS, f"[{HOSTS}, {HOSTS}]", "have a column `rank`"),
        (HOSTS, "{table: raw.pages, by: key}", "Of a table the facts are named."),
        (HOSTS, "{by: key}", "Facts come from `paths` or from a `table`."),
    ],
)
def test_what_is_wrong_is_told_in_one_sentence(tmp_path: Path, old: str, new: str, message: str) -> None:
    with pytest.raises(ConfigurationError) as error:
        declared(tmp_path, FILE.replace(old, new, 1))
    assert message in str(error.value)


@pytest.mark.invariant("Changed facts read no text, and a document made from another is traced both ways.")
@pytest.mark.spark
def test_pages_are_derived_joined_with_facts_and_traced_both_ways(
    spark: SparkSession, lake_settings: Settings, unique: str, tmp_path: Path
) -> None:
    text = FILE.replace("name: pages", f"name: {unique}p").replace("from: pages", f"from: {unique}p")
    text = text.replace("group: pages", f"group: {unique}p").replace("name: main", f"name: {unique}m")
    text = text.replace("rules: [word_count]", f"rules: [word_count]\n    group: {unique}m")
    sizes = f"{{table: raw.{unique}p, by: key, columns: [n_bytes]}}"  # before the file of the predicate
    text = text.replace(HOSTS, f"[{sizes}, {HOSTS}]")

    tables = [f"raw.{unique}", *(f"{stage}.{unique}m" for stage in ("facts", "signals", "filtered"))]

    def made() -> dict[str, bool]:
        declared(tmp_path, text)
        assets = [
            asset
            for asset in corpus(tmp_path / "datasets.yaml").assets
            if any(key.to_user_string().startswith(wanted) for key in asset.keys for wanted in tables)
        ]
        assert run(lake_settings, *assets, reuse=True).success
        return {row["doc_id"]: row["kept"] for row in lake.read(names.filtered(f"{unique}m")).to_pylist()}

    lake = Lake(lake_settings)
    kept = made()
    rows = lake.read(names.raw(f"{unique}m")).to_pylist()
    assert {row["key"]: kept[row["doc_id"]] for row in rows} == {f"{n}": n % 2 == 0 for n in range(6)}
    texts = lake.published(TableName("signals", f"{unique}m")).snapshot_id
    (tmp_path / "hosts.csv").write_text("host,rank\nh0.example,50\nh1.example,5\n")
    kept = made()
    assert {row["key"]: kept[row["doc_id"]] for row in rows} == {f"{n}": n % 2 == 1 for n in range(6)}
    assert lake.published(TableName("signals", f"{unique}m")).snapshot_id == texts  # no text was read again
    facts = dict(rows[0]["metadata"])
    [child, parent] = trace_documents(lake, [rows[0]["doc_id"], facts["derived_from"]])
    assert child.about["derived_from"] == parent.doc_id
    assert [trace.doc_id for trace in parent.descendants] == [child.doc_id]
    assert parent.descendants[0].outcome == child.outcome


@pytest.mark.spark
def test_an_archive_is_declared_with_its_captures(
    spark: SparkSession, lake_settings: Settings, unique: str, tmp_path: Path
) -> None:
    fetches = [Fetch("http://a.example/", page(n, 5), date=f"2024-01-0{n}T00:00:00Z") for n in (1, 2)]
    (tmp_path / "a.warc.gz").write_bytes(archive(fetches))
    (tmp_path / "w.yaml").write_text(
        f"datasets: [{{name: {unique}, kind: prose, format: warc, paths: a.warc.gz, captures: latest}}]\n"
    )
    [raw] = [
        asset
        for asset in corpus(tmp_path / "w.yaml").assets
        if str(names.raw(unique)) in {key.to_user_string() for key in asset.keys}
    ]
    assert run(lake_settings, raw).success
    [row] = Lake(lake_settings).read(names.raw(unique)).to_pylist()
    assert row["text"].startswith("Page 2")
