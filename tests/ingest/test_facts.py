"""Facts are joined by key, host and repository, and what is joined to nothing is told."""

from __future__ import annotations

import json
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame, SparkSession

from factory.errors import ConfigurationError
from factory.ingest.fact_files import FactFiles, fact_rows
from factory.ingest.facts import facts_of, first_of_each, rejected_rows, rows_about_nothing, rows_of_table
from factory.lake.schemas.ingest import FACTS, REJECTED
from spark_udfs.ingest.address import place_of


def files(*paths: Path, **options: Any) -> FactFiles:
    return FactFiles(tuple(map(place_of, paths)), **{"by": "host", "column": "host", **options})


def test_files_of_three_kinds_give_the_same_rows(tmp_path: Path) -> None:
    rows = [{"host": "A.example.", "rank": 7, "good": True, "note": None}, {"host": "b.example", "rank": 8}]
    (tmp_path / "a.jsonl").write_text("".join(json.dumps(row) + "\n\n" for row in rows))
    (tmp_path / "b.csv").write_text("host,rank,good,note\nA.example.,7,true,\nb.example,8,,\n")
    pq.write_table(pa.Table.from_pylist(rows), tmp_path / "c.parquet")
    expected = [("a.example", [("rank", "7"), ("good", "true")]), ("b.example", [("rank", "8")])]
    for name in ("a.jsonl", "b.csv", "c.parquet"):
        table = fact_rows([files(tmp_path / name)]).to_pylist()
        assert [(row["value"], row["facts"]) for row in table] == expected
    everything = fact_rows([files(tmp_path), files(tmp_path / "b.csv", by="key", columns=("rank",))])
    assert "".join(name[0] for name in everything["file"].to_pylist()) == "aabbccbb"
    assert everything["facts"].to_pylist()[-1] == [("rank", "8")]


@pytest.mark.parametrize(
    "name, content, message",
    [
        ("a.csv", "hots,rank\nx,1\n", r"Unknown column of `a\.csv`: `host`. Did you mean `hots`"),
        ("a.csv", "host,rank\nx,1,2\n", r"`a\.csv` cannot be read: .*Expected 2 columns, got 3"),
        ("a.csv", "host,rank,rank\nx,1,2\n", r"`a\.csv` have two columns `rank`"),
        ("a.jsonl", '{"host": "x"}\n\n[1]\n', r"Line 3 of the facts `a\.jsonl` is not a JSON object\. "),
        ("a.jsonl", '[["host", "x"]]\n', r"Line 1 of the facts `a\.jsonl` is not a JSON object\. "),
        ("a.jsonl", "[\n", r"Line 1 .* is not a JSON object\. .* `jq -c '\.\[\]'` for a list\."),
        ("a.parquet", "PAR1", r"`a\.parquet` cannot be read"),
        ("a.txt", "host\n", "holds no file of facts"),
    ],
)
def test_a_bad_file_is_named(tmp_path: Path, name: str, content: str, message: str) -> None:
    (tmp_path / name).write_text(content)
    with pytest.raises(ConfigurationError, match=message):
        fact_rows([files(tmp_path / name)])


SCHEMA = "doc_id string, key string, repository string, metadata map<string,string>"
HOSTS = "host,rank\na.example,1\nexample,9\nb.example,2\nb.example,3\nz.example,4\n"


def documents(spark: SparkSession) -> DataFrame:
    rows = [
        ("1", "http://www.A.example:80/x", None, {}),
        ("2", "k2", None, {"host": "c.b.example"}),
        ("3", "k3", "repo", {"url": "https://me@b.example/y"}),
        ("4", "k4", None, None),
    ]
    return spark.createDataFrame(rows, SCHEMA)


def facts_by_document(table: DataFrame) -> dict[str, dict[str, str]]:
    assert table.columns == FACTS.names
    return {row.doc_id: dict(row.facts) for row in table.collect()}


@pytest.mark.spark
def test_the_longest_part_of_a_host_and_the_first_row_of_a_key_count(
    spark: SparkSession, tmp_path: Path
) -> None:
    (tmp_path / "hosts.csv").write_text(HOSTS)
    (tmp_path / "keys.csv").write_text("id,score\nk2,.5\nk4,.7\n")
    (tmp_path / "repositories.csv").write_text("repository,stars\nrepo,5\n")
    sources = [
        files(tmp_path / "hosts.csv"),
        files(tmp_path / "keys.csv", by="key", column="id"),
        files(tmp_path / "repositories.csv", by="repository", column="repository"),
    ]
    rows = spark.createDataFrame(fact_rows(sources))
    first, repeated = first_of_each(rows)
    assert facts_by_document(facts_of(documents(spark), first)) == {
        "1": {"rank": "1"},
        "2": {"rank": "2", "score": ".5"},
        "3": {"rank": "2", "stars": "5"},
        "4": {"score": ".7"},
    }
    assert facts_by_document(
        facts_of(documents(spark).repartition(8), first.repartition(8))
    ) == facts_by_document(facts_of(documents(spark).coalesce(1), first.coalesce(1)))
    alone = rejected_rows(
        rows_about_nothing(documents(spark), first), "no_document", "No document has the %s `%s`."
    )
    assert alone.columns == REJECTED.names
    assert [row.detail for row in alone.collect()] == ["No document has the host `z.example`."]
    [taken] = rejected_rows(repeated, "key_taken", "An earlier row has the %s `%s`.").collect()
    assert (taken.key, taken.detail) == ("hosts.csv:4", "An earlier row has the host `b.example`.")


