"""Of similar documents the best stays: by a column of the source, or by the values of a rule."""

from __future__ import annotations

from pathlib import Path

import dagster as dg
import pytest
from pyspark.sql import SparkSession
from pyspark.sql.pandas.types import from_arrow_schema

from factory.errors import ConfigurationError
from factory.filters.rounds import Round
from factory.lake import names
from factory.lake.schemas.ingest import RAW
from factory.lake.tables import Lake
from factory.orchestration.asset.table_asset import table_asset
from factory.orchestration.chain.dedup import dedup_group
from factory.orchestration.chain.filters import Filters
from factory.orchestration.chain.refine import refine, variant
from factory.orchestration.chain.texts import Quality
from factory.orchestration.datasets.assets import corpus
from factory.orchestration.keys import table_of
from factory.settings import Settings
from tests.orchestration.runs import reads, run

TEXT = " ".join(f"word{number}" for number in range(200))
TEXTS = {"long": f"{TEXT} and two more", "marked": f"{TEXT} # #", "rated": f"{TEXT} x"}
ROUNDS = [Round(rules=["hash_to_word_ratio", "word_count"])]


def raw(name: str) -> dg.AssetsDefinition:
    @table_asset(namespace="raw", name=name, asset_group="test", schema=RAW)
    def documents(context, pyspark):  # type: ignore[no-untyped-def]
        rows = [
            dict.fromkeys(RAW.names)
            | {"doc_id": f"{name}-{key}", "source": name, "key": key, "text": text, "content_hash": key}
            | {"n_bytes": len(text), "media_type": "text/plain", "quality": 0.9 if key == "rated" else None}
            for key, text in TEXTS.items()
        ]
        return pyspark.spark_session.createDataFrame(rows, from_arrow_schema(RAW.columns))

    return documents


@pytest.mark.spark
@pytest.mark.parametrize(
    "rule, best", [(None, "rated"), ("hash_to_word_ratio", "marked"), ("word_count", "long")]
)
def test_the_best_of_similar_documents_stays(
    spark: SparkSession, lake_settings: Settings, unique: str, rule: str | None, best: str
) -> None:
    quality = rule and Quality(rule, {unique: Filters(ROUNDS).table_of(unique, rule)})
    group = dedup_group(unique, [unique], kind="prose", quality=quality or None)
    chain = refine(unique, dedup_group=group, rounds=ROUNDS, tokenizer="tokenizer")
    wanted = ("signals", "filtered", "dedup", "deduplicated")
    assets = [asset for asset in (*group.assets, *chain) if table_of(min(asset.keys)).namespace in wanted]
    assert run(lake_settings, raw(unique), *assets).success
    kept = Lake(lake_settings).read(names.deduplicated(unique), ["key"])["key"].to_pylist()
    assert kept == [best]


def test_only_the_tables_that_decide_read_the_rule() -> None:
    quality = Quality("word_count", {"web": Filters(ROUNDS).table_of("web", "word_count")})
    group = dedup_group("web", ["web"], kind="prose", quality=quality)
    chain = refine("web", dedup_group=group, rounds=ROUNDS, tokenizer="tokenizer")
    assert {table for table, tables in reads(group.assets).items() if "signals.web" in tables} == {
        "dedup.web_decisions"
    }
    strict = variant(chain, "strict", rounds=[Round(rules=["word_count"]), *ROUNDS])
    assert "signals.web" in reads(strict)["dedup.web__strict_decisions"]


def test_a_file_names_the_rule_of_a_group(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("a")
    entry = "datasets: [{name: web, kind: prose, format: files, paths: ., rules: [word_count]}]\n"
    (tmp_path / "datasets.yaml").write_text(f"{entry}groups: {{prose: {{quality: word_count}}}}\n")
    assert "signals.web" in reads(corpus(tmp_path / "datasets.yaml").assets)["dedup.prose_decisions"]
    (tmp_path / "datasets.yaml").write_text(f"{entry}groups: {{prose: {{quality: word_counts}}}}\n")
    with pytest.raises(
        ConfigurationError, match=r"groups.prose.quality: Unknown rule .* Did you mean `word_count`"
    ):
        corpus(tmp_path / "datasets.yaml")
