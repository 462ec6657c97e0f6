"""Predicates on columns have the same values in Spark and in Python, and read no text."""

from __future__ import annotations

import datetime as dt
import re
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql.pandas.types import from_arrow_schema

from factory.filters.metadata import Predicate, WordPredicate, column, predicate
from factory.filters.stage import decide, measure, signals_schema
from factory.lake import names
from factory.lake.schemas.ingest import RAW
from tests.frames import assert_declared

EXPRESSIONS = ["MIT OR GPL-3.0", "MIT AND GPL-3.0", "GPL-3.0 OR Apache-2.0 AND MIT", " OR ", "MIT AND "]
EXPRESSIONS += ["(MIT OR GPL-3.0) AND MIT", "(MIT OR Apache-2.0) AND MIT", "(GPL-3.0)", "()", "(MIT"]
WORDS = ["MIT", "mit", "Apache-2.0", "GPL-3.0", "", "MIT\n", "a.b", "aXb", None, *EXPRESSIONS]
PATHS = ["a.py", "src/a.py", "src/tests/a.py", "tests/a.py", "mytests/a.py", "a/b/c.py", "a\nb/x.py", None]
PREDICATES = [
    predicate("license", ["MIT", "Apache-*"]),
    predicate("fork_of", ["MIT", None]),
    predicate("source", {"none_of": ["MIT", "a.b"]}),
    predicate("revision", {"one_of": ["*"], "none_of": [None, "a?b"]}),
    predicate("metadata.kind", {"one_of": ["M*"]}),
    predicate("path", {"one_of": ["**/*.py"], "none_of": ["**/tests/**", "a/*/c.py"]}),
    predicate("stars", {"at_least": 10}),
    predicate("n_bytes", {"at_most": 3}),
    predicate("created_at", {"at_least": dt.date(2015, 1, 1)}),
]


@pytest.mark.parametrize(
    "glob,word,matches",
    [
        ("MIT", "MIT", True),
        ("MIT", "MIT-0", False),
        ("*.py", "a.py", True),
        ("*.py", "a/b.py", False),
        ("**.py", "a/b.py", True),
        ("**/*.py", "b.py", True),
        ("**/tests/**", "tests/a", True),
        ("**/tests/**", "x/tests/y/a", True),
        ("**/tests/**", "mytests/a", False),
        ("a?c", "abc", True),
        ("a?c", "a/c", False),
        ("[x]", "x", False),
        ("[x]", "[x]", True),
        ("x", "x\n", False),
        ("*", "a\nb", True),
    ],
)
def test_a_glob_matches_the_whole_word(glob: str, word: str, matches: bool) -> None:
    assert WordPredicate("path", [glob], []).allows(word) is matches
    assert WordPredicate("path", [], [glob]).allows(word) is not matches


def test_licenses_are_compared_in_any_case_and_paths_are_not() -> None:
    assert WordPredicate("license", ["mit"], []).allows("MIT")
    assert not WordPredicate("path", ["mit"], []).allows("MIT")


@pytest.mark.parametrize(
    "license, allowed, without_gpl",
    [
        ("MIT OR GPL-3.0", True, True),
        ("MIT AND GPL-3.0", False, False),
        ("GPL-3.0 OR Apache-2.0 AND MIT", True, True),
        ("GPL-3.0 OR Apache-2.0 AND ISC", False, True),
        ("Apache-2.0 WITH LLVM-exception", True, True),
        ("(MIT OR Apache-2.0) AND ISC", False, True),
        ("(MIT OR Apache-2.0)", True, True),
        ("(MIT OR GPL-3.0) AND Apache-2.0", False, False),
    ],
)
def test_one_alternative_of_a_license_must_be_allowed_whole(
    license: str, allowed: bool, without_gpl: bool
) -> None:
    one_of, none_of = predicate("license", ["MIT", "Apache-*"]), predicate("license", {"none_of": ["GPL-*"]})
    assert (one_of.allows(license), none_of.allows(license)) == (allowed, without_gpl)


