"""Rules that read tables: a part of the signals of their own, which alone is measured again."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import dagster as dg
import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from factory.filters.limits import AtMost, Limit, Top
from factory.filters.rounds import Round
from factory.filters.rules.classified import Category, ClassifierScore
from factory.lake import names
from factory.lake.schemas.ingest import RAW
from factory.lake.tables import Lake
from factory.orchestration.chain.filters import Filters
from factory.orchestration.chain.link import Chain, linked
from factory.orchestration.chain.models.classifier import classifier
from factory.orchestration.chain.models.word_list import word_list
from factory.orchestration.keys import key_of
from factory.orchestration.table.table_asset import table_asset
from factory.settings import Settings
from tests.orchestration.runs import reads, run

ADVERT = ClassifierScore("advertisement", AtMost(0.5))
TEXTS = {
    f"{kind}{source}/{number}": " ".join([*words, f"number{number}"] * 12)
    for kind, words in {
        "advert": ("buy", "cheap", "shoes", "today", "free", "shipping"),
        "essay": ("the", "river", "rose", "because", "rain", "fell"),
    }.items()
    for source in range(6)
    for number in range(8)
}


def filters(name: str, *rounds: Round) -> Chain:
    return linked(Chain.from_raw(name), [Filters(rounds)])


def test_a_rule_that_reads_a_table_has_a_part_of_the_signals() -> None:
    tables = reads(
        filters("web", Round(rules=["word_count", ADVERT], limits={"advertisement": {"top": 0.5}}))
    )
    assert tables == {
        "signals.web": {"raw.web"},
        "signals.web_by_advertisement": {"raw.web", "models.advertisement"},
        "signals.web_limits": {"signals.web", "signals.web_by_advertisement", "models.advertisement"},
        "filtered.web": {"signals.web", "signals.web_by_advertisement", "signals.web_limits"},
    }


def test_a_round_of_models_alone_measures_nothing_else() -> None:
    assert reads(filters("web", Round(rules=[ADVERT]))) == {
        "signals.web_by_advertisement": {"raw.web", "models.advertisement"},
        "filtered.web": {"signals.web_by_advertisement"},
    }


def test_later_rounds_and_other_limits_read_the_parts_that_are_measured() -> None:
    tables = reads(
        filters(
            "web",
            Round(rules=["word_count", ADVERT]),
            Round(rules=[ADVERT.with_limit(AtMost(0.1)), "stop_words"]),
        )
    )
    assert tables["filtered.web"] == {"filtered.web_r1", "signals.web_r1_by_advertisement", "signals.web"}
    assert tables["signals.web"] == {"raw.web", "filtered.web_r1"}


def test_a_share_implies_nothing_because_each_round_finds_its_bound() -> None:
    half = Round(rules=[ADVERT.with_limit(Top(0.5))])
    tables = reads(filters("web", half, Round(rules=["word_count"])))
    assert "signals.web" in tables
    again = reads(filters("web", half, Round(rules=["word_count"]), Round(rules=["word_count"])))
    assert "signals.web_r2" in again


def test_a_predicate_on_another_table_has_a_part_named_after_it() -> None:
    chosen = Round(predicates={"filtered.web__strict.kept": {"at_least": 1}, "stars": {"at_least": 3}})
    assert reads(filters("web", chosen))["signals.web_by_filtered_web__strict_kept"] == {
        *("raw.web", "filtered.web__strict")
    }


def raw(name: str) -> dg.AssetsDefinition:
    @table_asset(namespace="raw", name=name, asset_group="test", schema=RAW)
    def documents(context, pyspark):  # type: ignore[no-untyped-def]
        return pyspark.spark_session.createDataFrame(pa.Table.from_pylist(rows_of(name), schema=RAW.columns))

    return documents


def rows_of(dataset: str) -> list[dict[str, object]]:
    return [
        dict.fromkeys(RAW.names)
        | {
            "doc_id": f"{key}@{dataset}",
            "source": key.partition("/")[0],
            "key": key,
            "text": text,
            "content_hash": key,
        }
        | {"n_bytes": len(text), "media_type": "text/plain"}
        | {"metadata": {"label": key[:5], "score": str(number) if number % 9 else "many"}}
        for number, (key, text) in enumerate(TEXTS.items())
    ]


def examples(name: str, label: str) -> dict[str, object]:
    return {"table": name, "predicates": {"metadata.label": [label]}}


JUDGED = "judged_again"
AD, ESSAY = f"{JUDGED}_ad", f"{JUDGED}_essay"


@dataclass(frozen=True)
class Rejudged:
    """The snapshot of each table after runs that change one thing each, and the verdicts of the second."""

    share: dict[str, int]  # at first, the advertising half is kept
    limited: dict[str, int]  # by a limit in place of the share
    share_again: dict[str, int]
    retrained: dict[str, int]  # with the share, by a new model of adverts
    rejections_by_share: dict[str, list[str]]  # rules by the kind of a document, of the first run
    rejections: dict[str, list[str]]  # of the second


@pytest.fixture(scope="module")
def rejudged(
    spark: SparkSession, lake_settings: Settings, tmp_path_factory: pytest.TempPathFactory
) -> Rejudged:
    lake, documents = Lake(lake_settings), raw(JUDGED)
    words = tmp_path_factory.mktemp("words") / "en.txt"
    words.write_text("river\n")
    essay = word_list(ESSAY, {"en": words})

    def snapshots(limit: Limit, holdout: float = 0.2) -> dict[str, int]:
        both = examples(JUDGED, "adver"), examples(JUDGED, "essay")
        ad = classifier(AD, *both, source="source", holdout=holdout)
        chain = filters(JUDGED, Round(rules=["word_count", ad.rule.with_limit(limit), essay.rule]))
        assert run(lake_settings, documents, ad.asset, essay.asset, *chain, reuse=True).success
        tables = {part: names.signals(JUDGED, part) for part in ("", AD, ESSAY)}
        tables |= {"limits": names.limits(JUDGED), "verdicts": names.filtered(JUDGED)}
        return {part: lake.published(table).snapshot_id for part, table in tables.items()}

    def rejections() -> dict[str, list[str]]:
        verdicts = lake.read(names.filtered(JUDGED)).to_pylist()
        return {row["doc_id"][:5]: [failure["rule"] for failure in row["rejections"]] for row in verdicts}

    share, by_share = snapshots(Top(0.5)), rejections()
    limited, by_limit = snapshots(AtMost(0.5)), rejections()
    again, retrained = snapshots(Top(0.5)), snapshots(Top(0.5), holdout=0.4)
    return Rejudged(share, limited, again, retrained, by_share, by_limit)


def changed(before: dict[str, int], after: dict[str, int]) -> set[str]:
    return {table for table in before if before[table] != after[table]}


@pytest.mark.spark
def test_each_model_rejects_the_documents_of_its_own_column(rejudged: Rejudged) -> None:
    assert rejudged.rejections == {"adver": [AD], "essay": [ESSAY]}
    assert rejudged.rejections_by_share == {"adver": [], "essay": [AD, ESSAY]}


@pytest.mark.spark
def test_another_limit_measures_nothing(rejudged: Rejudged) -> None:
    assert changed(rejudged.share, rejudged.limited) == {"verdicts"}


@pytest.mark.invariant(
    "A new model measures its own column alone, and a limit given as a share keeps its bound until you "
    "recompute it."
)
@pytest.mark.spark
def test_a_new_model_measures_its_own_column_and_ends_the_share_of_the_old_one(rejudged: Rejudged) -> None:
    assert changed(rejudged.share, rejudged.share_again) == {"verdicts"}  # the share stands
    assert changed(rejudged.share_again, rejudged.retrained) == {AD, "limits", "verdicts"}


@pytest.mark.invariant(
    "A new model measures its own column alone, and a limit given as a share keeps its bound until you "
    "recompute it."
)
@pytest.mark.spark
def test_a_share_stands_when_documents_change_and_until_it_is_asked_for_anew(
    spark: SparkSession, lake_settings: Settings, unique: str
) -> None:
    lake = Lake(lake_settings)
    documents = raw(unique)
    half = filters(unique, Round(rules=["word_count"], limits={"word_count": {"top": 0.5}}))
    assert run(lake_settings, documents, *half).success
    [limit] = lake.read(names.limits(unique)).to_pylist()
    assert (limit["rule"], limit["share"], limit["n_documents"]) == ("word_count", 0.5, len(TEXTS))
    first = lake.published(names.limits(unique)).snapshot_id
    TEXTS["essay9/1"] = "a longer essay " * 900
    try:
        assert run(lake_settings, documents, *half, reuse=True).success
        assert lake.published(names.limits(unique)).snapshot_id == first
        assert run(lake_settings, documents, *half, selection=[key_of(names.limits(unique))]).success
        [limit] = lake.read(names.limits(unique)).to_pylist()
        assert limit["n_documents"] == len(TEXTS)
    finally:
        del TEXTS["essay9/1"]


LANGUAGES = dg.StaticPartitionsDefinition(["advert", "essay"])


def raw_by_kind(name: str) -> dg.AssetsDefinition:
    """The documents in two partitions, by kind."""

    @table_asset(namespace="raw", name=name, asset_group="test", schema=RAW, partitions_def=LANGUAGES)
    def documents(context, pyspark, partition: str):  # type: ignore[no-untyped-def]
        rows = [row for row in rows_of(name) if row["key"].startswith(partition)]
        return pyspark.spark_session.createDataFrame(pa.Table.from_pylist(rows, schema=RAW.columns))

    return documents


@pytest.mark.invariant(
    "A new model measures its own column alone, and a limit given as a share keeps its bound until you "
    "recompute it."
)
@pytest.mark.spark
def test_a_further_partition_decides_none_of_the_others_again(
    spark: SparkSession, lake_settings: Settings, unique: str
) -> None:
    lake = Lake(lake_settings)
    documents = raw_by_kind(unique)
    links = [Filters([Round(rules=["word_count"], limits={"word_count": {"top": 0.5}})])]
    chain = linked(Chain.from_raw(unique, partitions_def=LANGUAGES), links)
    limits = key_of(names.limits(unique))
    partitioned = [key for asset in (documents, *chain) for key in asset.keys if key != limits]
    signals = [key for key in partitioned if key != key_of(names.filtered(unique))]

    def made(kind: str) -> None:
        for selection, span in (
            (signals, (kind, kind)),
            ([limits], None),
            ([key_of(names.filtered(unique))], (kind, kind)),
        ):
            assert run(lake_settings, documents, *chain, selection=selection, span=span, reuse=True).success

    made("advert")
    content = lake.partitions(names.filtered(unique)).content("advert")
    [limit] = lake.read(names.limits(unique)).to_pylist()
    made("essay")
    partitions = lake.partitions(names.filtered(unique))
    assert partitions.content("advert") == content
    assert partitions.lineage["advert"].run_id != partitions.lineage["essay"].run_id
    assert lake.read(names.limits(unique)).to_pylist() == [limit]
    again = run(
        lake_settings,
        documents,
        *chain,
        selection=[key_of(names.filtered(unique))],
        span=("advert", "essay"),
        reuse=True,
    )
    assert again.success
    assert lake.partitions(names.filtered(unique)).lineage == partitions.lineage  # nothing is decided again


@pytest.mark.spark
def test_numbers_in_metadata_are_compared_and_what_is_none_is_counted(
    spark: SparkSession, lake_settings: Settings, unique: str
) -> None:
    chain = filters(unique, Round(predicates={"metadata.score": {"at_least": 50, "missing": "keep"}}))
    result = run(lake_settings, raw(unique), *chain)
    assert result.success
    verdicts = Lake(lake_settings).read(names.filtered(unique)).to_pylist()
    rows = {row["doc_id"].partition("@")[0]: row for row in verdicts}
    without = {key for number, key in enumerate(TEXTS) if number % 9 == 0}
    expected = without | {key for number, key in enumerate(TEXTS) if number >= 50}
    assert {key for key, row in rows.items() if row["kept"]} == expected
    assert {key for key, row in rows.items() if row["without_value"]} == without
    [figures] = [
        event.step_materialization_data.materialization.metadata
        for event in result.get_asset_materialization_events()
        if event.asset_key == key_of(names.filtered(unique))
    ]
    assert figures["pass metadata.score without a value"].value == len(without)
    assert figures["note"].value == f"without a value {len(without)} pass metadata.score"
    [count] = [
        check.metadata["violations"].value
        for check in result.get_asset_check_evaluations()
        if check.check_name == "metadata_score_is_a_number"
    ]
    assert count == sum(number % 9 == 0 for number in range(len(TEXTS)))


OWN = """
import pyarrow as pa
from factory.filters.limits import AtMost
from factory.filters.table_rule import TableRule
from factory.lake.names import TableName

