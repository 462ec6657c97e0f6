"""Repositories and the documents that stay without them, against sets by brute force and networkx."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import networkx as nx
import pytest
from pydantic import ValidationError
from pyspark.sql import DataFrame, SparkSession

from factory.dedup import repository_edges as repository_edges_module
from factory.dedup.decisions import DecisionConfig, decisions
from factory.dedup.repositories import RepositoryDecisionConfig, facts, repositories
from factory.dedup.repository_config import RepositoryConfig
from factory.dedup.repository_decisions import decisions_without
from factory.dedup.repository_edges import BEST_HOLDERS, PAIR_REPOSITORIES, repository_edges
from factory.dedup.repository_nodes import repositories_of, repository_id, texts_held
from factory.errors import ConfigurationError
from factory.lake import repository as named
from factory.lake.schemas.dedup import DECISIONS, REPOSITORIES, REPOSITORY_EDGES
from tests.dedup.repositories import CONFIG, Corpus, Oracle, Pair, random_corpus, rank
from tests.frames import shuffle_partitions

Rows = dict[str, dict[str, Any]]

spark_test = pytest.mark.spark


@pytest.fixture(scope="module")
def spark(spark: SparkSession) -> Iterator[SparkSession]:
    """Spark that plans once, and into one partition: for a hundred rows it plans longer than it computes."""
    adaptive = "spark.sql.adaptive.enabled"
    before = spark.conf.get(adaptive)
    spark.conf.set(adaptive, "false")
    try:
        with shuffle_partitions(spark, 1):
            yield spark
    finally:
        spark.conf.set(adaptive, before)


DECISIONS_CONFIG = CONFIG.part(DecisionConfig)


def deciding(chosen: RepositoryConfig) -> RepositoryDecisionConfig:
    return RepositoryDecisionConfig(
        threshold=CONFIG.threshold,
        priority=CONFIG.priority,
        share=chosen.share,
        pinned=chosen.pinned,
        dropped_topics=chosen.dropped_topics,
    )


def published(frame: DataFrame) -> DataFrame:
    """The rows of a frame, computed once."""
    return frame.sparkSession.createDataFrame(frame.toArrow(), frame.schema)


class Made:
    """What the stage makes of a corpus."""

    def __init__(
        self,
        spark: SparkSession,
        corpus: Corpus,
        chosen: RepositoryConfig,
        topics: dict[str, str] | None = None,
        limits: tuple[int, int] = (PAIR_REPOSITORIES, BEST_HOLDERS),
    ) -> None:
        documents, signatures, edges, components = corpus.frames(spark)
        labels = spark.createDataFrame(sorted((topics or {}).items()), "repository string, topic string")
        config = deciding(chosen)
        with pytest.MonkeyPatch.context() as patch:
            for name, limit in zip(("PAIR_REPOSITORIES", "BEST_HOLDERS"), limits, strict=True):
                patch.setattr(repository_edges_module, name, limit)
            pairs = published(repository_edges(documents, signatures, edges, config))
            assert pairs.columns == REPOSITORY_EDGES.names
            decided = published(
                repositories(
                    documents, signatures, edges, components, pairs, labels if topics else None, config
                )
            )
        assert decided.columns == REPOSITORIES.names
        rows = pairs.collect()
        self.pairs: dict[Pair, tuple[object, ...]] = {(row.left, row.right): tuple(row)[2:-1] for row in rows}
        assert len(self.pairs) == len(rows)
        self.repositories: Rows = {row.repository_id: row.asDict() for row in decided.collect()}
        self.facts = facts(decided, chosen.pinned, chosen.dropped_topics)
        self._decided = documents, signatures, edges, components, decided

    @cached_property
    def decisions(self) -> list[dict[str, Any]]:
        frame = decisions_without(*self._decided, DECISIONS_CONFIG)
        assert frame.columns == DECISIONS.names
        return [row.asDict() for row in frame.collect()]

    def kept(self) -> set[str]:
        return {name for name, row in self.repositories.items() if row["kept"]}


def fields(rows: Rows, *columns: str) -> dict[str, tuple[Any, ...]]:
    return {name: tuple(row[column] for column in columns) for name, row in rows.items()}


TOPICS = {f"r{number}": ("web", "games", "tools")[number % 3] for number in range(10)}
BY_TOPIC = RepositoryConfig(share=0.6, topics=TOPICS, dropped_topics=("games",), pinned=("r4",))
CASES = [
    (0, RepositoryConfig(), None, (PAIR_REPOSITORIES, BEST_HOLDERS)),
    (1, RepositoryConfig(share=0.5, pinned=("r1", "r2@1.9")), None, (3, 2)),
    (2, BY_TOPIC, TOPICS, (2, 1)),
]


@dataclass(frozen=True)
class Case:
    """A random corpus, the tables made from it, and the same by sets."""

    corpus: Corpus
    chosen: RepositoryConfig
    topics: dict[str, str] | None
    made: Made
    oracle: Oracle


@pytest.fixture(
    scope="module",
    params=[pytest.param(0, marks=pytest.mark.slow), pytest.param(1, marks=pytest.mark.slow), 2],
)
def case(spark: SparkSession, request: pytest.FixtureRequest) -> Case:
    seed, chosen, topics, limits = CASES[request.param]
    corpus = random_corpus(seed)
    made = Made(spark, corpus, chosen, topics, limits)
    return Case(corpus, chosen, topics, made, Oracle(corpus, chosen, topics, limits))


@pytest.mark.invariant(
    "Texts that repositories share are counted exactly, and a text in all repositories makes no clique."
)
@spark_test
def test_pairs_are_those_that_sets_find_with_exact_counts(case: Case) -> None:
    expected = case.oracle.pairs()
    assert case.made.pairs == expected
    assert len(expected) > 3


@pytest.mark.invariant(
    "No kept repository duplicates a better kept one of its topic. A removed repository names a kept one "
    "that contains enough of it, and pinned repositories stay."
)
@spark_test
def test_repositories_go_by_the_keep_rule(case: Case) -> None:
    expected = case.oracle.decided(case.made.pairs)
    assert fields(case.made.repositories, "reason", "duplicate_of", "share") == expected
    reasons = Counter(reason for reason, _, _ in expected.values())
    assert reasons.pop("duplicate") > 1
    possible = {"kept": True, "pinned": case.chosen.pinned, "topic": case.topics}
    assert set(reasons) == {reason for reason, it in possible.items() if it}


@pytest.mark.invariant(
    "No kept repository duplicates a better kept one of its topic. A removed repository names a kept one "
    "that contains enough of it, and pinned repositories stay."
)
@spark_test
def test_removed_repositories_name_kept_ones_not_duplicates(case: Case) -> None:
    made, oracle, kept = case.made, case.oracle, case.made.kept()
    for name, row in made.repositories.items():
        if row["reason"] == "duplicate":
            assert row["duplicate_of"] in kept
            assert row["share"] == oracle.shared(name, [row["duplicate_of"]])[2] >= case.chosen.share
        assert row["kept"] == (row["reason"] in ("kept", "pinned"))
        assert row["kept"] or not oracle.pinned(name)
    for left, right in made.pairs:
        better, worse = sorted((left, right), key=oracle.order.index)
        if {left, right} <= kept and oracle.topic[left] == oracle.topic[right] and not oracle.pinned(worse):
            assert oracle.shared(worse, [better])[2] < case.chosen.share


@spark_test
def test_components_join_repositories_that_share_one_of_documents(case: Case) -> None:
    corpus, made, oracle = case.corpus, case.made, case.oracle
    texts = nx.Graph(list(corpus.edges))
    texts.add_nodes_from(document["content_hash"] for document in corpus.documents)
    component = {text: number for number, of in enumerate(nx.connected_components(texts)) for text in of}
    for column, by_topic in (("component", False), ("component_in_topic", True)):
        graph = nx.Graph()
        graph.add_nodes_from(oracle.documents)
        for name in oracle.documents:
            topic = oracle.topic[name] if by_topic else None
            graph.add_edges_from(
                (name, (component[it["content_hash"]], topic)) for it in oracle.compared(name)
            )
        expected = {}
        for nodes in nx.connected_components(graph):
            names = [node for node in nodes if isinstance(node, str)]
            expected |= dict.fromkeys(names, min(names))
        assert {name: row[column] for name, row in made.repositories.items()} == expected
        largest = max(Counter(expected.values()).values())
        fact = "largest component within a topic" if by_topic else "largest component"
        share = f"{largest / len(expected):.1%} of the repositories ({largest} of {len(expected)}): "
        assert str(made.facts[fact]).startswith(share)


@spark_test
def test_a_repository_counts_shared_and_common_documents(case: Case) -> None:
    oracle = case.oracle
    for name, row in case.made.repositories.items():
        held, others = oracle.documents[name], [document for document in oracle.documents if document != name]
        assert row["share_elsewhere"] == oracle.shared(name, others)[2]
        assert (row["documents"], row["bytes"]) == (len(held), sum(int(str(it["n_bytes"])) for it in held))
        assert row["common_documents"] == len(oracle.common(name))


@pytest.mark.invariant("A removed repository never removes documents outside it.")
@spark_test
def test_documents_are_decided_among_those_of_kept_repositories(case: Case) -> None:
    corpus, made = case.corpus, case.made
    gone = {
        name: "topic" if row["reason"] == "topic" else "repository"
        for name, row in made.repositories.items()
        if not row["kept"]
    }
    of = {
        row["doc_id"]: named.repository_id("code", row["repository"], row.get("revision"))  # type: ignore[arg-type]
        for row in corpus.documents
    }
    best: dict[str, dict[str, Any]] = {}
    for row in sorted(
        (document for document in corpus.documents if of[document["doc_id"]] not in gone), key=rank
    ):
        best.setdefault(str(row["content_hash"]), row)
    graph = nx.Graph()
    graph.add_weighted_edges_from((left, right, edge) for (left, right), edge in corpus.edges.items())
    graph.add_nodes_from(corpus.first)
    kept: list[str] = []
    for text in sorted(best, key=lambda text: rank(best[text])):
        if not any(other in graph[text] for other in kept):
            kept.append(text)
    found = {row["doc_id"]: row for row in made.decisions}
    assert len(found) == len(made.decisions) == len(corpus.documents)
    label = {text: min(corpus.first[it] for it in of) for of in nx.connected_components(graph) for text in of}
    for row in corpus.documents:
        text, decided = str(row["content_hash"]), found[row["doc_id"]]
        stays = text in kept and best[text]["doc_id"] == row["doc_id"]
        evidence: tuple[object, object] = (None, None)
        if text in kept:
            evidence = (best[text]["doc_id"], 1.0)
        else:
            near = [(graph[text][it]["weight"], -kept.index(it), it) for it in graph[text] if it in kept]
            evidence = (best[max(near)[2]]["doc_id"], max(near)[0]) if near else (None, None)
        reason = gone.get(of[row["doc_id"]] or "")
        if reason is None and stays:
            reason, evidence = ("no_tokens" if text == "nothing" else "kept"), (None, None)
        stand_in = evidence[0]
        if reason is None:
            reason = "similar" if best[text]["doc_id"] == row["doc_id"] else "exact_copy"
        if reason == "exact_copy":
            evidence = (best[text]["doc_id"], 1.0)
        assert (decided["reason"], decided["duplicate_of"], decided["similarity"]) == (reason, *evidence)
        assert decided["kept_document"] == stand_in
        assert decided["kept"] == (reason in ("kept", "no_tokens"))
        assert decided["component"] == (None if text == "nothing" else label[text])
        assert stand_in is None or found[stand_in]["kept"]
    assert {row["reason"] for row in made.decisions} >= {"repository", "exact_copy", "kept", "no_tokens"}


@spark_test
@pytest.mark.parametrize("case", [2], indirect=True)
def test_tables_do_not_depend_on_partitions_or_the_order_of_rows(spark: SparkSession, case: Case) -> None:
    corpus, made = case.corpus, case.made
    turned = Corpus(corpus.documents[::-1], dict(reversed(corpus.edges.items())))
    assert turned.first != corpus.first  # other rows stand for the texts: only their names may differ
    with shuffle_partitions(spark, 3):
        again = Made(spark, turned, case.chosen, case.topics, CASES[2][3])
    assert again.pairs == made.pairs
    assert again.repositories == made.repositories

    def plain(rows: list[dict[str, Any]]) -> list[tuple[Any, ...]]:
        return sorted((row["doc_id"], row["reason"], row["duplicate_of"], row["similarity"]) for row in rows)

    assert plain(again.decisions) == plain(made.decisions)


@spark_test
def test_if_all_repositories_stay_documents_are_decided_as_without(spark: SparkSession) -> None:
    made = random_corpus(4)
    made.documents.sort(key=rank)  # so that the best copy stands for each text, as in the tables
    documents, signatures, edges, components = made.frames(spark)
    none = spark.createDataFrame([], "repository_id string, kept boolean, reason string")
    given = documents, signatures, edges, components
    kept_all = decisions_without(*given, none, DECISIONS_CONFIG).collect()
    assert sorted(kept_all) == sorted(decisions(*given, DECISIONS_CONFIG).collect())


@pytest.mark.invariant(
    "Texts that repositories share are counted exactly, and a text in all repositories makes no clique."
)
@spark_test
def test_forks_of_one_original_make_no_clique_and_all_go(spark: SparkSession) -> None:
    made, n = Corpus(), 40
    for number in range(n):
        made.add(f"fork{number}", "license", "setup", "main", fork_of="original", stars=9)
    made.add("original", "license", "setup", "main")
    for number in range(n):
        made.add(f"other{number}", "license", *(f"{number}_{i}" for i in range(3)))
    best = 4
    found = Made(spark, made, RepositoryConfig(), limits=(20, best))
    assert len(found.pairs) <= 2 * n * best < n * n / 2
    reasons = Counter(row["reason"] for row in found.repositories.values())
    assert reasons == {"duplicate": n, "kept": n + 1}
    assert {row["duplicate_of"] for row in found.repositories.values()} == {None, "code/original"}
    assert str(found.facts["largest component"]).startswith("100.0% of the repositories (81 of 81)")
    assert found.repositories["code/other0"]["common_documents"] == 1


@pytest.fixture(scope="module")
def small(spark: SparkSession) -> Made:
    """A vendored library, repositories similar by count or by length alone, and two revisions."""
    made = Corpus()
    made.add("six", "six", "compat", stars=900)
    made.add("app", "six", "compat", *(f"app{number}" for number in range(8)), stars=20)
    made.add("copy", "six", "compat", stars=1)
    made.add("base", *(f"small{number}" for number in range(9)), n_bytes=1000)
    made.add("base", "long", n_bytes=9000)
    made.add("many", *(f"small{number}" for number in range(9)), n_bytes=10)
    made.add("many", "own", n_bytes=900)
    made.add("one", "long", n_bytes=9000)
    made.add("one", "own1", "own2", n_bytes=10)
    made.add("dated", "old1", "old2", revision="2.0")
    made.add("dated", "old1", "old2", revision="1.0")  # published later: the date decides
    return Made(spark, made, RepositoryConfig())


@spark_test
def test_a_vendored_library_that_ranks_first_is_kept(small: Made) -> None:
    found = fields(small.repositories, "reason", "duplicate_of")
    assert found["code/six"] == found["code/app"] == ("kept", None)
    assert found["code/copy"] == ("duplicate", "code/six")
    assert small.pairs["code/app", "code/six"] == (2, 2, 200, 200, 0.2, 1.0)
    reasons = {decision["doc_id"]: decision["reason"] for decision in small.decisions}
    assert [reasons[f"d{number:05}"] for number in range(4)] == ["kept", "kept", "exact_copy", "exact_copy"]


@spark_test
def test_neither_many_small_files_nor_a_long_one_make_a_duplicate(small: Made) -> None:
    for name in ("base", "many", "one"):
        assert small.repositories[f"code/{name}"]["reason"] == "kept"
        assert not any(f"code/{name}" in pair for pair in small.pairs)


@spark_test
def test_the_date_of_a_revision_counts_more_than_its_number(small: Made) -> None:
    assert small.repositories["code/dated@2.0"]["duplicate_of"] == "code/dated@1.0"


@spark_test
def test_revisions_without_dates_stay_by_number(spark: SparkSession) -> None:
    made = Corpus()
    for revision in ("1.9", "1.10", "1.10rc2", "1.10.post1", "0.99"):
        made.add("undated", "text", revision=revision, created_at=None)
    documents, signatures, *_ = made.frames(spark)
    held = texts_held(documents, signatures)
    ranked = repositories_of(documents, held, CONFIG.priority, ()).orderBy("rank").collect()
    assert [row.revision for row in ranked] == ["1.10.post1", "1.10", "1.10rc2", "1.9", "0.99"]


@spark_test
def test_spark_and_python_give_a_repository_the_same_id(spark: SparkSession) -> None:
    given = [("code", "a/b", "1"), ("code__x", "a", None), ("code", None, "1"), ("code", "", "")]
    rows = spark.createDataFrame(given, "dataset string, repository string, revision string")
    by_spark = [row[0] for row in rows.select(repository_id()).collect()]
    by_python = [named.repository_id(*row) for row in given]
    assert by_spark == by_python == ["code/a/b@1", "code__x/a", None, "code/@"]


@spark_test
def test_a_corpus_without_repositories_keeps_its_documents(spark: SparkSession) -> None:
    made = Corpus()
    made.add(None, "a", "a", "b")
    made.add_edge("a", "b")
    found = Made(spark, made, RepositoryConfig())
    assert (found.pairs, found.repositories) == ({}, {})
    none = dict.fromkeys(("largest component", "largest component within a topic"), "none")
    assert found.facts == {"repositories": 0, **none}
    assert sorted(row["reason"] for row in found.decisions) == ["exact_copy", "kept", "similar"]


@spark_test
def test_pins_and_topics_without_a_repository_are_reported(spark: SparkSession) -> None:
    found = spark.createDataFrame(
        [("a", "1", "web", "pinned", "x", "x")],
        "repository string, revision string, topic string, reason string, component string, "
        "component_in_topic string",
    )
    chosen = RepositoryConfig(
        topics={"a": "web", "b": "games"}, dropped_topics=("games",), pinned=("a", "a@1", "a@2", "c")
    )
    reported = facts(found, chosen.pinned, chosen.dropped_topics)
    assert reported["pinned but missing"] == "a@2, c"
    assert reported["dropped topics without a repository"] == "games"
    assert (reported["repositories"], reported["repositories, pinned"]) == (1, 1)


@spark_test
def test_a_table_of_topics_without_its_columns_is_refused_by_name(spark: SparkSession) -> None:
    made = Corpus()
    made.add("a", "x")
    documents, signatures, edges, components = made.frames(spark)
    none = spark.createDataFrame([], "left string, right string")
    wrong = spark.createDataFrame([("a", "x")], "repository string, label string")
    with pytest.raises(ConfigurationError, match="lacks column `topic`"):
        repositories(documents, signatures, edges, components, none, wrong, deciding(RepositoryConfig()))


@pytest.mark.parametrize(
    "wrong, error",
    [
        ({"share": 0}, "share"),
        ({"topic": {}}, "topic"),
        ({"topics": {"a": ""}}, "topics"),
        ({"topics_table": "topics"}, "`topics` is not a table"),
        ({"topics_table": "clusters.web", "topics": {"a": "b"}}, "in table `clusters.web`. Leave one out"),
        (
            {"topics": {"a": "web"}, "dropped_topics": ["wbe"]},
            "No repository in `topics` has the topic `wbe`",
        ),
        ({"dropped_topics": ["web"]}, "No repository in `topics` has the topic `web`"),
    ],
)
def test_a_wrong_setting_is_refused(wrong: dict[str, Any], error: str) -> None:
    with pytest.raises(ValidationError, match=error):
        RepositoryConfig(**wrong)


def test_a_table_may_have_topics_that_are_not_known_yet() -> None:
    chosen = RepositoryConfig(topics_table="clusters.code_topics", dropped_topics=("web",))
    assert chosen.topics_table == "clusters.code_topics"
