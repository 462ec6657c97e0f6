"""The figures of `bench packing` on repositories small enough to check by eye."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from rich.console import Console

from bench.dedup.corpus import FOLDS, Corpus
from bench.harness import Report
from bench.packing.lengths import of_repositories
from bench.packing.measure import _show
from bench.packing.metrics import PackingMetrics, visible_dependencies
from bench.packing.next_fit import next_fit_chunk
from bench.packing.repositories import Repositories, best_fit, ours
from factory.packing.pack import PackConfig
from spark_udfs.packing.pack import plan_chunk


@pytest.fixture
def repositories() -> Repositories:
    """Two repositories: `a1` needs `a0`, `a2` needs both; `b1` needs `b0`, longer than a sequence."""
    documents = pa.table(
        {
            "doc_id": ["a0", "a1", "a2", "b0", "b1"],
            "repository": ["a", "a", "a", "b", "b"],
            "revision": pa.nulls(5, pa.string()),
            "position": [0, 1, 2, 0, 1],
            "n_tokens": [3, 3, 4, 13, 6],
        }
    )
    edges = {"doc_id": ["a1", "a2", "a2", "b1"], "depends_on": ["a0", "a0", "a1", "b0"]}
    return Repositories(documents, pa.table(edges))


def test_runs_keep_dependencies_that_single_documents_lose(repositories: Repositories) -> None:
    plans = (
        ours(repositories, 10),  # a0 a1 a2 | b0's first ten | b0's last three, b1
        next_fit_chunk(repositories.documents, 10),
        best_fit(repositories, 10),
    )
    assert [len(plan["sequence"].unique()) for plan in plans] == [3, 3, 3]
    # Of b0 only the end stands before b1; best-fit keeps a0 a1 together, and a2 stands with b1.
    visible = [visible_dependencies(plan, repositories.dependencies) for plan in plans]
    assert visible == [(4, 3), (4, 3), (4, 1)]
    assert [repositories.fill_of_best(plan, 10) for plan in plans] == [1] * 3
    alone = pa.table({"doc_id": ["a"] * 4, "sequence": [0, 1, 2, 3]})
    assert repositories.fill_of_best(alone, 10) == 3 / 4


def test_a_dependency_that_fits_is_visible_wherever_its_dependent_ends(
    repositories: Repositories,
) -> None:
    plan = ours(repositories, 20)
    assert visible_dependencies(plan, repositories.dependencies) == (4, 4)
    assert len(plan["sequence"].unique()) == 2


def test_the_lengths_of_repositories_are_estimated_from_bytes(tmp_path: Path) -> None:
    made = Corpus(tmp_path)
    for number, file in enumerate(made.files(range(FOLDS))):
        pq.write_table(pa.table({"n_bytes": pa.array([1, 100 * number], pa.int64())}), file)
    assert of_repositories(made).tolist()[2:6] == [1, 25, 1, 50]


@pytest.fixture(scope="module")
def many_repositories() -> Repositories:
    """40,000 documents in repositories of 50; a third of the documents depend on two earlier ones."""
    random, n, size = np.random.default_rng(5), 40_000, 50
    documents = pa.table(
        {
            "doc_id": [f"{number:06}" for number in range(n)],
            "repository": [f"{number // size:04}" for number in range(n)],
            "revision": pa.nulls(n, pa.string()),
            "position": np.arange(n) % size,
            "n_tokens": random.lognormal(6.3, 1.2, n).astype(np.int64) + 1,
        }
    )
    dependents = np.repeat(np.arange(0, n, 3), 2)
    dependencies = dependents - random.integers(1, 20, len(dependents))
    inside = (dependencies >= 0) & (dependencies // size == dependents // size)
    ids = documents["doc_id"]
    edges = {"doc_id": ids.take(dependents[inside]), "depends_on": ids.take(dependencies[inside])}
    return Repositories(documents, pa.table(edges))


def in_chunks(repositories: Repositories, config: PackConfig) -> list[pa.Table]:
    """The plans of the chunks into which `factory.packing.pack` cuts a table of one shard."""
    documents = repositories.documents
    n_documents, lengths = len(documents), documents["n_tokens"].to_numpy()
    chunk_documents = config.resolved(n_documents, int(lengths.sum())).chunk_documents
    assert chunk_documents is not None
    n_chunks = n_documents // chunk_documents
    chunk = np.arange(n_documents) * n_chunks // n_documents
    edges = repositories.dependencies.to_pandas().groupby("doc_id")["depends_on"].agg(list)
    depends_on = edges.reindex(documents["doc_id"].to_pylist())
    documents = documents.append_column("depends_on", pa.array(depends_on, pa.list_(pa.string())))
    return [
        plan_chunk(
            documents.filter(pa.array(chunk == number)),
            config.sequence_length,
            config.slack,
            int(lengths[chunk < number].sum()),
        )
        for number in range(n_chunks)
    ]


@pytest.mark.parametrize("sequence_length", [2_048, 8_192, 32_768])
def test_the_default_slack_fills_sequences_and_beats_next_fit(
    many_repositories: Repositories, sequence_length: int
) -> None:
    plan = ours(many_repositories, sequence_length)
    next_fit = next_fit_chunk(many_repositories.documents, sequence_length)
    _, visible = visible_dependencies(plan, many_repositories.dependencies)
    _, visible_by_next_fit = visible_dependencies(next_fit, many_repositories.dependencies)
    assert many_repositories.fill_of_best(plan, sequence_length) >= 0.999
    assert visible > visible_by_next_fit


@pytest.mark.invariant(
    "The chunks of a packed table share its slack: for any number of chunks, the default slack keeps the "
    "fill above .999 of the best."
)
@pytest.mark.parametrize("sequence_length, n_chunks", [(2_048, 20), (8_192, 5)])
def test_the_chunks_of_a_table_share_its_slack(
    many_repositories: Repositories, sequence_length: int, n_chunks: int
) -> None:
    plans = in_chunks(many_repositories, PackConfig(sequence_length=sequence_length))
    n_sequences = [len(plan["sequence"].unique()) for plan in plans]
    least = -(-sum(many_repositories.documents["n_tokens"].to_pylist()) // sequence_length)
    assert len(plans) == n_chunks
    assert sum(n_sequences) == int(least * 1.001)  # all of the slack and no more


def test_the_figures_of_large_tables_fit_a_terminal() -> None:
    report = Report([], "")
    _show(
        report,
        {"python_prose": PackingMetrics(999_999, 10**12, 999_999, 32_768, 999_999, 9, 999_999, 99_999, 9)},
    )
    assert Console(width=500).measure(report.tables[0]).maximum <= 120
