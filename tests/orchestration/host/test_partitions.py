"""Partitioned assets: static, by time and dynamic, replaced one by one and in ranges, on a real lake."""

from __future__ import annotations

from dataclasses import dataclass

import dagster as dg
import pytest
from pyspark.sql import DataFrame, SparkSession

from factory.errors import ConfigurationError
from factory.filters.rounds import Round
from factory.lake.fingerprint import fingerprint
from factory.lake.lineage import Lineage
from factory.lake.names import TableName
from factory.lake.publish import AUDIT, FAILED
from factory.lake.schemas.dedup import COMPONENTS
from factory.lake.tables import Lake
from factory.orchestration.chain.dedup.group import dedup_group
from factory.orchestration.chain.refine import refine, variant
from factory.orchestration.host.reap import leftovers
from factory.orchestration.keys import key_of, table_of
from factory.orchestration.table import partition_groups
from factory.orchestration.table.checks import holds
from factory.orchestration.table.declaration import Tables
from factory.settings import Settings
from tests.orchestration.runs import COLUMNS, component_table, run, violations

LANGUAGES = dg.StaticPartitionsDefinition(["de", "en", "fr"])
DAYS = dg.DailyPartitionsDefinition("2026-01-01", end_date="2026-01-04")


class Line:
    """A partitioned source whose rows a test changes, a partitioned table of it and an unpartitioned one."""

    def __init__(self, settings: Settings, name: str, partitions: dg.PartitionsDefinition[str]) -> None:
        self.settings, self.name, self.partitions = settings, name, partitions
        self.lake = Lake(settings)
        self.rows: dict[str, list[str]] = {}
        self.made: list[str] = []  # "table/partition" of every call
        self.instance = dg.DagsterInstance.ephemeral()

    def table(self, suffix: str = "") -> TableName:
        return TableName("dedup", self.name + suffix)

    def assets(self, version: str = "") -> list[dg.AssetsDefinition]:
        rows, made = self.rows, self.made

        @component_table(
            name=self.name,
            side_tables={"twice": COMPONENTS},
            partitions_def=self.partitions,
            checks=[holds("short", "length(doc_id) < 9", "doc_id")],
        )
        def source(context, pyspark, partition: str) -> Tables:  # type: ignore[no-untyped-def]
            made.append(f"source/{partition}")
            of = [(doc_id, partition) for doc_id in rows.get(partition, [])]
            frame = pyspark.spark_session.createDataFrame(of, COLUMNS)
            return Tables(
                frame, {"twice": lambda given: given.selectExpr("concat(doc_id, doc_id) doc_id", "component")}
            )

        @component_table(
            name=f"{self.name}_up",
            upstream={"rows": self.table()},
            partitions_def=self.partitions,
            config={"version": version},
        )
        def upper(context, rows: DataFrame) -> DataFrame:  # type: ignore[no-untyped-def]
            made.append("upper")
            return rows.selectExpr("upper(doc_id) doc_id", "component")

        @component_table(name=f"{self.name}_all", upstream={"rows": self.table("_up")})
        def whole(context, rows: DataFrame) -> DataFrame:  # type: ignore[no-untyped-def]
            made.append("whole")
            return rows.selectExpr("concat(doc_id, '!') doc_id", "component")

        return [source, upper, whole]

    def run(
        self, first: str | None, last: str | None = None, *, reuse: bool = False, version: str = ""
    ) -> dg.ExecuteInProcessResult:
        """Materialize the partitioned tables in a partition or a range, or (None) what is whole."""
        chosen = ["", "_twice", "_up"] if first is not None else ["_all"]
        return run(
            self.settings,
            *self.assets(version),
            selection=[key_of(self.table(suffix)) for suffix in chosen],
            span=None if first is None or last is None else (first, last),
            partition_key=first if last is None else None,
            instance=self.instance,
            reuse=reuse,
        )

    def held(self, suffix: str = "") -> dict[str | None, list[str]]:
        """The ids of a table by the column `partition`."""
        found: dict[str | None, list[str]] = {}
        for row in self.lake.read(self.table(suffix), ["doc_id", "partition"]).to_pylist():
            found.setdefault(row["partition"], []).append(row["doc_id"])
        return {key: sorted(found[key]) for key in sorted(found, key=str)}

    def content(self, suffix: str = "") -> str:
        """The fingerprint of what the table holds, computed from its rows."""
        rows = self.lake.read(self.table(suffix))
        return str(fingerprint(rows.to_batches(), COMPONENTS.fingerprinted))