@pytest.mark.spark
def test_columns_and_metadata_of_a_table_are_facts(spark: SparkSession) -> None:
    table = spark.createDataFrame(
        [("k2", 3, {"score": "8"}), ("k4", None, None)], "key string, stars long, metadata map<string,string>"
    )
    rows = rows_of_table(table, "raw.others", 0, "key", "key", {"stars": "stars", "score": "metadata.score"})
    assert facts_by_document(facts_of(documents(spark), rows)) == {"2": {"stars": "3", "score": "8"}, "4": {}}


def test_files_of_one_name_and_values_of_other_types_are_told_apart(tmp_path: Path) -> None:
    for folder in ("a", "b"):
        (tmp_path / folder).mkdir()
        rows = [{"host": folder, "seen": date(2024, 1, 1), "price": Decimal("1.50"), "tags": ["x"]}]
        pq.write_table(pa.Table.from_pylist(rows), tmp_path / folder / "hosts.parquet")
    apart = fact_rows([files(tmp_path / "a", tmp_path / "b")])
    assert apart["file"].to_pylist() == ["hosts.parquet", "1/hosts.parquet"]
    assert fact_rows([files(tmp_path)])["file"].to_pylist() == ["a/hosts.parquet", "b/hosts.parquet"]
    assert apart["facts"][0].as_py() == [("seen", "2024-01-01"), ("price", "1.50"), ("tags", '["x"]')]
    (tmp_path / "c.jsonl").write_text('\ufeff{"host": "c", "title": "one\u2028two"}\n', "utf-8")
    assert fact_rows([files(tmp_path / "c.jsonl")])["facts"][0].as_py() == [("title", "one\u2028two")]


def test_a_whole_number_is_one_key_in_every_type_of_facts(tmp_path: Path) -> None:
    numbers = {"int": [12, 7], "float": [12.0, 7.0], "decimal": [Decimal("12.00"), Decimal("7.00")]}
    for name, keys in numbers.items():
        pq.write_table(pa.table({"id": keys, "rank": [1.0, 2.0]}), tmp_path / f"{name}.parquet")
    (tmp_path / "lines.jsonl").write_text('{"id": 12.0, "rank": 1.0}\n{"id": 7, "rank": 2.0}\n')
    for path in sorted(tmp_path.iterdir()):
        rows = fact_rows([files(path, by="key", column="id")]).to_pylist()
        assert [row["value"] for row in rows] == ["12", "7"], path
        assert [dict(row["facts"]) for row in rows] == [{"rank": "1.0"}, {"rank": "2.0"}]


def test_a_quoted_value_of_csv_may_have_newlines(tmp_path: Path) -> None:
    note = "x\n" * 15_000
    hosts = [f"{number}.example" for number in range(50)]  # more than a block of the parser
    (tmp_path / "a.csv").write_text("host,note\n" + "".join(f'{host},"{note}"\n' for host in hosts))
    rows = fact_rows([files(tmp_path / "a.csv")]).to_pylist()
    assert [(row["value"], row["facts"]) for row in rows] == [(host, [("note", note)]) for host in hosts]


def test_bytes_are_read_as_utf_8_and_others_are_refused(tmp_path: Path) -> None:
    table = pa.table({"host": ["é.example".encode()], "names": [[b"a", b"b"]]})
    pq.write_table(table, tmp_path / "a.parquet")
    [row] = fact_rows([files(tmp_path / "a.parquet")]).to_pylist()
    assert (row["value"], row["facts"]) == ("é.example", [("names", '["a", "b"]')])
    far = pa.array([2**62], pa.timestamp("us"))
    for column in (pa.array([b"\xff"]), far):
        pq.write_table(pa.table({"host": ["a"], "x": column}), tmp_path / "b.parquet")
        with pytest.raises(ConfigurationError, match=r"^Column `x` of the facts `b\.parquet` holds a"):
            fact_rows([files(tmp_path / "b.parquet")])
