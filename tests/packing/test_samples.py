"""Samples through Spark: every picture at its token, and a table that depends on the documents alone."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from blender.rows.counts import BYTES, COUNTS
from blender.rows.lake_pages import LakePages
from blender.rows.snapshot_reader import SnapshotReader
from factory.errors import ConfigurationError
from factory.lake.files.layout import odd_pages
from factory.lake.names import TableName, packed, raw
from factory.lake.schemas.base import TableSchema
from factory.lake.schemas.images import PLACEHOLDER, with_images
from factory.lake.schemas.ingest import RAW
from factory.lake.schemas.packing import PACKED
from factory.lake.tables import Lake
from factory.lake_spark.audit import begin, head_of, replace_rows
from factory.lake_spark.read import read_at
from factory.models.tokenizer import END_OF_TEXT, IMAGE, token_id, train
from factory.packing.pack import placements
from factory.packing.samples import (
    PACKED_WITH_IMAGES,
    SampleConfig,
    longest_row,
    samples,
    samples_with_images,
)
from factory.packing.tokenize import tokenize
from factory.settings import Settings
from spark_udfs.packing.tokenize import decode
from tests.packing.pictures import document, picture

pytestmark = pytest.mark.spark

TOKENIZER = train(iter(["a red flower, a blue bird"] * 20), 300, (END_OF_TEXT, IMAGE))
IMAGE_ID, END_ID = token_id(TOKENIZER, IMAGE), token_id(TOKENIZER, END_OF_TEXT)
CONFIG = SampleConfig(sequence_length=12, shards=2)
COLUMNS = ("ordinal", "tokens", "n_tokens", "segments", "images")
LARGE = 300_000  # bytes of each picture of one document

DOCUMENTS = [
    document("none", "a red flower", None),
    document("empty", "a blue bird", []),
    document("one", f"{PLACEHOLDER}a red flower", [picture("one.png", LARGE)]),
    document("two", f"a {PLACEHOLDER} blue {PLACEHOLDER}", [picture("left"), picture("right", LARGE)]),
    document("spelled", f"{PLACEHOLDER} {IMAGE}{END_OF_TEXT}", [picture("spelled")]),
    document("long", f"{PLACEHOLDER}xyz." * 9, [picture(f"long{number}") for number in range(9)]),
    document("pictures", PLACEHOLDER * 30, [picture(f"all{number}") for number in range(30)]),
]
PICTURES = {row["doc_id"]: [image["name"] for image in row["images"] or ()] for row in DOCUMENTS}


@dataclass(frozen=True)
class Tables:
    raw: DataFrame
    tokens: DataFrame
    rows: list[dict[str, Any]]
    reader: SnapshotReader
    odd_pages: list[str]


def write(spark: SparkSession, lake: Lake, table: TableName, schema: TableSchema, rows: DataFrame) -> int:
    audit = begin(spark, lake, table, schema, "run")
    replace_rows(rows, audit, schema, "run")
    return head_of(lake, audit)


@pytest.fixture(scope="module")
def tables(spark: SparkSession, lake_settings: Settings) -> Tables:
    lake, schema = Lake(lake_settings), with_images(RAW)
    rows = spark.createDataFrame(pa.Table.from_pylist(DOCUMENTS, schema=schema.columns)).repartition(2)
    documents = read_at(spark, raw("samples"), write(spark, lake, raw("samples"), schema, rows))
    tokens = tokenize(documents.repartition(3), TOKENIZER, image=IMAGE).localCheckpoint()
    frame = samples_with_images(tokens, documents, documents, CONFIG, 2, IMAGE_ID)
    snapshot = write(spark, lake, packed("samples"), PACKED_WITH_IMAGES, frame)
    table = lake.table(packed("samples"))
    reader = SnapshotReader.at(table, snapshot, LakePages(lake_settings, 1 << 24))
    read = reader.read(np.arange(reader.n_rows), COLUMNS)
    return Tables(documents, tokens, read.to_pylist(), reader, odd_pages(table, snapshot))


def by_document(rows: list[dict[str, Any]]) -> dict[str, list[dict[str, Any]]]:
    pieces: dict[str, list[dict[str, Any]]] = {}
    for row in rows:
        ((segment,),) = (row["segments"],)
        pieces.setdefault(segment["doc_id"], []).append(row)
    return pieces


@pytest.mark.invariant(
    "A row of samples is one document or a piece of it, and a table has the pictures of its documents, "
    "each in the row of its token."
)
def test_texts_and_pictures_come_back_from_the_rows(tables: Tables) -> None:
    pieces = by_document(tables.rows)
    assert set(pieces) == set(PICTURES)
    for source in DOCUMENTS:
        rows = pieces[source["doc_id"]]
        tokens = b"".join(row["tokens"] for row in rows)
        text = decode(tokens, TOKENIZER, None, END_ID)
        assert text.replace(IMAGE, PLACEHOLDER) == source["text"].replace(IMAGE, PLACEHOLDER)
        assert [image["name"] for row in rows for image in row["images"] or ()] == PICTURES[source["doc_id"]]
        for row in rows:
            assert 0 < row["n_tokens"] <= CONFIG.sequence_length
            places = np.flatnonzero(np.frombuffer(row["tokens"], "<u2") == IMAGE_ID).tolist()
            assert [image["position"] for image in row["images"] or ()] == places
            for image in row["images"] or ():
                assert image == {
                    "position": image["position"],
                    **picture(image["name"], len(image["content"])),
                }


def test_a_text_that_spells_the_token_of_a_picture_has_no_picture(tables: Tables) -> None:
    (row,) = tables.tokens.where("doc_id = 'spelled'").collect()
    assert np.frombuffer(row.tokens, "<u2").tolist().count(IMAGE_ID) == 1


@pytest.mark.invariant(
    "Ordinals are dense and follow from shard, chunk and plan, in any order of the input rows."
)
def test_rows_of_samples_do_not_depend_on_the_order_of_documents(tables: Tables) -> None:
    assert [row["ordinal"] for row in tables.rows] == list(range(len(tables.rows)))
    in_another_order = tables.tokens.repartition(5).orderBy(F.rand(3))
    in_any_order = tables.raw.orderBy(F.rand(4))
    again = samples_with_images(in_another_order, tables.raw, in_any_order, CONFIG, 2, IMAGE_ID)
    rows = sorted(again.toArrow().to_pylist(), key=lambda row: row["ordinal"])
    assert [{name: row[name] for name in COLUMNS} for row in rows] == [
        {name: row[name] for name in COLUMNS} for row in tables.rows
    ]


def test_a_row_read_alone_costs_its_own_pictures_and_tokens_no_picture(tables: Tables) -> None:
    name = next(row["ordinal"] for row in tables.rows if row["segments"][0]["doc_id"] == "one")

    def bytes_of(*columns: str) -> float:
        before = COUNTS.sums().get((BYTES, tables.reader.table), 0)
        tables.reader.read(np.array([name]), columns)
        return COUNTS.sums()[BYTES, tables.reader.table] - before

    assert tables.odd_pages == []
    assert bytes_of("tokens") < 1_000
    # The contents of drawn pictures compress, so a row costs less than its pictures; other rows are not read.
    assert bytes_of("tokens", "images") < 10_000


def test_placements_say_which_rows_hold_a_document(tables: Tables, spark: SparkSession) -> None:
    rest = dict.fromkeys(PACKED.names, 0) | {"partition": None}
    rows = spark.createDataFrame(
        pa.Table.from_pylist([rest | row for row in tables.rows], schema=PACKED.columns)
    )
    pieces = by_document(tables.rows)
    for placement in placements(rows).collect():
        row = tables.rows[placement.ordinal]
        assert row in pieces[placement.doc_id]
        assert row["segments"][0]["doc_offset"] == placement.doc_offset


def test_samples_of_text_are_whole_documents_of_one_row_each(tables: Tables) -> None:
    config = SampleConfig().with_shards(len(DOCUMENTS))
    rows = samples(tables.tokens, config, 2).toArrow().sort_by("ordinal").to_pylist()
    tokens = {row.doc_id: bytes(row.tokens) for row in tables.tokens.collect()}
    assert {row["segments"][0]["doc_id"]: row["tokens"] for row in rows} == tokens
    assert [row["ordinal"] for row in rows] == list(range(len(DOCUMENTS)))
    longest = max(map(len, tokens.values())) // 2
    assert longest_row(tables.tokens, config) == longest
    assert longest_row(tables.tokens, SampleConfig(sequence_length=5)) == 5
    assert longest_row(tables.tokens.limit(0), config) == 1


def test_pictures_that_changed_after_the_tokens_were_made_are_refused(tables: Tables) -> None:
    fewer = tables.raw.where("doc_id <> 'two'")
    with pytest.raises(Exception, match="Document two has 2 tokens of pictures, and its raw table has 0"):
        samples_with_images(tables.tokens, tables.raw, fewer, CONFIG, 2, IMAGE_ID).count()


@pytest.mark.invariant("A picture comes to the text that it was read with, never to a later one.")
def test_a_document_that_changed_in_raw_is_refused_also_if_it_has_as_many_pictures(tables: Tables) -> None:
    earlier = tables.raw.withColumn(
        "content_hash", F.when(F.col("doc_id") == "two", F.lit("of before")).otherwise(F.col("content_hash"))
    )
    with pytest.raises(Exception, match=r"Document two has 2 tokens .* It has changed since"):
        samples_with_images(tables.tokens, earlier, tables.raw, CONFIG, 2, IMAGE_ID).count()


def test_a_tokenizer_without_the_token_of_pictures_is_refused(tables: Tables) -> None:
    plain = train(iter(["a b"] * 9), 300)
    with pytest.raises(ConfigurationError, match=r"no token `<\|image\|>` for pictures. Name the one"):
        tokenize(tables.raw, plain, image=IMAGE)
