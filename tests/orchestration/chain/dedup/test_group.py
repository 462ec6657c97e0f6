"""The assets of a dedup group on a real lake: what `--changed` makes again when the group grows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

import dagster as dg
import pytest
from pyspark.sql import SparkSession

from factory.dedup.config import DedupConfig
from factory.dedup.repository_config import RepositoryConfig
from factory.lake import names
from factory.lake.schemas.filters import FILTERED
from factory.lake.schemas.ingest import RAW
from factory.lake.tables import Lake
from factory.orchestration.chain.dedup.group import Kind, dedup_group
from factory.orchestration.keys import key_of
from factory.orchestration.table import table_asset as table_asset_module
from factory.orchestration.table.declaration import Declaration
from factory.orchestration.table.table_asset import table_asset
from factory.settings import Settings
from tests.dedup.corpus import arrow, corpus
from tests.orchestration.runs import run

ROWS = corpus(12, seed=9)
QUARTER = len(ROWS) // 4


def dataset(name: str, rows: Sequence[dict[str, object]]) -> list[dg.AssetsDefinition]:
    """`raw` and `filtered` of a dataset, in which every document is kept."""

    @table_asset(namespace="raw", name=name, asset_group="test", schema=RAW)
    def documents(context, pyspark):  # type: ignore[no-untyped-def]
        return pyspark.spark_session.createDataFrame(arrow(list(rows)).drop_columns(["dataset"]))

    @table_asset(
        namespace="filtered",
        name=name,
        asset_group="test",
        schema=FILTERED,
        upstream={"documents": names.raw(name)},
    )
    def verdicts(documents):  # type: ignore[no-untyped-def]
        nothing = "CAST(array() AS array<struct<rule string, value double, threshold double>>) rejections"
        return documents.selectExpr("doc_id", "true kept", nothing, "partition")

    return [documents, verdicts]


@dataclass(frozen=True)
class State:
    """What the lake has after a run of the group: the snapshot of each table, and the rows of two."""

    snapshots: dict[str, int]
    signatures: dict[str, bytes]  # by content_hash
    versions: set[str]
    datasets: set[str]


SIGNED = ("bags", "vocabulary", "signatures")
DECIDED = (*SIGNED, "buckets", "edges", "components", "decisions")


class Lakeside:
    """Runs of a group whose datasets and settings change."""

    def __init__(self, settings: Settings, name: str) -> None:
        self.settings, self.name, self.lake = settings, name, Lake(settings)

    def run(
        self,
        datasets: dict[str, Sequence[dict[str, object]]],
        wanted: Sequence[str],
        changed: Sequence[str] = (),
        **config: object,
    ) -> State:
        """Make the `changed` datasets, and the `wanted` tables of the group of all."""
        chosen = DedupConfig(kind="code", **config)  # type: ignore[arg-type]
        group = dedup_group(self.name, list(datasets), kind="code", config=chosen)
        sources = {name: dataset(name, rows) for name, rows in datasets.items()}
        tables = {part: names.dedup(self.name, part) for part in wanted}
        selection = [key for name in changed for asset in sources[name] for key in asset.keys]
        selection += map(key_of, tables.values())
        assets = (*chain.from_iterable(sources.values()), *group.assets)
        assert run(self.settings, *assets, selection=selection, reuse=True).success
        signatures = self.lake.read(tables["signatures"]).to_pylist()
        decisions = self.lake.read(tables["decisions"]).to_pylist() if "decisions" in tables else []
        return State(
            {part: self.lake.published(table).snapshot_id for part, table in tables.items()},
            {row["content_hash"]: row["signature"] for row in signatures},
            {row["version"] for row in signatures},
            {row["dataset"] for row in decisions},
        )


@dataclass(frozen=True)
class Grown:
    """A group after each of four runs, between which its datasets or a setting change."""

    small: State
    tripled: State
    joined: State  # by a second dataset
    stricter: State  # at another threshold of the sweep, which was declared


@pytest.fixture(scope="module")
def grown(spark: SparkSession, lake_settings: Settings) -> Grown:
    lakeside = Lakeside(lake_settings, "growing_group")
    web = {"growing_web": ROWS[QUARTER:]}
    both = web | {"growing_books": ROWS[:QUARTER]}
    return Grown(
        small=lakeside.run({"growing_web": ROWS[QUARTER : 2 * QUARTER]}, SIGNED, ["growing_web"]),
        tripled=lakeside.run(web, SIGNED, ["growing_web"]),
        joined=lakeside.run(both, DECIDED, ["growing_books"], sweep=(0.85, 0.9, 0.95)),
        stricter=lakeside.run(both, DECIDED, threshold=0.85, sweep=(0.8, 0.9, 0.95), removed_alarm=0.9),
    )


@pytest.mark.spark
def test_a_group_that_has_doubled_is_counted_and_signed_again(grown: Grown) -> None:
    assert grown.tripled.snapshots["vocabulary"] != grown.small.snapshots["vocabulary"]
    assert not grown.tripled.versions & grown.small.versions


@pytest.mark.spark
def test_a_joining_dataset_changes_no_vocabulary_and_no_signature(grown: Grown) -> None:
    assert grown.joined.snapshots["vocabulary"] == grown.tripled.snapshots["vocabulary"]
    assert grown.tripled.signatures.items() < grown.joined.signatures.items()
    assert grown.joined.datasets == {"growing_web", "growing_books"}


@pytest.mark.spark
def test_another_threshold_of_the_sweep_decides_anew_and_compares_nothing(grown: Grown) -> None:
    before, after = grown.joined.snapshots, grown.stricter.snapshots
    for part in ("vocabulary", "signatures", "edges"):
        assert after[part] == before[part]
    assert after["decisions"] != before["decisions"]


LEXED = {"bags", "vocabulary", "signatures"}
BANDED = {"buckets", "largest_buckets", "recall"}
REPOSITORIES = RepositoryConfig(share=0.7, topics={"a": "web", "b": "games"})
STALE: list[tuple[dict[str, object], set[str]]] = [
    ({"kind": "prose"}, LEXED),
    ({"kind": "prose", "tokens": "cl100k_base"}, LEXED),
    ({"shingle": 2}, LEXED),
    (
        {"threshold": 0.85, "sweep": (0.8, 0.9, 0.95)},
        {
            "edges",
            "components",
            "decisions",
            "repository_edges",
            "repositories",
        },  # no sweep was declared before
    ),
    ({"sweep": (0.9,)}, {"edges", "sweep"}),
    ({"sweep": (0.7, 0.85, 0.9, 0.95)}, {"edges", "sweep", *BANDED}),
    ({"scheme": "cell_oph"}, {"signatures"}),
    ({"values": 128}, {"signatures", "edges", *BANDED}),
    ({"value_bits": 4}, {"signatures", "edges", *BANDED}),
    ({"band_bits": 88}, BANDED),
    ({"seed": 1}, {"signatures"}),
    ({"miss_cost": 0.9}, BANDED),
    ({"miss_cost": 0.9951}, set()),  # the same rows and bands
    (
        {"priority": ("length",)},
        {"signatures", "largest_buckets", "edges", "decisions", "sweep", "repository_edges", "repositories"},
    ),
    ({"keep": "cover"}, {"decisions", "sweep"}),
    ({"removed_alarm": 0.9}, set()),
    ({"recount_growth": 3}, set()),
    ({"share": 0.9}, {"repository_edges", "repositories"}),
    ({"topics": {"a": "web"}}, {"topics"}),
    ({"topics": {}, "topics_table": "clusters.web"}, {"topics"}),  # `repositories` reads another table
    ({"dropped_topics": ("games",)}, {"repositories"}),
    ({"pinned": ("a",)}, {"repository_edges", "repositories"}),
]


@pytest.mark.parametrize("changed, stale", STALE, ids=lambda of: " ".join(sorted(of)))
def test_a_setting_makes_the_tables_stale_that_it_decides(
    monkeypatch: pytest.MonkeyPatch, changed: dict[str, object], stale: set[str]
) -> None:
    kind: Kind = "prose" if changed.get("kind") == "prose" else "code"
    found = [_config_hashes(monkeypatch, kind, options) for options in ({}, changed)]
    assert {part for part, digest in found[0].items() if found[1].get(part) != digest} == stale


def test_every_setting_is_tried() -> None:
    tried = {name for changed, _ in STALE for name in changed}
    assert tried == DedupConfig.model_fields.keys() | RepositoryConfig.model_fields.keys()


def _config_hashes(monkeypatch: pytest.MonkeyPatch, kind: Kind, options: dict[str, object]) -> dict[str, str]:
    """The config hash of each table of a group; only a group of code has tables of repositories."""
    declared: list[Declaration] = []

    def recorded(**fields: Any) -> Declaration:
        declared.append(Declaration(**fields))
        return declared[-1]

    monkeypatch.setattr(table_asset_module, "Declaration", recorded)
    of_documents = {name: option for name, option in options.items() if name in DedupConfig.model_fields}
    of_repositories = {name: option for name, option in options.items() if name not in of_documents}
    dedup_group(
        "g",
        ["web"],
        kind=kind,
        config=DedupConfig.model_validate({"kind": "code", **of_documents}),
        repositories=REPOSITORIES.model_copy(update=of_repositories) if kind == "code" else None,
    )
    return {declaration.table.name.removeprefix("g_"): declaration.config for declaration in declared}