def test_a_missing_word_is_only_in_lists_with_null() -> None:
    assert not WordPredicate("license", ["MIT"], []).allows(None)
    assert WordPredicate("license", ["MIT", None], []).allows(None)
    assert WordPredicate("license", [], ["MIT"]).allows(None)
    assert not WordPredicate("license", [], ["MIT", None]).allows(None)


def test_keys_of_metadata_have_columns_of_their_own() -> None:
    assert column("metadata.kind") == "metadata_kind"
    assert len({column(f"metadata.{key}") for key in ("a-b", "a.b", "a b", "a_b", "aé")}) == 5


def documents(spark: SparkSession) -> DataFrame:
    start = dt.datetime(2015, 1, 1, tzinfo=dt.UTC)
    times = [None, *(start + dt.timedelta(seconds=seconds) for seconds in range(-3, 4))]
    stars = [0, 9, 10, 11, None, 10**12, 1, 2, 3]
    rows = [
        dict.fromkeys(RAW.names)
        | dict.fromkeys(["license", "fork_of", "revision"], word)
        | dict.fromkeys(["key", "content_hash", "media_type"], "k")
        | {"doc_id": f"{word!r} {path!r}", "source": word or "s", "path": path}
        | {"n_bytes": len(word or ""), "stars": stars[n % len(stars)], "created_at": created}
        | {"metadata": {"kind": word} if word != "a.b" else None}
        for n, word in enumerate(WORDS)
        for path, created in zip(PATHS, times, strict=True)
    ]
    return spark.createDataFrame(rows, from_arrow_schema(RAW.columns))


def expected(row: Row) -> list[dict[str, Any]]:
    """The rejections of a document by the definitions of the predicates in Python."""
    created = None if row.created_at is None else row.created_at.replace(tzinfo=dt.UTC).timestamp()
    found = {"stars": row.stars, "n_bytes": row.n_bytes, "created_at": created}
    kind = (row.metadata or {}).get("kind")
    rejections = []
    for rule in PREDICATES:
        value = found.get(rule.name)
        if isinstance(rule, WordPredicate):
            word = kind if rule.name == "metadata.kind" else row[rule.name]
            value = None if word is None else float(rule.allows(word))
        bound = rule.limit.violated(value)
        if value is None and rule.rejects_missing:
            bound = rule.bounds.low
        if bound is not None:
            number = None if value is None else float(value)
            rejections.append({"rule": rule.name, "value": number, "threshold": float(bound)})
    return rejections


@pytest.mark.spark
def test_predicates_are_decided_like_rules_and_read_no_text(spark: SparkSession, tmp_path: Path) -> None:
    documents(spark).write.parquet(str(tmp_path / "raw"))
    raw = spark.read.parquet(str(tmp_path / "raw"))
    signals = measure(raw, PREDICATES)
    assert_declared(signals, signals_schema(PREDICATES))
    plan = signals._jdf.queryExecution().executedPlan().toString()
    [scanned] = re.findall(r"FileScan parquet \[(.*?)\]", plan)
    assert "doc_id#" in scanned
    assert "text#" not in scanned
    verdicts = {row.doc_id: row.asDict(recursive=True) for row in decide(signals, PREDICATES).collect()}
    wanted = {row.doc_id: expected(row) for row in raw.collect()}
    assert {doc_id: verdict["rejections"] for doc_id, verdict in verdicts.items()} == wanted
    for rule in PREDICATES:
        rejected = [any(it["rule"] == rule.name for it in found) for found in wanted.values()]
        assert 0 < sum(rejected) < len(rejected), rule


def test_a_fact_with_a_dot_in_its_name_is_a_fact_and_no_column_of_a_table() -> None:
    rule = predicate("facts.web.rank", {"at_most": 10})
    assert isinstance(rule, Predicate)
    assert rule.reads == {}
    assert rule.of_dataset("news").reads == {"values": names.facts("news")}
    assert rule.of_dataset("news").field == "web.rank"
    assert column("facts.web.rank") != column("facts.web_rank")
