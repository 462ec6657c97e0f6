"""n-gram models of the languages of a table: the same of any partitioning, with documents held out."""

from __future__ import annotations

import random

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession

from factory.errors import ConfigurationError, NotFound
from factory.models.arrow_stream import arrow_stream_of
from factory.models.ngram_model import LEAST_BYTES, LEAST_COUNT, ngram_models
from spark_udfs.filters import perplexity as udf
from spark_udfs.models.ngram import as_pairs, load
from tests.models.ngram_definition import WittenBell, counts, tokens

pytestmark = pytest.mark.spark

ENGLISH = "the river rose because rain fell on hills while farmers repaired their old stone walls again"
GERMAN = "der Fluss stieg weil es in den Bergen regnete und die Bauern ihre alten Mauern wieder bauten"
WORDS = {"en": ENGLISH.split(), "de": GERMAN.split()}


def corpus(n_documents: int = 90, words_of_one: int = 300) -> list[tuple[str, str, str, float]]:
    chance = random.Random(3)
    rows = []
    for language, words in WORDS.items():
        for number in range(n_documents):
            text = " ".join(chance.choices(words, k=words_of_one))
            rows.append((f"{language}{number}", text, language, chance.random()))
    return [*rows, ("few", "un document tout seul", "fr", 0.5), ("none", "12 34", None, 0.1)]


def frame(spark: SparkSession, n_tasks: int = 1) -> DataFrame:
    schema = "doc_id string, text string, detected_language string, unit double"
    return spark.createDataFrame(corpus(), schema).repartition(n_tasks)


def test_the_model_of_any_partitioning_is_the_same_and_that_of_the_definition(spark: SparkSession) -> None:
    one, eight = (ngram_models(frame(spark, n), vocabulary=300).toArrow().sort_by("language") for n in (1, 8))
    assert one.equals(eight)
    assert one["language"].to_pylist() == ["de", "en"]
    row = one.to_pylist()[1]
    documents = sorted((unit, text) for _, text, language, unit in corpus() if language == "en")
    assert sum(len(text) for _, text in documents) > LEAST_BYTES
    n_held_out = max(1, int(0.05 * len(documents)))
    texts = [text for _, text in documents]
    merges = as_pairs(row["merges"])
    encoded = [tokens(text, merges) for text in texts]
    expected = counts(encoded[n_held_out:], LEAST_COUNT)
    assert (row["n_documents"], len(row["ngrams"])) == (len(documents) - n_held_out, len(expected))
    model = WittenBell(expected, 256 + len(merges))
    bits = sum(sum(model.bits(text)) for text in encoded[:n_held_out])
    n_bytes = sum(len(text) for text in texts[:n_held_out])
    assert row["bits_per_byte"] == pytest.approx(bits / n_bytes, rel=1e-5)


def test_a_text_is_measured_by_the_model_of_its_language(spark: SparkSession) -> None:
    stream = arrow_stream_of(ngram_models(frame(spark), vocabulary=300).toArrow())
    chance = random.Random(8)
    english, german = (" ".join(chance.choices(WORDS[language], k=80)) for language in ("en", "de"))
    french = "Le temps a fait que nous sommes toujours dans notre petite maison de campagne"
    texts = pa.array([english, german, french, "", None])
    values = udf.bits_per_byte(texts, texts, models=stream, name="p")["p"].to_pylist()
    assert values[2:] == [None, None, None]
    models = load(stream)
    for value, language, text in zip(values, ("en", "de"), (english, german), strict=False):
        [bits] = models[language].bits(pa.array([text])).to_pylist()
        assert value == pytest.approx(bits / len(text))
    assert models["de"].bits(pa.array([english])).to_pylist()[0] > 2 * len(english) * values[0]


def test_languages_are_chosen_by_name_and_need_enough_text(spark: SparkSession) -> None:
    assert ngram_models(frame(spark), ["de"], 256).toArrow()["language"].to_pylist() == ["de"]
    with pytest.raises(NotFound, match="or one document, are in `fr`: too few for a model"):
        ngram_models(frame(spark), ["fr"])
    with pytest.raises(NotFound, match="in any language"):
        ngram_models(frame(spark).where("detected_language = 'fr'"))
    with pytest.raises(ConfigurationError, match="cannot have 5,000 tokens"):
        ngram_models(frame(spark), vocabulary=5_000)
