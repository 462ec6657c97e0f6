"""Of similar documents the best stays: by a column of the source, or by the values of a rule."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import dagster as dg
import pytest
from pyspark.sql import SparkSession
from pyspark.sql.pandas.types import from_arrow_schema

from factory.errors import ConfigurationError
from factory.filters.rounds import Round
from factory.lake import names
from factory.lake.names import TableName
from factory.lake.schemas.ingest import RAW
from factory.lake.tables import Lake
from factory.orchestration.chain.dedup.group import dedup_group
from factory.orchestration.chain.filters import Filters
from factory.orchestration.chain.refine import refine, variant
from factory.orchestration.chain.texts import Quality
from factory.orchestration.datasets.assets import corpus
from factory.orchestration.keys import key_of, table_of
from factory.orchestration.table.table_asset import table_asset
from factory.settings import Settings
from tests.orchestration.runs import reads, run

GROUP = "similar_documents"
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


COMPARED = [names.raw(GROUP), names.signals(GROUP), names.filtered(GROUP)]
COMPARED += [
    names.dedup(GROUP, part)
    for part in ("bags", "vocabulary", "signatures", "buckets", "edges", "components")
]
DECIDED = [names.dedup(GROUP, "decisions"), names.deduplicated(GROUP)]


def assets_of(tables: Sequence[TableName], rule: str | None = None) -> list[dg.AssetsDefinition]:
    """The assets of `tables`, of documents that are as good as a rule says, or as their source does."""
    quality = rule and Quality(rule, {GROUP: Filters(ROUNDS).table_of(GROUP, rule)})
    group = dedup_group(GROUP, [GROUP], kind="prose", quality=quality or None)
    chain = refine(GROUP, dedup_group=group, rounds=ROUNDS, tokenizer="tokenizer")
    assets = {table_of(min(asset.keys)): asset for asset in (raw(GROUP), *group.assets, *chain)}
    return [assets[table] for table in tables]


@pytest.fixture(scope="module")
def compared(spark: SparkSession, lake_settings: Settings) -> Settings:
    """A lake in which the documents are measured and compared, and nothing is decided."""
    assert run(lake_settings, *assets_of(COMPARED)).success
    return lake_settings


@pytest.mark.spark
@pytest.mark.parametrize(
    "rule, best", [(None, "rated"), ("hash_to_word_ratio", "marked"), ("word_count", "long")]
)
def test_the_best_of_similar_documents_stays(compared: Settings, rule: str | None, best: str) -> None:
    selection = [key_of(table) for table in DECIDED]
    assert run(compared, *assets_of([*COMPARED, *DECIDED], rule), selection=selection).success
    kept = Lake(compared).read(names.deduplicated(GROUP), ["key"])["key"].to_pylist()
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
