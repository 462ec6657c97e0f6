"""The whole stage in Spark on real files, against the exact similarities of all pairs."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

import networkx as nx
import pytest
from pyspark.sql import DataFrame, SparkSession

from factory.dedup import components as components_module
from factory.dedup import edges as edges_module
from factory.dedup import large_buckets
from factory.dedup.banding import candidate_probability
from factory.dedup.config import DedupConfig
from factory.dedup.decisions import Keep, deduplicated
from factory.dedup.large_buckets import Omissions
from factory.lake.schemas.dedup import BUCKETS, COMPONENTS, DECISIONS, EDGES, SIGNATURES, VOCABULARY
from factory.lake.schemas.ingest import RAW
from tests.dedup.corpus import arrow, corpus, document, document_frequencies, similarities
from tests.dedup.group import Group, Rows, rows
from tests.frames import assert_declared, shuffle_partitions

CONFIG = DedupConfig(kind="code")
ROWS = corpus(60, seed=8)
TABLES = {
    "vocabulary": VOCABULARY,
    "signatures": SIGNATURES,
    "buckets": BUCKETS,
    "edges": EDGES,
    "components": COMPONENTS,
    "decisions": DECISIONS,
}

pytestmark = pytest.mark.spark


@dataclass(frozen=True)
class Chain:
    """A group, the rows of each of its tables sorted by key, and the kept documents."""

    group: Group
    tables: dict[str, Rows]
    kept: Rows

    def __getitem__(self, name: str) -> Rows:
        return self.tables[name]


def run(documents: DataFrame, config: DedupConfig) -> Chain:
    group = Group(documents, config)
    made = {name: getattr(group, name) for name in TABLES}
    for name, schema in TABLES.items():
        assert_declared(made[name], schema)
    kept = deduplicated(documents, group.decisions)
    assert kept.columns == RAW.names
    return Chain(
        group,
        {name: rows(made[name], *schema.key) for name, schema in TABLES.items()},
        rows(kept.select("doc_id", "text"), "doc_id"),
    )


def standing(row: dict[str, object]) -> tuple[bool, int]:
    """Originals before forks, then powers of two of stars."""
    return row.get("fork_of") is None, (int(row.get("stars") or 0) + 1).bit_length()


@pytest.fixture(scope="module")
def chain(spark: SparkSession) -> Chain:
    return run(spark.createDataFrame(arrow(ROWS)), CONFIG)


@pytest.fixture(scope="module")
def exact() -> dict[tuple[str, str], float]:
    return similarities(ROWS)


def test_the_vocabulary_counts_every_token(chain: Chain) -> None:
    in_documents, occurrences = document_frequencies(ROWS)
    counted = {row["token"]: row for row in chain["vocabulary"]}
    assert {token: row["document_frequency"] for token, row in counted.items()} == in_documents
    assert {token: row["term_frequency"] for token, row in counted.items()} == occurrences
    assert {row["n_documents"] for row in chain["vocabulary"]} == {len(ROWS)}
    frequent = {row["text"] for row in chain["vocabulary"] if row["text"]}
    assert {"def", "import", "self"} < frequent
    assert all((row["text"] is not None) == (row["document_frequency"] >= 10) for row in chain["vocabulary"])


def test_each_distinct_text_has_one_signature_of_its_best_copy(chain: Chain) -> None:
    copies: dict[object, Rows] = {}
    for row in ROWS:
        copies.setdefault(row["content_hash"], []).append(row)
    assert len(chain["signatures"]) == len(copies) < len(ROWS)
    for signed in chain["signatures"]:
        group = copies[signed["content_hash"]]
        assert signed["copies"] == len(group)
        chosen = next(row for row in group if row["doc_id"] == signed["doc_id"])
        assert standing(chosen) == max(standing(row) for row in group)
        assert (signed["signature"] is None) == (signed["n_tokens"] == 0)
    assert len({row["version"] for row in chain["signatures"]}) == 1


def test_every_signature_is_in_one_bucket_a_band(chain: Chain) -> None:
    signed = {row["doc_id"]: row["signature"] for row in chain["signatures"] if row["signature"]}
    assert {row["doc_id"] for row in chain["buckets"]} == signed.keys()
    size = CONFIG.banding.rows
    by_bucket: dict[object, set[bytes]] = {}
    for row in chain["buckets"]:
        assert len(row["buckets"]) == CONFIG.banding.bands
        for band, bucket in enumerate(row["buckets"]):
            values = signed[row["doc_id"]][band * size : (band + 1) * size]
            by_bucket.setdefault(bucket, set()).add(bytes([band]) + values)
    assert all(len(values) == 1 for values in by_bucket.values())
    assert len(by_bucket) == len(set().union(*by_bucket.values()))


def test_every_edge_has_the_exact_similarity_and_few_are_missed(
    chain: Chain, exact: dict[tuple[str, str], float]
) -> None:
    representatives = {row["doc_id"] for row in chain["signatures"]}
    similar = {pair: s for pair, s in exact.items() if s >= CONFIG.threshold and set(pair) <= representatives}
    found = {(row["left"], row["right"]): row for row in chain["edges"]}
    assert len(found) == len(chain["edges"]) > 50
    assert set(found) <= set(similar)
    for pair, row in found.items():
        assert row["similarity"] == pytest.approx(similar[pair], abs=1e-12)
        assert row["estimate"] == pytest.approx(similar[pair], abs=0.13)
    expected = sum(candidate_probability(s, CONFIG.banding) for s in similar.values()) / len(similar)
    assert len(found) / len(similar) > expected - 0.03 > 0.9
    assert {pair for pair, s in similar.items() if s > 0.92} <= set(found)


def test_components_are_those_of_the_edges(chain: Chain) -> None:
    graph = nx.Graph()
    graph.add_nodes_from(row["doc_id"] for row in chain["signatures"])
    graph.add_edges_from((row["left"], row["right"]) for row in chain["edges"])
    expected = {name: min(nodes) for nodes in nx.connected_components(graph) for name in nodes}
    assert {row["doc_id"]: row["component"] for row in chain["components"]} == expected


def test_no_edge_joins_kept_documents_and_others_name_the_nearest(chain: Chain) -> None:
    assert [row["doc_id"] for row in chain["decisions"]] == sorted(row["doc_id"] for row in ROWS)
    decided = {row["doc_id"]: row for row in chain["decisions"]}
    joined: dict[object, dict[object, float]] = {}
    for edge in chain["edges"]:
        assert not (decided[edge["left"]]["kept"] and decided[edge["right"]]["kept"])
        joined.setdefault(edge["left"], {})[edge["right"]] = edge["similarity"]
        joined.setdefault(edge["right"], {})[edge["left"]] = edge["similarity"]
    similar = [row for row in decided.values() if row["reason"] == "similar"]
    assert len(similar) > 20
    for row in similar:
        assert decided[row["duplicate_of"]]["kept"]
        kept = {name: s for name, s in joined[row["doc_id"]].items() if decided[name]["kept"]}
        assert row["similarity"] == max(kept.values()) == kept[row["duplicate_of"]]
        assert row["component"] == decided[row["duplicate_of"]]["component"]
        assert row["kept_document"] == row["duplicate_of"]


def test_an_exact_copy_names_a_document_of_its_text_and_the_kept_one(chain: Chain) -> None:
    decided = {row["doc_id"]: row for row in chain["decisions"]}
    first = {row["content_hash"]: decided[row["doc_id"]] for row in chain["signatures"]}
    copies = [row for row in ROWS if decided[row["doc_id"]]["reason"] == "exact_copy"]
    of_kept = [row for row in copies if first[row["content_hash"]]["kept"]]
    assert of_kept
    assert len(of_kept) < len(copies)  # the corpus has both kinds
    for row in copies:
        decision, representative = decided[row["doc_id"]], first[row["content_hash"]]
        assert not decision["kept"]
        stays = representative["doc_id"] if representative["kept"] else representative["duplicate_of"]
        named = (decision["duplicate_of"], decision["similarity"], decision["kept_document"])
        assert named == (representative["doc_id"], 1.0, stays)
        assert decided[stays]["kept"]


@pytest.mark.parametrize("keep", ["one_per_component", "cover"])
def test_the_other_keep_rules_also_name_a_kept_document(chain: Chain, keep: Keep) -> None:
    decided = {row["doc_id"]: row for row in rows(chain.group.decided(CONFIG.changed(keep=keep)), "doc_id")}
    first = {row["doc_id"] for row in chain["signatures"] if row["signature"]}
    graph = nx.Graph()
    graph.add_nodes_from(first)
    graph.add_weighted_edges_from((row["left"], row["right"], row["similarity"]) for row in chain["edges"])
    kept = {name for name in first if decided[name]["kept"]}
    assert set(nx.isolates(graph)) <= kept
    if keep == "cover":
        assert all(left in kept or right in kept for left, right in graph.edges)
    else:
        assert all(len(kept & nodes) == 1 for nodes in nx.connected_components(graph))
    for name, row in decided.items():
        if not row["kept"]:
            partner = row["kept_document"]
            assert decided[partner]["kept"]
            if name in first:
                joined = graph.get_edge_data(name, partner, {}).get("weight")
                assert row["similarity"] == joined
                assert row["reason"] == ("connected" if joined is None else "similar")
                assert nx.has_path(graph, name, partner)
    reasons = Counter(row["reason"] for row in decided.values())
    assert (reasons["connected"] > 0) == (keep == "one_per_component")
    assert reasons["similar"] > 20


@pytest.mark.invariant("At most one document of each text is kept, with or without tokens.")
def test_of_each_text_without_tokens_the_best_copy_is_kept(chain: Chain) -> None:
    nothing = {row["doc_id"]: row for row in ROWS if str(row["key"]).startswith("nothing")}
    found = [row for row in chain["decisions"] if row["reason"] == "no_tokens"]
    texts = {row["content_hash"]: row["doc_id"] for row in chain["signatures"] if row["signature"] is None}
    assert [row["doc_id"] for row in found] == sorted(texts.values())
    assert len(texts) == 3 < len(nothing)
    columns = ("kept", "reason", "duplicate_of", "similarity", "component")
    for row in chain["decisions"]:
        if row["doc_id"] in nothing and row not in found:
            original = texts[nothing[row["doc_id"]]["content_hash"]]
            assert [row[name] for name in columns] == [False, "exact_copy", original, 1.0, None]
    for row in found:
        assert [row[name] for name in columns] == [True, "no_tokens", None, None, None]


def test_the_kept_documents_are_the_decided_ones_unchanged(chain: Chain) -> None:
    texts = {row["doc_id"]: row["text"] for row in ROWS}
    kept = [row["doc_id"] for row in chain["decisions"] if row["kept"]]
    assert chain.kept == [{"doc_id": name, "text": texts[name]} for name in kept]
    assert len(kept) < len(ROWS)


def test_tables_do_not_depend_on_partitions_order_or_algorithm(
    spark: SparkSession, chain: Chain, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(components_module, "ONE_TASK_EDGES", 0)
    with shuffle_partitions(spark, 7):
        again = run(spark.createDataFrame(arrow(ROWS[::-1])).repartition(5, "key"), CONFIG)
    for name in TABLES:
        assert again[name] == chain[name], name
    assert again.kept == chain.kept


def test_large_buckets_keep_what_all_their_pairs_would_keep(
    chain: Chain, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(edges_module, "PAIR_BUCKET", 2)
    given = ("bags", "vocabulary", "signatures", "buckets", "components")
    tables = {name: getattr(chain.group, name) for name in given}
    all_edges = {(row["left"], row["right"]): (row["estimate"], row["similarity"]) for row in chain["edges"]}
    all_kept = {row["doc_id"] for row in chain["decisions"] if row["kept"]}
    for leading in [(4096,), (2, 4, 64)]:  # cells of one task, and of several
        monkeypatch.setattr(large_buckets, "LEADING", leading)
        few = Group(chain.group.documents, CONFIG, **tables)
        found = {(row.left, row.right): (row.estimate, row.similarity) for row in few.edges.collect()}
        assert len(found) == few.edges.count() > 40
        assert found.items() <= all_edges.items()
        assert {row.doc_id for row in few.decisions.where("kept").collect()} == all_kept
        assert few.compared.omissions == Omissions()


def test_edges_of_large_buckets_do_not_depend_on_tasks_and_count_what_is_left(
    spark: SparkSession, chain: Chain, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(edges_module, "PAIR_BUCKET", 2)
    monkeypatch.setattr(large_buckets, "LEADING", (1, 2))
    monkeypatch.setattr(large_buckets, "MEMBERS_PER_PART", 1)
    given = ("bags", "vocabulary", "signatures", "buckets")
    tables = {name: getattr(chain.group, name) for name in given}
    few = Group(chain.group.documents, CONFIG, **tables)
    with shuffle_partitions(spark, 7):
        again = Group(chain.group.documents, CONFIG, **tables)
        assert rows(again.edges, "left", "right") == rows(few.edges, "left", "right")
    left_out = few.compared.omissions
    assert left_out == again.compared.omissions
    assert left_out.members > 0 < left_out.pairs
    assert f"{left_out.members:,} documents of large buckets" in left_out.sentence()


def test_the_fast_scheme_and_narrow_values_find_nearly_all_edges(
    spark: SparkSession, exact: dict[tuple[str, str], float]
) -> None:
    config = DedupConfig(kind="code", scheme="cell_oph", values=512, value_bits=2)
    chain = run(spark.createDataFrame(arrow(ROWS)), config)
    representatives = {row["doc_id"] for row in chain["signatures"]}
    similar = {pair for pair, s in exact.items() if s >= config.threshold and set(pair) <= representatives}
    found = {(row["left"], row["right"]) for row in chain["edges"]}
    assert found <= similar
    assert len(found) > 0.93 * len(similar)
    for row in chain["edges"]:
        assert row["estimate"] == pytest.approx(row["similarity"], abs=0.13)


def test_a_group_without_tokens_is_kept_whole(spark: SparkSession) -> None:
    chain = run(spark.createDataFrame(arrow([document("a", ""), document("b", "()")])), CONFIG)
    assert [chain[name] for name in ("vocabulary", "buckets", "edges")] == [[], [], []]
    assert [row["reason"] for row in chain["decisions"]] == ["no_tokens", "no_tokens"]
    assert len(chain.kept) == 2
