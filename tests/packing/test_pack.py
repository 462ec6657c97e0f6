"""Tokenizing and packing through Spark: texts come back, and the tables depend on the documents alone."""

from __future__ import annotations

import random
from collections import defaultdict
from dataclasses import dataclass

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from bench.packing.metrics import measure
from bench.packing.next_fit import next_fit_chunk
from factory.errors import ConfigurationError, NotFound
from factory.lake.schemas.models import TOKENIZER
from factory.lake.schemas.packing import PACKED, PLACEMENTS, TOKENIZED
from factory.models.tokenizer import END_OF_TEXT, tokenizer_table, train, training_sample
from factory.packing.pack import PackConfig, pack, placements, resolve
from factory.packing.tokenize import TokenizeConfig, tokenize
from spark_udfs.models.tokenizer import load
from spark_udfs.packing.pack import plan_chunk
from spark_udfs.packing.tokenize import decode
from tests.packing.visible import visible_dependencies

pytestmark = pytest.mark.spark

CONFIG = PackConfig(sequence_length=64, chunk_documents=7, shards=2, slack=0.1)
ODD_TEXTS = ["", END_OF_TEXT, f"x{END_OF_TEXT}y", "naïve 👩‍👩‍👧", "\r\n\t\x00", "long " * 200]
TOKENIZER_JSON = train(iter(["def f(x):\n    return x + 1\n", "alpha beta gamma delta"] * 20), 300)

Document = dict[str, object]


def corpus() -> list[Document]:
    """Four repositories of Python-like files in two revisions each, and odd texts in no repository."""
    chance = random.Random(11)
    words = ["alpha", "beta", "return", "x + 1", "def f(x):\n", "Ω"]
    documents: list[Document] = [
        {
            "doc_id": f"{chance.getrandbits(64):016x}",
            "repository": f"repository{r // 2}",
            "revision": "ab"[r % 2],
            "position": position,
            "text": " ".join(chance.choices(words, k=chance.randint(1, 30))),
            "partition": None,
        }
        for r in range(8)
        for position in range(chance.randint(1, 14))
    ]
    odd = {"repository": None, "revision": None, "position": 0, "partition": None}
    return documents + [odd | {"doc_id": f"odd{i}", "text": text} for i, text in enumerate(ODD_TEXTS)]


DOCUMENTS = corpus()
DEPENDENCIES = [
    (dependent["doc_id"], dependency["doc_id"])
    for dependent in DOCUMENTS
    for dependency in DOCUMENTS
    if dependency["repository"] == dependent["repository"] is not None
    and dependency["revision"] == dependent["revision"]
    and int(dependent["position"]) - int(dependency["position"]) in (1, 3)  # type: ignore[call-overload]
]
TYPES = {"position": pa.int64()}  # others are strings


def frame(spark: SparkSession, documents: list[Document]) -> DataFrame:
    columns = pa.schema([(name, TYPES.get(name, pa.string())) for name in DOCUMENTS[0]])
    return spark.createDataFrame(pa.Table.from_pylist(documents, schema=columns))


@dataclass(frozen=True)
class Packed:
    """The tables of the corpus as frames and as rows."""

    tokenized: DataFrame
    dependencies: DataFrame
    packed: DataFrame
    tokens: list[dict]
    sequences: list[dict]


@pytest.fixture(scope="module")
def tables(spark: SparkSession) -> Packed:
    dependencies = spark.createDataFrame(DEPENDENCIES, "doc_id string, depends_on string")
    tokenized = tokenize(frame(spark, DOCUMENTS).repartition(3), TOKENIZER_JSON).localCheckpoint()
    packed = pack(tokenized, dependencies, CONFIG).localCheckpoint()
    return Packed(
        tokenized,
        dependencies,
        packed,
        tokenized.toArrow().to_pylist(),
        sorted(packed.toArrow().to_pylist(), key=lambda row: row["ordinal"]),
    )


def test_the_tables_have_the_declared_columns(tables: Packed) -> None:
    assert tables.tokenized.columns == TOKENIZED.names
    assert tables.packed.columns == PACKED.names
    assert placements(tables.packed).columns == PLACEMENTS.names


def test_every_text_comes_back_from_its_sequences(tables: Packed) -> None:
    pieces: dict[str, dict[int, bytes]] = defaultdict(dict)
    for row in tables.sequences:
        at = 0
        for segment in row["segments"]:
            end = at + segment["length"]
            pieces[segment["doc_id"]][segment["doc_offset"]] = row["tokens"][2 * at : 2 * end]
            at = end
        assert at == row["n_tokens"] <= CONFIG.sequence_length
        assert len(row["tokens"]) == 2 * at
    end = load(TOKENIZER_JSON).token_to_id(END_OF_TEXT)
    for document in DOCUMENTS:
        offsets = sorted(pieces[str(document["doc_id"])].items())
        tokens = b"".join(part for _, part in offsets)
        assert decode(tokens, TOKENIZER_JSON, None, end) == document["text"]


