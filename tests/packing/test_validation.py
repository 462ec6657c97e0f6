"""The validation part: a draw by repository or key that neither time, machine nor other documents change."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from factory.errors import ConfigurationError
from factory.filters.rounds import Round
from factory.lake.identity import DERIVED_FROM_KEY, draw
from factory.orchestration.chain.dedup.group import dedup_group
from factory.orchestration.chain.packing import Packing
from factory.orchestration.chain.refine import refine, variant
from factory.packing.pack import PackConfig
from factory.packing.validation import draw as draw_column
from factory.packing.validation import training_part, validation_part

_COLUMNS = "doc_id string, repository string, key string, metadata map<string, string>"

ORIGINS = [
    ("linux", "kernel/fork.c"),
    ("linux", "kernel/exit.c"),
    ("", "a page without a repository"),
    (None, "a page without a repository"),
    (None, "http://straße.example/?q=π"),
    (None, "🜁 " * 500),
    *((f"repository {number % 40}", f"file {number}") for number in range(200)),
    *((None, f"page {number}") for number in range(400)),
]


@pytest.mark.invariant("Published hashes never change.")
@pytest.mark.parametrize(
    "repository, key, number",
    [  # the first 13 digits of `printf 'validation\\0linux' | sha256sum`, over 16 ** 13
        ("linux", "kernel/fork.c", 0.5332004560698862),
        (None, "linux", 0.5332004560698862),
        (None, "kernel/fork.c", 0.6383511956644792),
    ],
)
def test_published_draws_never_change(repository: str | None, key: str, number: float) -> None:
    assert draw(repository, key) == number


@given(st.sets(st.text(), min_size=1), st.floats(0, 1), st.floats(0, 1))
def test_a_smaller_share_is_a_part_of_a_larger_one(keys: set[str], one: float, other: float) -> None:
    small, large = sorted((one, other))
    assert {key for key in keys if draw(None, key) < small} <= {
        key for key in keys if draw(None, key) < large
    }
    assert all(0 <= draw(None, key) < 1 for key in keys)


def test_a_share_of_many_documents_is_drawn() -> None:
    draws = [draw(None, f"page {number}") for number in range(20_000)]
    for share in (0.01, 0.1, 0.5):
        assert sum(number < share for number in draws) / len(draws) == pytest.approx(share, rel=0.1)


@pytest.fixture(scope="module")
def documents(spark: SparkSession) -> DataFrame:
    rows = [(f"{number}", repository, key, None) for number, (repository, key) in enumerate(ORIGINS)]
    return spark.createDataFrame(rows, _COLUMNS)


@pytest.mark.spark
def test_a_record_is_drawn_as_the_document_that_it_is_made_of(
    spark: SparkSession, documents: DataFrame
) -> None:
    rows = [
        (f"{number}", repository, f"{key}#record", {DERIVED_FROM_KEY: key})
        for number, (repository, key) in enumerate(ORIGINS)
    ]
    records = spark.createDataFrame(rows, _COLUMNS)
    draws = [frame.select("doc_id", draw_column(frame)).collect() for frame in (documents, records)]
    assert sorted(draws[0]) == sorted(draws[1])


@pytest.mark.spark
def test_spark_and_python_draw_alike(documents: DataFrame) -> None:
    rows = documents.withColumn("draw", draw_column(documents)).collect()
    assert [row.draw for row in rows] == [draw(row.repository, row.key) for row in rows]


@pytest.mark.invariant(
    "A document is in the training part or in the validation part of its dataset, by a draw of its "
    "repository or key that nothing else changes, and no copy of it is on the other side."
)
@pytest.mark.spark
def test_the_parts_are_disjoint_and_whole_and_stay_when_documents_come(documents: DataFrame) -> None:
    tokenized = documents.select("doc_id", F.lit(1).alias("n_tokens"))

    def ids(rows: DataFrame) -> set[str]:
        return {row.doc_id for row in rows.collect()}

    validation = ids(validation_part(tokenized, documents, 0.2))
    training = ids(training_part(tokenized, documents, 0.2))
    assert validation
    assert validation | training == ids(documents)
    assert not validation & training
    by_id = {f"{number}": origin for number, origin in enumerate(ORIGINS)}
    repositories = [{by_id[doc_id][0] or doc_id for doc_id in part} for part in (validation, training)]
    assert repositories[0].isdisjoint(repositories[1])
    fewer = documents.where("cast(doc_id as int) % 3 = 0")
    assert ids(validation_part(tokenized, fewer, 0.2)) == validation & ids(fewer)
    assert validation <= ids(validation_part(tokenized, documents, 0.3))


def test_a_share_is_packed_apart_also_in_variants() -> None:
    group = dedup_group("web", ["web"], kind="prose")
    web = refine("web", dedup_group=group, rounds=[Round()], tokenizer="small", validation=0.01)
    chains = {"web": web, "web__nearer": variant(web, "nearer", threshold=0.9)}
    for name, chain in chains.items():
        packed = [key.to_user_string() for asset in chain for key in asset.keys]
        assert f"packed.{name}_validation" in packed
        assert f"packed.{name}_validation_placements" in packed


@pytest.mark.parametrize("share", [0, 1, -0.1, 1.5])
def test_a_share_lies_between_none_and_all(share: float) -> None:
    with pytest.raises(ConfigurationError, match=f"`validation` is {share}, which is not a share"):
        Packing("small", PackConfig(), validation=share)
