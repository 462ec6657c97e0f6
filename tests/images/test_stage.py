"""Facts of pictures, a row each, and the rules that read them."""

from __future__ import annotations

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from pyspark.sql.pandas.types import from_arrow_schema

from factory.filters.sets import rules
from factory.filters.stage import decide, measure
from factory.images.stage import image_facts
from factory.lake import names
from factory.lake.schemas.images import IMAGES, PLACEHOLDER, RAW_IMAGES
from spark_udfs.images.facts import image_facts as rows_of
from spark_udfs.ingest.image_document import ImageOptions, SourcePicture, image_documents
from tests.ingest.inputs import ORIGIN, picture

DOCUMENTS = pa.schema(
    [("doc_id", pa.string()), ("partition", pa.string()), ("text", pa.string()), RAW_IMAGES]
)


def torn() -> bytes:
    """A picture with a good header that breaks off."""
    return picture(size=(300, 200))[:-40]


def documents() -> list[dict]:
    options = ImageOptions(layout="pages")
    contents = {
        "none": [],
        "good": [picture(size=(100, 80))],
        "torn": [picture(size=(100, 80)), torn()],
        "long": [picture(size=(640, 100))],
        "tiny": [picture(size=(20, 20))],
    }
    rows = []
    for key, files in contents.items():
        pictures = [SourcePicture(f"{number}.png", content) for number, content in enumerate(files)]
        [row] = image_documents(ORIGIN, key, PLACEHOLDER * len(files) + "two words", pictures, options)
        rows.append({"doc_id": key, "partition": None, "text": row["text"], IMAGES: row[IMAGES]})
    return rows


def test_each_picture_is_decoded_and_measured() -> None:
    [batch] = pa.Table.from_pylist(documents(), schema=DOCUMENTS).to_batches()
    facts = [row for rows in rows_of([batch]) for row in rows.to_pylist()]
    assert [(row["doc_id"], row["number"], row["is_readable"]) for row in facts] == [
        ("good", 0, True),
        ("torn", 0, True),
        ("torn", 1, False),
        ("long", 0, True),
        ("tiny", 0, True),
    ]
    bad = facts[2]
    assert (bad["width"], bad["height"], bad["patches"], bad["mode"]) == (300, 200, 22 * 15, None)
    assert bad["problem"].startswith("The picture does not decode: ")
    assert bad["problem"].endswith(".")
    assert facts[0]["mode"] == "RGB"
    assert facts[0]["n_bytes"] == len(picture(size=(100, 80)))


@pytest.mark.spark
def test_the_rules_judge_the_worst_picture_of_a_document(spark: SparkSession) -> None:
    frame = spark.createDataFrame(
        pa.Table.from_pylist(documents(), schema=DOCUMENTS), from_arrow_schema(DOCUMENTS)
    )
    image_rules = [rule.of_dataset("pics") for rule in rules(["images"])]
    signals = measure(frame, image_rules, {names.images("pics"): image_facts(frame)})
    verdicts = {row.doc_id: row for row in decide(signals, image_rules).collect()}
    failures = {key: [failure["rule"] for failure in row.rejections] for key, row in verdicts.items()}
    assert failures == {
        "none": [],
        "good": [],
        "torn": ["unreadable_images"],
        "long": ["image_ratio"],
        "tiny": ["image_pixels", "image_side"],
    }
    words = measure(frame, rules(["word_count", "mean_word_length"])).collect()
    assert {(row.word_count, row.mean_word_length) for row in words} == {(2.0, 4.0)}
