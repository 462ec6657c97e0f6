"""A group that compares repositories: forks, vendored copies, revisions, topics, and what is told of them."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from factory.dedup.decisions import DecisionConfig
from factory.dedup.repository_config import RepositoryConfig
from factory.errors import ConfigurationError
from factory.explain.diff import diff
from factory.explain.trace import trace_documents
from factory.filters.rounds import Round
from factory.lake import names
from factory.lake.identity import content_hash
from factory.lake.names import TableName
from factory.lake.schemas.dedup import TOPICS
from factory.lake.schemas.ingest import RAW
from factory.lake.tables import Lake
from factory.lake_spark.audit import spark_schema
from factory.orchestration.chain.dedup.group import Deduplication, dedup_group
from factory.orchestration.chain.dedup.repositories import (
    component_keeps_a_document,
    removal_is_similar_enough,
    removal_names_a_kept_document,
)
from factory.orchestration.chain.link import Chain
from factory.orchestration.chain.refine import refine, variant
from factory.orchestration.keys import table_of
from factory.orchestration.table.checks import violations
from factory.orchestration.table.table_asset import table_asset
from factory.settings import Settings
from tests.orchestration.runs import reads, run

CODE = "repositories_of_a_test"
CHOSEN = RepositoryConfig(
    topics={"shop": "web", "blog": "web", "chess": "games", "go": "games"},
    dropped_topics=("games",),
    pinned=("chess",),
)
LICENSE = " ".join(f"license{number}" for number in range(60))
Rows = dict[str, dict[str, Any]]


def text(name: str, changed: int = 0) -> str:
    """A file of sixty words of its own, the last `changed` of them others."""
    drawn = random.Random(name)
    words = [f"{name}_{drawn.randrange(1000)}" for _ in range(60)]
    return " ".join([*words[: 60 - changed], *(f"{word}_new" for word in words[60 - changed :])])


def files(name: str, n: int, **changed: int) -> dict[str, str]:
    return {f"{name}{i}.py": text(f"{name}{i}", changed.get(f"{name}{i}", 0)) for i in range(n)}


def repository(name: str | None, of: dict[str, str], **about: Any) -> Iterator[dict[str, Any]]:
    for path, content in of.items():
        key = f"{name}{about.get('revision', '')}/{path}"
        yield {
            **dict.fromkeys(RAW.names),
            **dict.fromkeys(("source", "key", "doc_id"), key),
            "content_hash": content_hash(content),
            "text": content,
            "n_bytes": len(content),
            "media_type": "text/x-python",
            "repository": name,
            "path": path,
            **about,
        }


def documents() -> Iterator[dict[str, Any]]:
    original, six = files("engine", 10), files("six", 2)
    yield from repository("engine", original, stars=5)
    changed = original | files("engine", 2, engine0=3, engine1=20)
    yield from repository("fork", changed | files("fork", 1), stars=5000, fork_of="engine")
    yield from repository("library", files("library", 6), revision="1.9")
    yield from repository("library", files("library", 6, library0=2), revision="1.10")
    yield from repository("six", six, stars=900)
    yield from repository("app", six | files("app", 8), stars=2)
    for name in ("shop", "blog", "chess", "go"):
        yield from repository(name, files(name, 2) | {"LICENSE": LICENSE, "__init__.py": ""})
    yield from repository(None, {"engine2.py": original["engine2.py"], "notes.py": text("notes")})


def chains() -> tuple[Chain, Chain]:
    """The dataset, and a variant of it at another threshold."""
    group = dedup_group(CODE, [CODE], kind="code", repositories=CHOSEN)
    first = refine(CODE, dedup_group=group, rounds=[Round()], tokenizer="tokenizer")
    return first, variant(first, "strict", threshold=0.95)


@dataclass(frozen=True)
class Ran:
    """The lake after a run, and what the run said of the repositories."""

    lake: Lake
    facts: dict[str, Any]

    def rows(self, group: str, part: str, key: str) -> Rows:
        found = self.lake.read(names.dedup(group, part)).to_pylist()
        return {row[key].removeprefix(f"{CODE}/"): row for row in found}


@pytest.fixture(scope="module")
def ran(spark: SparkSession, lake_settings: Settings) -> Ran:
    @table_asset(namespace="raw", name=CODE, asset_group="test", schema=RAW)
    def raw(pyspark):  # type: ignore[no-untyped-def]
        rows = [tuple(row.values()) for row in documents()]
        return pyspark.spark_session.createDataFrame(rows, spark_schema(RAW))

    first, strict = chains()
    declared = {
        min(asset.keys): asset for asset in (raw, *first.link(Deduplication).group.assets, *first, *strict)
    }
    wanted = ("raw", "signals", "filtered", "dedup", "deduplicated")
    chosen = [
        asset
        for key, asset in declared.items()
        if table_of(key).namespace in wanted
        and not table_of(key).name.endswith(("_recall", "_sweep", "_largest_buckets"))
    ]
    result = run(lake_settings, *chosen)
    assert result.success
    (event,) = result.asset_materializations_for_node(f"dedup__{CODE}_repositories")
    return Ran(Lake(lake_settings), {name: entry.value for name, entry in event.metadata.items()})


@pytest.mark.spark
def test_originals_and_newer_revisions_stay_and_topics_split_and_drop(ran: Ran) -> None:
    found = ran.rows(CODE, "repositories", "repository_id")
    assert {name: (row["reason"], row["duplicate_of"]) for name, row in found.items()} == {
        "engine": ("kept", None),
        "fork": ("duplicate", f"{CODE}/engine"),  # whatever its stars
        "library@1.9": ("duplicate", f"{CODE}/library@1.10"),
        "library@1.10": ("kept", None),
        "six": ("kept", None),  # all of it is in the app, which is worse
        "app": ("kept", None),
        "shop": ("kept", None),
        "blog": ("kept", None),
        "chess": ("pinned", None),
        "go": ("topic", None),
    }
    assert (found["shop"]["documents"], found["shop"]["topic"]) == (4, "web")
    assert found["fork"]["share"] == pytest.approx(9 / 11, abs=0.01)
    assert 0.1 < found["app"]["share_elsewhere"] <= 0.2
    pairs = {
        (row["left"], row["right"]): row for row in ran.lake.read(_table("repository_edges")).to_pylist()
    }
    row = pairs[f"{CODE}/engine", f"{CODE}/fork"]
    assert (row["left_documents"], row["right_documents"], row["right_share"]) == (
        9,
        9,
        found["fork"]["share"],
    )
    assert (f"{CODE}/blog", f"{CODE}/shop") not in pairs


@pytest.mark.spark
def test_the_giant_component_is_told_before_and_after_topics(ran: Ran) -> None:
    assert ran.facts["largest component"] == f"40.0% of the repositories (4 of 10): {CODE}/blog"
    told = ran.facts["largest component within a topic"]
    assert told == f"20.0% of the repositories (2 of 10): {CODE}/app"
    assert (ran.facts["repositories"], ran.facts["repositories, duplicate"]) == (10, 2)
    assert "![repositories]" in ran.facts["chart"]


@pytest.mark.spark
def test_removed_repositories_take_their_documents_and_decide_no_other(ran: Ran) -> None:
    found = ran.rows(CODE, "decisions", "doc_id")
    kept = {name for name, row in found.items() if row["kept"]}
    assert {row["kept_document"] for row in found.values()} - {None} <= kept
    reasons = {name: (row["reason"], row["duplicate_of"], row["similarity"]) for name, row in found.items()}
    assert reasons["fork/engine3.py"] == ("repository", "engine/engine3.py", 1.0)
    assert reasons["fork/engine0.py"][:2] == ("repository", "engine/engine0.py")
    assert 0.8 < found["fork/engine0.py"]["similarity"] < 0.95
    assert reasons["fork/engine1.py"] == reasons["fork/fork0.py"] == ("repository", None, None)
    assert reasons["go/go0.py"] == ("topic", None, None)
    assert reasons["go/__init__.py"] == ("topic", "chess/__init__.py", 1.0)  # an empty file, kept once
    assert reasons["go/LICENSE"][0] == "topic"
    assert reasons["None/engine2.py"] == ("exact_copy", "engine/engine2.py", 1.0)
    assert reasons["app/six0.py"] == ("exact_copy", "six/six0.py", 1.0)
    assert {"None/notes.py", "library1.10/library0.py", "chess/chess0.py", "chess/__init__.py"} <= kept
    assert reasons["blog/__init__.py"] == ("exact_copy", "chess/__init__.py", 1.0)
    assert {name for name in kept if name.endswith("LICENSE")} == {reasons["go/LICENSE"][1]}
    documents = ran.lake.read(names.deduplicated(CODE), ["doc_id"])["doc_id"].to_pylist()
    assert set(documents) == kept


@pytest.mark.spark
def test_a_variant_compares_repositories_by_its_own_documents(ran: Ran) -> None:
    strict = names.variant(CODE, "strict")
    found = ran.lake.read(names.dedup(strict, "repositories")).to_pylist()
    reasons = {row["repository_id"]: row["reason"] for row in found}
    assert reasons[f"{strict}/fork"] == "kept"  # of 11 documents 8 are alike at .95
    assert reasons[f"{strict}/library@1.9"] == "duplicate"
    assert reasons[f"{strict}/go"] == "topic"
    decided = ran.rows(strict, "decisions", "doc_id")
    assert decided["fork/engine0.py"]["kept"]
    assert decided["fork/engine3.py"]["reason"] == "exact_copy"


@pytest.mark.spark
def test_trace_tells_which_repository_a_document_went_with(ran: Ran) -> None:
    ids = ["fork/engine0.py", "go/go0.py", "engine/engine0.py"]
    fork, dropped, kept = trace_documents(ran.lake, ids)
    share = ran.rows(CODE, "repositories", "repository_id")["fork"]["share"]
    assert (fork.outcome, dropped.outcome, kept.outcome) == ("repository", "repository", "under_way")
    assert fork.reason == (
        f"its repository {CODE}/fork was removed as a duplicate of {CODE}/engine, "
        f"which holds {share:.1%} of it; the kept document engine/engine0.py "
        f"resembles it (similarity {fork.similarity:.4f})"
    )
    assert dropped.reason == (
        f"its repository {CODE}/go was removed with its topic games; no kept document resembles it"
    )
    assert str(_table("repositories")) in fork.tables
    strict = fork.variants[names.variant(CODE, "strict")]
    assert (strict.outcome, strict.duplicate_of) == ("under_way", None)


@pytest.mark.spark
def test_diff_tells_which_repository_a_document_went_with(ran: Ran) -> None:
    strict = str(names.deduplicated(names.variant(CODE, "strict")))
    left = {
        cause.cause: cause.examples
        for cause in diff(ran.lake, strict, f"deduplicated.{CODE}", 20).leave.causes
    }
    examples = {document.doc_id: document for document in left["repository"]}
    assert set(examples) == {"fork/engine0.py", "fork/engine1.py", "fork/fork0.py"}
    assert all(
        f"{CODE}/fork was removed as a duplicate of" in str(document.repository)
        for document in left["repository"]
    )
    assert (examples["fork/engine1.py"].duplicate_of, examples["fork/engine1.py"].value) == (None, None)
    assert examples["fork/engine0.py"].duplicate_of == "engine/engine0.py"
    gone = {
        cause.cause: cause.examples
        for cause in diff(ran.lake, f"raw.{CODE}", f"deduplicated.{CODE}", 20).leave.causes
    }
    assert {document.doc_id for document in gone["topic"]} == {
        f"go/{file_name}" for file_name in ("go0.py", "go1.py", "LICENSE", "__init__.py")
    }
    (said,) = {document.repository for document in gone["topic"]}
    assert said == f"its repository {CODE}/go was removed with its topic games"
    assert {document.repository for document in gone["exact_copy"]} == {None}


def _table(part: str) -> TableName:
    return names.dedup(CODE, part)


DECIDED = (
    "kept boolean, reason string, duplicate_of string, similarity double, component string, "
    "kept_document string"
)


@pytest.mark.spark
def test_a_duplicate_names_a_kept_document_in_a_removed_repository_too(spark: SparkSession) -> None:
    cases: list[tuple[tuple[object, ...], bool, bool]] = [  # row, right with repositories, right without
        ((True, "kept", None, None, "a", None), True, True),
        ((False, "similar", "x", 0.9, "a", "x"), True, True),
        ((False, "similar", "x", 0.9, "a", None), False, False),
        ((False, "exact_copy", "y", 1.0, "a", "x"), True, True),
        ((False, "similar", None, None, "a", None), False, False),
        ((False, "repository", "x", 0.9, "a", "x"), True, True),
        ((False, "repository", None, None, "a", None), True, False),
        ((False, "topic", None, None, "a", None), True, False),
        ((False, "topic", "x", None, "a", "x"), False, True),
        ((False, "repository", None, 0.9, "a", None), False, False),
        ((True, "repository", "x", 0.9, "a", "x"), False, False),
        ((True, "topic", None, None, "a", None), False, True),
    ]
    rows = spark.createDataFrame([(n, *row) for n, (row, *_) in enumerate(cases)], f"n int, {DECIDED}")
    checks = [F.expr(removal_names_a_kept_document(of).violations) for of in (CHOSEN, None)]
    found = {row[0]: tuple(row[1:]) for row in rows.groupBy("n").agg(*checks).collect()}
    assert found == {n: (int(not fine), int(not without)) for n, (_, fine, without) in enumerate(cases)}


@pytest.mark.spark
def test_an_exact_copy_has_similarity_one(spark: SparkSession) -> None:
    config = DecisionConfig(threshold=0.8, keep="one_per_component", priority=())
    cases: list[tuple[tuple[object, ...], bool]] = [
        ((False, "exact_copy", "y", 1.0, "a", "x"), True),
        ((False, "exact_copy", "x", 0.85, "a", "x"), False),
        ((False, "exact_copy", "x", None, "a", "x"), False),
        ((False, "similar", "x", 0.85, "a", "x"), True),
        ((False, "similar", "x", 0.75, "a", "x"), False),
        ((False, "connected", "x", None, "a", "x"), True),
    ]
    rows = spark.createDataFrame([(n, *row) for n, (row, _) in enumerate(cases)], f"n int, {DECIDED}")
    check = F.expr(removal_is_similar_enough(config, None).violations)
    found = {row[0]: row[1] for row in rows.groupBy("n").agg(check).collect()}
    assert found == {n: int(not fine) for n, (_, fine) in enumerate(cases)}


@pytest.mark.spark
def test_a_family_is_lost_where_documents_remain_and_none_is_kept(spark: SparkSession) -> None:
    rows = [
        (True, "kept", None, None, "a", None),
        (False, "repository", "x", 0.9, "a", "x"),
        (False, "repository", None, None, "b", None),
        (False, "similar", "x", 0.9, "c", "x"),
    ]
    found = spark.createDataFrame(rows, DECIDED)
    assert violations(found, [component_keeps_a_document(CHOSEN)]) == {"no_family_is_lost": 1}
    assert violations(found, [component_keeps_a_document(None)]) == {"no_family_is_lost": 2}


def test_the_tables_of_repositories_read_what_they_are_made_of() -> None:
    first, strict = chains()
    read = reads(first.link(Deduplication).group.assets)
    assert read[f"dedup.{CODE}_topics"] == set()
    assert f"dedup.{CODE}_topics" in read[f"dedup.{CODE}_repositories"]
    assert f"dedup.{CODE}_topics" not in read[f"dedup.{CODE}_repository_edges"]
    assert f"dedup.{CODE}_repositories" in read[f"dedup.{CODE}_decisions"]
    again = reads(strict)
    assert f"dedup.{CODE}_topics" in again[f"dedup.{CODE}__strict_repositories"]
    assert f"dedup.{CODE}__strict_topics" not in again
    assert f"dedup.{CODE}__strict_repositories" in again[f"dedup.{CODE}__strict_decisions"]
    filtered = variant(first, "short", rounds=[Round()])
    assert filtered.link(Deduplication).group.repositories == CHOSEN
    assert f"dedup.{CODE}__short_topics" in reads(filtered)
    parts = {
        read.removeprefix("dedup.web_") for read in reads(dedup_group("web", ["web"], kind="code").assets)
    }
    assert not {"topics", "repository_edges", "repositories"} & parts


def test_topics_can_be_any_table_of_repositories_and_topics() -> None:
    @table_asset(namespace="clusters", name="web_topics", asset_group="test", schema=TOPICS)
    def topics(pyspark):  # type: ignore[no-untyped-def]
        return pyspark.spark_session.createDataFrame([], "repository string, topic string")

    chosen = RepositoryConfig(topics_table="clusters.web_topics", dropped_topics=("games",))
    group = dedup_group("web", ["web"], kind="code", repositories=chosen)
    read = reads(group.assets)
    assert reads([topics]).keys() <= read["dedup.web_repositories"]
    assert "dedup.web_topics" not in read


def test_prose_has_no_repositories() -> None:
    with pytest.raises(ConfigurationError, match="`web` is prose, which has no repositories"):
        dedup_group("web", ["web"], kind="prose", repositories=RepositoryConfig())