@pytest.fixture
def line(spark: SparkSession, lake_settings: Settings, unique: str) -> Line:
    return Line(lake_settings, unique, LANGUAGES)


@dataclass(frozen=True)
class State:
    """A run, and the tables of its line after it, by suffix."""

    result: dg.ExecuteInProcessResult
    held: dict[str, dict[str | None, list[str]]]
    lineage: dict[str, Lineage]
    content: dict[str, str]  # computed from the rows
    failed: bool  # whether the rows of a failed check lie beside the source's

    @classmethod
    def after(cls, result: dg.ExecuteInProcessResult, line: Line) -> State:
        suffixes = ("", "_twice", "_up")
        return cls(
            result,
            {suffix: line.held(suffix) for suffix in suffixes},
            {suffix: line.lake.published(line.table(suffix)).lineage for suffix in suffixes},
            {suffix: line.content(suffix) for suffix in suffixes},
            line.table() in leftovers(line.lake, FAILED) and line.table() not in leftovers(line.lake, AUDIT),
        )


@dataclass(frozen=True)
class Story:
    """A line of two partitions after the second and each later run."""

    replaced: State
    whole: dict[str | None, list[str]]  # the unpartitioned table made of `replaced`
    refused: State
    emptied: State
    appended: State  # after rows of another writer


@pytest.fixture(scope="module")
def story(spark: SparkSession, lake_settings: Settings) -> Story:
    line = Line(lake_settings, "line_of_two", LANGUAGES)

    def state(first: str, last: str | None = None, **rows: list[str]) -> State:
        line.rows |= rows
        return State.after(line.run(first, last), line)

    assert state("de", "en", de=["a"], en=["b", "c"]).result.success
    replaced = state("de", de=["d", "e"])
    assert line.run(None).success
    whole = line.held("_all")
    refused = state("en", en=["d"])  # the key of a row in another partition
    emptied = state("de", de=[])
    spark.createDataFrame([("x", "1", "en")], f"{COLUMNS}, partition string").writeTo(
        f"lake.{line.table()}"
    ).append()
    assert not line.lake.partitions(line.table()).complete
    return Story(replaced, whole, refused, emptied, state("de", de=["f"]))


@pytest.mark.invariant(
    "Replacing a partition leaves the others alone; a range is one publish and equals its partitions one "
    "by one."
)
@pytest.mark.spark
def test_a_partition_is_replaced_and_the_others_stay(story: Story) -> None:
    state = story.replaced
    assert state.result.success
    assert state.held == {
        "": {"de": ["d", "e"], "en": ["b", "c"]},
        "_twice": {"de": ["dd", "ee"], "en": ["bb", "cc"]},
        "_up": {"de": ["D", "E"], "en": ["B", "C"]},
    }
    for suffix, lineage in state.lineage.items():
        assert lineage.content == state.content[suffix]
        assert list(lineage.partitions) == ["de"]
    events = [event for event in state.result.get_asset_materialization_events() if event.partition == "de"]
    assert len(events) == 3
    assert {event.materialization.metadata["dagster/partition_row_count"].value for event in events} == {2}
    assert story.whole == {None: ["B!", "C!", "D!", "E!"]}


@pytest.mark.spark
def test_checks_see_the_partition_and_uniqueness_the_table(story: Story) -> None:
    assert not story.refused.result.success
    assert story.refused.held == story.replaced.held
    assert violations(story.refused.result) == {"unique_doc_id": 1}
    assert story.refused.failed
    assert not story.replaced.failed


@pytest.mark.spark
def test_a_partition_that_becomes_empty_loses_its_old_rows(story: Story) -> None:
    state = story.emptied
    assert state.result.success
    assert state.held["_up"] == {"en": ["B", "C"]}
    assert state.lineage[""].content == state.content[""]
    assert state.lineage[""].partitions["de"].endswith("-0")


@pytest.mark.spark
def test_the_content_is_right_after_another_writer(story: Story) -> None:
    state = story.appended
    assert state.result.success
    assert state.held[""] == {"de": ["f"], "en": ["b", "c", "x"]}
    assert state.lineage[""].content == state.content[""]


