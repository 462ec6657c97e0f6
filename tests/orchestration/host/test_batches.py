"""How a selection is cut into runs."""

from __future__ import annotations

import dagster as dg
import pytest

from factory.errors import ConfigurationError
from factory.orchestration.host.definitions import definitions
from factory.orchestration.host.partition_span import span_of
from factory.orchestration.host.partitions import READERS_TAG, RunBatch, batches
from factory.settings import Settings
from tests.jobs.chain import keys, table

DAYS = dg.DailyPartitionsDefinition("2026-01-01", end_date="2026-02-01")
LANGUAGES = dg.StaticPartitionsDefinition(["de", "en"])
FOLDERS = dg.DynamicPartitionsDefinition(name="folders")


def names(batch: RunBatch) -> list[str]:
    return [key.to_user_string() for key in batch.keys]


@pytest.fixture
def instance() -> dg.DagsterInstance:
    return dg.DagsterInstance.ephemeral()


def test_tables_without_partitions_take_one_run(instance: dg.DagsterInstance) -> None:
    assets = [table("filtered.web", ["signals.web"]), table("signals.web", ["raw.web"]), table("raw.web")]
    (only,) = batches(assets, keys(assets), instance)
    assert names(only) == ["raw.web", "signals.web", "filtered.web"]
    assert only.tags == {}


def test_each_set_of_partitions_takes_a_run_and_what_they_meet_in_comes_last(
    instance: dg.DagsterInstance,
) -> None:
    assets = [
        table("packed.web", ["filtered.web", "filtered.books", "raw.notes"]),
        table("filtered.web", ["raw.web"], DAYS),
        table("filtered.books", ["raw.books"], LANGUAGES),
        table("raw.notes"),
        table("raw.books", partitions_def=LANGUAGES, side_tables=["rejected"]),
        table("raw.web", partitions_def=DAYS),
    ]
    found = batches(assets, keys(assets), instance)
    assert [(names(run_batch), run_batch.span) for run_batch in found] == [
        (["raw.books", "raw.books_rejected", "filtered.books"], ("de", "en")),
        (["raw.web", "filtered.web"], ("2026-01-01", "2026-01-31")),
        (["raw.notes", "packed.web"], None),
    ]


def test_a_table_waits_for_what_it_is_made_from_whatever_its_partitions(instance: dg.DagsterInstance) -> None:
    assets = [table("raw.web"), table("signals.web", ["raw.web"], DAYS), table("dedup.web", ["signals.web"])]
    runs = batches(assets, keys(assets), instance)
    assert [names(batch) for batch in runs] == [["raw.web"], ["signals.web"], ["dedup.web"]]
    readers = [[key.to_user_string() for key in batch.readers] for batch in runs]
    assert readers == [[], ["signals.web"], ["dedup.web"]]
    assert [batch.tags.get(READERS_TAG) for batch in runs] == [None, "signals.web", "dedup.web"]


def test_a_range_is_checked_against_the_partitions_there_are(instance: dg.DagsterInstance) -> None:
    web = [table("raw.web", partitions_def=DAYS), table("dedup.web", ["raw.web"])]
    found = batches(web, keys(web), instance, span_of("2026-01-03...2026-01-05"))
    assert [run_batch.span for run_batch in found] == [("2026-01-03", "2026-01-05"), None]
    for span, words in (
        (("2026-03-01", "2026-03-01"), "It has 31: 2026-01-01, 2026-01-02, 2026-01-03, ..., 2026-01-29"),
        (("2026-01-05", "2026-01-03"), "Reverse the range: 2026-01-03...2026-01-05"),
    ):
        with pytest.raises(ConfigurationError, match=words):
            batches(web, keys(web), instance, span)
    with pytest.raises(ConfigurationError, match=r"None of raw.web has partitions"):
        batches([table("raw.web")], [dg.AssetKey("raw.web")], instance, ("a", "a"))


def test_a_dynamic_partition_comes_into_being_when_it_is_named_alone(instance: dg.DagsterInstance) -> None:
    web = [table("raw.web", partitions_def=FOLDERS)]
    with pytest.raises(ConfigurationError, match="no partition yet"):
        batches(web, keys(web), instance)
    assert batches(web, keys(web), instance, ("new", "new"))[0].span == ("new", "new")
    assert instance.get_dynamic_partitions("folders") == ["new"]
    with pytest.raises(ConfigurationError, match="Unknown partition `newer`"):
        batches(web, keys(web), instance, ("new", "newer"))


@pytest.mark.parametrize("text", ["", "2026-01-01", "...", "2026-01-01...", "...2026-01-01"])
def test_a_range_has_two_ends(text: str) -> None:
    with pytest.raises(ConfigurationError, match=r"FIRST\.\.\.LAST"):
        span_of(text)


def test_an_external_asset_is_left_out(instance: dg.DagsterInstance) -> None:
    made, blend = table("packed.web"), dg.AssetSpec("blend", deps=[dg.AssetKey("packed.web")])
    graph = definitions([made], Settings(), external=[blend]).resolve_asset_graph()
    (only,) = batches(graph.assets_defs, graph.get_all_asset_keys(), instance)
    assert names(only) == ["packed.web"]
