"""Rounds with clusters and balance as documents arrive: in a second partition, then in a further file."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import dagster as dg
import pytest
from pyspark.sql import SparkSession

from factory.lake import names
from factory.lake.names import TableName
from factory.lake.tables import Lake
from factory.orchestration.datasets.corpus import Corpus
from factory.orchestration.host.partition_span import Span
from factory.orchestration.host.partitions import batches
from factory.orchestration.keys import key_of, table_of
from factory.settings import Settings
from tests.clusters.planted_texts import texts
from tests.orchestration.declared import declared
from tests.orchestration.runs import failure, run

pytestmark = pytest.mark.spark

DATASET = "clustered_partitions"
FILE = f"""\
datasets:
  - name: {DATASET}
    kind: prose
    format: jsonl
    paths: ["parts/{{partition}}"]
    partitions: {{by: key, keys: [first, second]}}
    text: text
    key: id
    rounds:
      - rules: [word_count]
        limits: {{word_count: [1, 100000]}}
      - clusters: {{cells: 3, verdicts: {{0: discard}}}}
      - balance: {{over: [cell, length], size: 0.6}}
"""
KINDS = ("english", "german", "template")
OF_A_KIND = 40
DECIDING = ("embedder", "coarse", "fine", "proxy", "losses", "balance")
OF_DOCUMENTS = (
    names.clusters(DATASET),
    names.clusters(DATASET, "categories"),
    names.filtered(names.in_round(DATASET, 2, of=3)),
    names.filtered(DATASET),
)


def write_documents(file: Path, delivery: int, *kinds: str) -> None:
    """Write OF_A_KIND documents of each kind; every delivery has other ones."""
    file.parent.mkdir(parents=True, exist_ok=True)
    records = [
        {"id": f"{kind}/{delivery}/{number}", "text": text}
        for kind in kinds
        for number, text in enumerate(texts(kind, delivery, OF_A_KIND))
    ]
    file.write_text("".join(f"{json.dumps(record)}\n" for record in records))


def materialize(settings: Settings, corpus: Corpus, span: Span | None = None, *, reuse: bool = False) -> None:
    """Run the tables of all rounds, as `factory materialize` does."""
    keys = [key for asset in corpus.assets for key in asset.keys if of_rounds(table_of(key))]
    for batch in batches(corpus.assets, keys, dg.DagsterInstance.ephemeral(), span):
        options = {"selection": list(batch.keys), "span": batch.span, "readers": batch.readers}
        assert run(settings, *corpus.assets, reuse=reuse, **options).success


def of_rounds(table: TableName) -> bool:
    return table.namespace in ("raw", "signals", "filtered", "clusters") and "distribution" not in table.name


@dataclass(frozen=True)
class Delivery:
    """The tables after a run: the snapshots of those that decide, the verdicts, and rows by document."""

    snapshots: Mapping[str, int]
    verdicts: list[Any]
    raw: Mapping[str, Any]
    of_documents: tuple[Mapping[str, Any], ...]

    @classmethod
    def from_lake(cls, lake: Lake) -> Delivery:
        """Read the tables as they are now."""
        tables = {part: names.clusters(DATASET, part) for part in (*DECIDING, "verdicts")}
        return cls(
            {part: lake.published(tables[part]).snapshot_id for part in DECIDING},
            lake.read(tables["verdicts"]).sort_by("cluster").to_pylist(),
            rows_by_document(lake, names.raw(DATASET)),
            tuple(rows_by_document(lake, table) for table in OF_DOCUMENTS),
        )

    def require_decisions_of(self, earlier: Delivery) -> None:
        """No table was made that decides, and every earlier document has the rows that it had."""
        assert self.snapshots == earlier.snapshots
        assert self.verdicts == earlier.verdicts
        for before, now in zip(earlier.of_documents, self.of_documents, strict=True):
            assert {doc_id: now.get(doc_id) for doc_id in before} == before


def rows_by_document(lake: Lake, table: TableName) -> Mapping[str, Any]:
    return {row["doc_id"]: row for row in lake.read(table).to_pylist()}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the first partition, of three kinds of documents."""
    folder = tmp_path_factory.mktemp("clusters")
    write_documents(folder / "parts/first/a.jsonl", 1, *KINDS)
    return folder


@pytest.fixture(scope="module")
def deliveries(spark: SparkSession, lake_settings: Settings, folder: Path) -> list[Delivery]:
    """The tables after each of three runs: of a partition, of another one, of both with a further file."""
    lake, corpus = Lake(lake_settings), declared(folder, FILE)
    materialize(lake_settings, corpus, ("first", "first"))
    states = [Delivery.from_lake(lake)]
    write_documents(folder / "parts/second/a.jsonl", 2, *KINDS, "noise")
    materialize(lake_settings, corpus, ("second", "second"))
    states.append(Delivery.from_lake(lake))
    write_documents(folder / "parts/first/b.jsonl", 3, *KINDS)
    materialize(lake_settings, corpus, reuse=True)
    return [*states, Delivery.from_lake(lake)]


def test_every_document_of_each_partition_has_a_cluster_and_a_verdict(deliveries: list[Delivery]) -> None:
    for number, n_kinds in enumerate((3, 7, 10)):
        delivery = deliveries[number]
        assert len(delivery.raw) == n_kinds * OF_A_KIND
        for rows in delivery.of_documents[::3]:
            assert rows.keys() == delivery.raw.keys()
    assert {row["language"] for row in deliveries[-1].verdicts} <= {"en", "de"}
    clusters, *_, verdicts = deliveries[-1].of_documents
    members = {doc_id for doc_id, row in clusters.items() if row["cluster"] == 0}
    stays = {doc_id for doc_id, row in verdicts.items() if row["kept"]}
    assert not stays & members
    for partition in ("first", "second"):
        of_partition = {doc_id for doc_id, row in clusters.items() if row["partition"] == partition}
        assert members & of_partition
        assert stays & of_partition


def test_a_second_partition_meets_the_cells_verdicts_and_rates_of_the_first(
    deliveries: list[Delivery], lake_settings: Settings
) -> None:
    first, second, _ = deliveries
    second.require_decisions_of(first)
    coarse = Lake(lake_settings).read(names.clusters(DATASET, "coarse")).to_pylist()
    assert sum(cell["n_documents"] for cell in coarse) == len(first.raw)
    clusters = second.of_documents[0]
    cells: dict[str, set[int]] = defaultdict(set)
    for doc_id, row in clusters.items():
        cells[second.raw[doc_id]["key"].rpartition("/")[0]].add(row["cell"])
    for kind in KINDS:
        assert cells[f"{kind}/2"] <= cells[f"{kind}/1"]


def test_documents_of_a_further_file_change_no_earlier_decision(deliveries: list[Delivery]) -> None:
    _, earlier, later = deliveries
    later.require_decisions_of(earlier)


def test_no_losses_are_made_of_clusters_that_are_gone(
    deliveries: list[Delivery], lake_settings: Settings, folder: Path
) -> None:
    corpus = declared(folder, FILE)
    fine, losses = (key_of(names.clusters(DATASET, part)) for part in ("fine", "losses"))
    assert run(lake_settings, *corpus.assets, selection=[fine]).success
    sentence = failure(run(lake_settings, *corpus.assets, selection=[losses]))
    assert f"Materialize clusters.{DATASET} again, then the tables downstream." in sentence