@pytest.mark.spark
def test_a_damaged_table_is_made_again_by_a_run_of_all_its_partitions(line: Line) -> None:
    line.rows = {"de": ["a"], "en": ["b"], "fr": ["c"]}
    assert line.run("de", "fr").success
    file = max((line.settings.files.warehouse / "dedup" / line.name).rglob("*.metadata.json"))
    file.write_bytes(file.read_bytes()[:-100])
    (failure, *_) = line.run("de").get_step_failure_events()
    assert file.name in str(failure.step_failure_data.error)
    assert line.run("de", "fr").success
    assert line.held() == {"de": ["a"], "en": ["b"], "fr": ["c"]}


@pytest.mark.invariant(
    "Replacing a partition leaves the others alone; a range is one publish and equals its partitions one "
    "by one."
)
@pytest.mark.spark
def test_a_range_is_one_publish_and_equals_its_partitions_one_by_one(
    spark: SparkSession, lake_settings: Settings, unique: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(partition_groups, "GROUP_SIZE", 2)  # so that the range is written in two groups
    rows = {"2026-01-01": ["a"], "2026-01-02": ["b", "c"], "2026-01-03": ["d"]}
    at_once, in_turn = (Line(lake_settings, f"{unique}_{kind}", DAYS) for kind in ("r", "s"))
    for made in (at_once, in_turn):
        made.rows = rows
    result = at_once.run("2026-01-01", "2026-01-03")
    assert result.success
    (before,) = {at_once.lake.published(at_once.table(of)).lineage.run_id for of in ("", "_twice", "_up")}
    assert before == result.run_id
    assert all(in_turn.run(day).success for day in rows)
    for suffix in ("", "_twice", "_up"):
        assert at_once.held(suffix) == in_turn.held(suffix)
        assert at_once.lake.published(at_once.table(suffix)).lineage.content == at_once.content(suffix)
        assert at_once.content(suffix) == in_turn.content(suffix)
        said = [of.lake.partitions(of.table(suffix)).lineage for of in (at_once, in_turn)]
        assert {day: said[0][day].partitions[day] for day in rows} == {
            day: said[1][day].partitions[day] for day in rows
        }


@pytest.mark.spark
def test_dynamic_partitions_are_made_as_they_appear(
    spark: SparkSession, lake_settings: Settings, unique: str
) -> None:
    line = Line(lake_settings, unique, dg.DynamicPartitionsDefinition(name=unique))
    for key in ("second", "first"):
        line.instance.add_dynamic_partitions(unique, [key])
        line.rows[key] = [key]
        assert line.run(key).success
    assert line.held("_up") == {"first": ["FIRST"], "second": ["SECOND"]}


@pytest.mark.spark
def test_a_partition_is_reused_until_its_own_upstream_changes(line: Line) -> None:
    line.rows = {"de": ["a"], "en": ["b"], "fr": ["c"]}
    assert line.run("de", "fr", reuse=True).success
    line.rows["en"] = ["changed"]
    line.made.clear()
    assert line.run("de", "fr", reuse=True).success
    # A source is read again; of what is made from it, only the changed partition.
    assert line.made == ["source/de", "source/en", "source/fr", "upper"]
    assert line.held("_up") == {"de": ["A"], "en": ["CHANGED"], "fr": ["C"]}
    assert list(line.lake.published(line.table("_up")).lineage.partitions) == ["en"]
    line.made.clear()
    assert line.run("de", reuse=True, version="2").success
    assert line.made == ["source/de", "upper"]
    assert line.run(None, reuse=True).success
    line.made.clear()
    assert line.run(None, reuse=True).success
    assert line.made == []


def test_refine_makes_signals_and_verdicts_by_partition() -> None:
    group = dedup_group("web", ["web"], kind="prose")
    rounds = [Round(rules=["gopher_quality"]), Round(rules=["gopher_repetition"])]
    chain = refine("web", dedup_group=group, rounds=rounds, tokenizer="tokenizer", partitions_def=DAYS)
    beside = variant(chain, "strict", rounds=[Round(rules=["c4"])])
    partitioned = {
        table_of(key).namespace: asset.partitions_def
        for asset in (*group.assets, *chain, *beside)
        for key in asset.keys
        if asset.partitions_def is not None
    }
    assert partitioned == {"signals": DAYS, "filtered": DAYS}
    for asset in (*chain, *beside):
        (namespace,) = {table_of(key).namespace for key in asset.keys}
        assert (asset.partitions_def is not None) == (namespace in partitioned)


def test_an_argument_partition_needs_partitions(unique: str) -> None:
    with pytest.raises(ConfigurationError, match="Give `partitions_def`"):

        @component_table(name=unique)
        def made(context, partition: str) -> DataFrame:  # type: ignore[no-untyped-def]
            raise AssertionError(partition)