class Blocked(TableRule):
    name, unit, limit = "blocked", "documents", AtMost(0)
    reads = {"verdicts": TableName("filtered", "DATASET__short")}

    def measurer(self, tables):
        blocked = {row.doc_id for row in tables["verdicts"].where("NOT kept").collect()}

        def measure(doc_ids, texts):
            return {"blocked": pa.array([float(doc_id in blocked) for doc_id in doc_ids.to_pylist()])}

        return measure
"""


@pytest.mark.spark
def test_a_rule_of_ones_own_reads_the_verdicts_of_a_variant_and_touches_no_file_of_the_product(
    spark: SparkSession, lake_settings: Settings, unique: str, tmp_path: Path
) -> None:
    (tmp_path / "own.py").write_text(OWN.replace("DATASET", unique))
    chosen = Round.model_validate({"rules": ["own.py:Blocked"]}, context={"folder": tmp_path})
    short = Round(predicates={"metadata.label": ["essay"]})
    variant = linked(Chain(names.variant(unique, "short"), names.raw(unique)), [Filters([short])])
    assert run(lake_settings, raw(unique), *variant, *filters(unique, chosen)).success
    rows = Lake(lake_settings).read(names.filtered(unique)).to_pylist()
    essays = {f"{key}@{unique}" for key in TEXTS if key.startswith("essay")}
    assert {row["doc_id"] for row in rows if row["kept"]} == essays


@pytest.mark.spark
def test_the_likeliest_class_is_kept_or_rejected_by_name(
    spark: SparkSession, lake_settings: Settings, unique: str
) -> None:
    kinds = {"advert": examples(unique, "adver"), "essay": examples(unique, "essay")}
    model = classifier(f"{unique}_kind", classes=kinds, source="source")
    assert isinstance(model.rule, Category)
    chosen = Round(predicates={f"{unique}_kind": model.rule.among({"none_of": ["advert"]})})
    assert run(lake_settings, raw(unique), model.asset, *filters(unique, chosen)).success
    rows = Lake(lake_settings).read(names.filtered(unique)).to_pylist()
    essays = {f"{key}@{unique}" for key in TEXTS if key.startswith("essay")}
    assert {row["doc_id"] for row in rows if row["kept"]} == essays
    part = Lake(lake_settings).read(names.signals(unique, f"{unique}_kind")).to_pylist()
    assert {row[f"{unique}_kind"] for row in part} == {"advert", "essay"}