def test_a_document_without_a_repository_is_its_own(tables: Packed) -> None:
    repositories = {row["doc_id"]: row["repository"] for row in tables.tokens}
    assert {repositories[str(d["doc_id"])] == (d["repository"] or d["doc_id"]) for d in DOCUMENTS} == {True}


def test_without_positions_every_document_stands_alone(spark: SparkSession) -> None:
    rows = tokenize(frame(spark, DOCUMENTS[:3]).drop("position"), TOKENIZER_JSON).select(
        "doc_id", "repository", "position"
    )
    assert {tuple(row) for row in rows.collect()} == {(d["doc_id"], d["doc_id"], 0) for d in DOCUMENTS[:3]}


def test_begin_and_end_tokens_are_set_for_a_dataset(spark: SparkSession) -> None:
    one = frame(spark, [{**DOCUMENTS[0], "text": ""}])
    lengths = [
        tokenize(one, TOKENIZER_JSON, TokenizeConfig(begin=begin, end=end)).collect()[0].n_tokens
        for begin, end in [(None, None), (END_OF_TEXT, END_OF_TEXT)]
    ]
    assert lengths == [0, 2]
    with pytest.raises(ConfigurationError, match="no token `<s>`"):
        tokenize(one, TOKENIZER_JSON, TokenizeConfig(begin="<s>"))


@pytest.mark.invariant(
    "Ordinals are dense and follow from shard, chunk and plan, in any order of the input rows."
)
def test_ordinals_follow_shard_and_chunk_without_a_gap(tables: Packed) -> None:
    assert [row["ordinal"] for row in tables.sequences] == list(range(len(tables.sequences)))
    chunks = [(row["append"], row["shard"], row["chunk"]) for row in tables.sequences]
    assert chunks == sorted(chunks)
    assert {shard for _, shard, _ in chunks} == {0, 1}
    assert max(chunk for _, _, chunk in chunks) >= 1


def test_files_hold_ascending_runs_of_ordinals(tables: Packed) -> None:
    by_partition: dict[int, list[int]] = defaultdict(list)
    for row in tables.packed.select("ordinal", F.spark_partition_id().alias("at")).collect():
        by_partition[row["at"]].append(row["ordinal"])
    assert all(ordinals == sorted(ordinals) for ordinals in by_partition.values())


def chunk_rows(tables: Packed, shard: int, chunk: int) -> pa.Table:
    """The documents of one chunk as its plan sees them, found by what its sequences hold."""
    held = {
        segment["doc_id"]
        for row in tables.sequences
        if (row["shard"], row["chunk"]) == (shard, chunk)
        for segment in row["segments"]
    }
    depends_on = {d: [b for a, b in DEPENDENCIES if a == d] for d in held}
    rows = [row | {"depends_on": depends_on[row["doc_id"]]} for row in tables.tokens if row["doc_id"] in held]
    kinds = dict.fromkeys(("doc_id", "repository", "revision"), pa.string())
    kinds |= {"position": pa.int64(), "n_tokens": pa.int64(), "depends_on": pa.list_(pa.string())}
    return pa.Table.from_pylist(rows, schema=pa.schema(list(kinds.items())))


def test_a_chunk_planned_alone_gives_the_same_plan(tables: Packed) -> None:
    chunks = {(row["shard"], row["chunk"]) for row in tables.sequences}
    assert len(chunks) >= 4
    tokens_before = 0
    for shard, chunk in sorted(chunks):
        rows = chunk_rows(tables, shard, chunk)
        alone = plan_chunk(rows, CONFIG.sequence_length, CONFIG.slack, tokens_before)
        tokens_before += sum(rows["n_tokens"].to_pylist())
        together = [
            (s["doc_id"], s["doc_offset"], s["length"])
            for row in tables.sequences
            if (row["shard"], row["chunk"]) == (shard, chunk)
            for s in row["segments"]
        ]
        assert [tuple(p.values())[2:] for p in alone.to_pylist()] == together


@pytest.mark.invariant(
    "Ordinals are dense and follow from shard, chunk and plan, in any order of the input rows."
)
def test_rows_in_another_order_and_partitioning_give_the_same_table(tables: Packed) -> None:
    shuffled = tables.tokenized.repartition(7).orderBy(F.rand(5))
    again = pack(shuffled, tables.dependencies.orderBy(F.rand(5)), CONFIG)
    assert sorted(again.toArrow().to_pylist(), key=lambda row: row["ordinal"]) == tables.sequences


def test_a_later_append_goes_on_where_the_table_ends(tables: Packed) -> None:
    later = pack(tables.tokenized, tables.dependencies, CONFIG, append=2, first_ordinal=100)
    rows = sorted(later.select("append", "ordinal", "n_tokens").collect(), key=lambda row: row.ordinal)
    expected = [(2, 100 + row["ordinal"], row["n_tokens"]) for row in tables.sequences]
    assert [tuple(row) for row in rows] == expected


def test_placements_are_the_segments_by_document(tables: Packed) -> None:
    rows = [tuple(row)[:4] for row in placements(tables.packed).collect()]
    turned = [
        (s["doc_id"], row["ordinal"], s["doc_offset"], s["length"])
        for row in tables.sequences
        for s in row["segments"]
    ]
    assert rows == sorted(turned, key=lambda row: (row[0], row[2]))


def visible(tables: Packed, segments: list[list[dict]]) -> int:
    depends_on: dict[str, list[str]] = defaultdict(list)
    for dependent, dependency in DEPENDENCIES:
        depends_on[str(dependent)].append(str(dependency))
    lengths = {row["doc_id"]: row["n_tokens"] for row in tables.tokens}
    pieces = [
        [(segment["doc_id"], segment["doc_offset"], segment["length"]) for segment in held]
        for held in segments
    ]
    return visible_dependencies(pieces, lengths, depends_on)


def test_the_metrics_are_what_the_rows_say(tables: Packed) -> None:
    given = (tables.packed, tables.tokenized, tables.dependencies)
    metrics = measure(*(frame.toArrow() for frame in given), CONFIG.sequence_length)
    lengths = [row["n_tokens"] for row in tables.tokens if row["n_tokens"]]
    assert (metrics.n_documents, metrics.n_tokens) == (len(lengths), sum(lengths))
    assert metrics.n_sequences == len(tables.sequences)
    assert metrics.fill == sum(lengths) / (len(tables.sequences) * 64)
    assert metrics.least_sequences == -(-sum(lengths) // 64)
    assert (metrics.n_fitting, metrics.n_fitting_split) == (sum(n <= 64 for n in lengths), 0)
    assert metrics.n_dependencies == len(DEPENDENCIES)
    assert metrics.n_visible == visible(tables, [row["segments"] for row in tables.sequences])
    names = ("doc_id", "repository", "revision", "position", "n_tokens")
    columns = pa.Table.from_pylist([{name: row[name] for name in names} for row in tables.tokens])
    next_fit: dict[int, list[dict]] = defaultdict(list)
    for piece in next_fit_chunk(columns, 64).to_pylist():
        next_fit[piece["sequence"]].append(piece)
    assert metrics.n_visible_next_fit == visible(tables, list(next_fit.values()))
    assert metrics.n_visible >= metrics.n_visible_next_fit > 0


def test_without_dependencies_nothing_is_visible_and_all_is_packed(tables: Packed) -> None:
    alone = pack(tables.tokenized, None, CONFIG)
    metrics = measure(alone.toArrow(), tables.tokenized.toArrow(), None, CONFIG.sequence_length)
    assert metrics.n_tokens == sum(row["n_tokens"] for row in tables.tokens)
    assert (metrics.n_dependencies, metrics.visible_share) == (0, 1.0)


def test_shards_follow_from_the_documents_once(tables: Packed) -> None:
    many = PackConfig().resolved(n_documents=10_000_000, n_tokens=10_000_000 * 1_024)
    assert (many.chunk_documents, many.shards) == (8_192, 305)
    small = resolve(tables.tokenized, PackConfig(sequence_length=64))
    assert (small.chunk_documents, small.shards) == (2_000, 1)
    assert resolve(tables.tokenized, CONFIG) is CONFIG


def test_a_tokenizer_does_not_depend_on_the_order_of_documents(spark: SparkSession) -> None:
    documents = frame(spark, DOCUMENTS)
    table = tokenizer_table(documents, "small", 280, sample_bytes=2_000)
    (row,) = table.collect()
    assert table.columns == TOKENIZER.names
    assert (row.name, row.n_tokens) == ("small", 280)
    again = tokenizer_table(documents.repartition(5).orderBy(F.rand(1)), "small", 280, sample_bytes=2_000)
    assert again.collect()[0].tokenizer == row.tokenizer


def test_the_sample_is_bounded_in_bytes_and_nested(spark: SparkSession) -> None:
    documents = frame(spark, DOCUMENTS)
    small, large = training_sample(documents, 1_000), training_sample(documents, 3_000)
    assert 0 < sum(len(text.encode()) for text in small) <= 1_000
    assert large[: len(small)] == small
    assert len(large) > len(small)
    with pytest.raises(NotFound, match="no text to train"):
        training_sample(documents.limit(0), 1_000)
