"""The sequences that packing needs, its speed, and how much of a repository's order it keeps together.

`bench.packing.lengths` packs drawn lengths and the lengths of real files and compares seqpacker,
`bench.packing.repositories` plans the repositories of a lake and compares next-fit and best-fit.
`bench.packing.metrics` measures the packed tables, planned by chunk: their fill against the fewest sequences
any plan needs, and the dependencies that stand whole in the dependent's sequence, before it, against next-fit
over the same documents.
"""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow.compute as pc
from rich.console import Console

from bench.dedup.corpus import corpus
from bench.harness import Report, Row, at_least, at_most, cells, table
from bench.packing.lengths import CAVEATS as LENGTH_CAVEATS
from bench.packing.lengths import add_lengths, lognormal, of_repositories
from bench.packing.metrics import PackingMetrics
from bench.packing.metrics import measure as packing_metrics
from bench.packing.repositories import add_repositories
from factory.errors import TableNotFound
from factory.lake import names
from factory.lake.names import TableName
from factory.lake.schemas.base import REPOSITORY
from factory.lake.schemas.packing import SEQUENCE_LENGTH
from factory.lake.tables import Lake
from factory.settings import settings

LEAST_FILL = 0.999  # share of the best fill of any plan
MOST_SPLIT = 0.01  # share of the documents that fit a sequence
LEAST_VISIBLE = 1.0  # share of the dependencies that next-fit shows
CAVEATS = ["Next-fit leaves sequences unfilled to show dependencies: it is the yardstick, not a rival."]


def measure(progress: Console) -> Report:
    """Measure lengths, then the lake of FACTORY_HOME. Raises TableNotFound if nothing is packed there."""
    lake = Lake(settings())
    datasets = packed_datasets(lake)
    if not datasets:
        raise TableNotFound(
            f"The lake in {lake.settings.home} has no packed table. Run the pipeline: make demo."
        )
    report = Report(
        [*LENGTH_CAVEATS, *CAVEATS],
        f"lengths drawn, the files of packages' releases, and the lake in {lake.settings.home}",
    )
    add_lengths(report, "lognormal", lognormal(), progress)
    add_lengths(report, "repositories", of_repositories(corpus(progress)), progress)
    for dataset in datasets:
        if lake.exists(names.depsort(dataset, "dependencies")):
            progress.print(f"planning {dataset}")
            add_repositories(report, lake, dataset)
    add_quality(report, lake, datasets)
    return report


def packed_datasets(lake: Lake) -> list[str]:
    """The datasets with packed sequences in the lake."""
    return [
        table.name
        for table in lake.names()
        if table.namespace == "filtered" and lake.exists(names.packed(table.name))
    ]


def add_quality(report: Report, lake: Lake, datasets: list[str]) -> None:
    """Check that no token was lost, then add the figures of `datasets` to the report."""
    for dataset in datasets:
        report.check(
            f"{names.packed(dataset)} holds every token of {names.tokenized(dataset)}",
            _tokens(lake, names.packed(dataset)) == _tokens(lake, names.tokenized(dataset)),
        )
    found = {dataset: _metrics(lake, dataset) for dataset in datasets}
    _show(report, found)
    for dataset, metrics in found.items():
        report.rows += quality_rows(f"packing.{dataset}", metrics)


def _tokens(lake: Lake, table: TableName) -> int:
    return int(pc.sum(lake.read(table, ["n_tokens"])["n_tokens"]).as_py() or 0)


def _metrics(lake: Lake, dataset: str) -> PackingMetrics:
    edges = names.depsort(dataset, "dependencies")
    return packing_metrics(
        lake.read(names.packed(dataset), ["segments"]),
        lake.read(names.tokenized(dataset), ["doc_id", *REPOSITORY, "position", "n_tokens"]),
        lake.read(edges, ["doc_id", "depends_on"]) if lake.exists(edges) else None,
        int(lake.table(names.packed(dataset)).properties[SEQUENCE_LENGTH]),
    )


def _show(report: Report, found: Mapping[str, PackingMetrics]) -> None:
    columns = "dataset | tokens per\nsequence | documents | sequences | fill | of the\nbest | fitting\nsplit"
    made = table("Packed sequences", f"{columns} | edges | visible | next-fit")
    for dataset, it in found.items():
        line = f"{dataset} | {it.sequence_length:,} | {it.n_documents:,} | {it.n_sequences:,} | {it.fill:.2%}"
        line += f" | {it.fill_of_best:.2%} | {it.n_fitting_split:,} of {it.n_fitting:,}"
        line += f" | {it.n_dependencies:,}"
        if it.n_dependencies:
            line += f" | {it.n_visible:,} ({it.visible_share:.1%})"
            line += f" | {it.n_visible_next_fit:,} ({it.visible_share_next_fit:.1%})"
        made.add_row(*cells(line))
    report.tables.append(made)


def quality_rows(name: str, it: PackingMetrics) -> list[Row]:
    """The figures of one dataset as rows, three of them with an aim."""
    rows = [
        Row(f"{name}.sequences", it.n_sequences, "sequences"),
        Row(f"{name}.sequence_length", it.sequence_length, "tokens"),
        Row(f"{name}.fill", it.fill, "share"),
        at_least(f"{name}.fill_of_best", it.fill_of_best, "share", LEAST_FILL),
        at_most(f"{name}.fitting_split", it.fitting_split_share, "share", MOST_SPLIT),
    ]
    if it.n_dependencies:
        rows += [
            Row(f"{name}.edges", it.n_dependencies, "dependencies"),
            Row(f"{name}.visible", it.visible_share, "share"),
            Row(f"{name}.visible_next_fit", it.visible_share_next_fit, "share"),
        ]
    if it.n_visible_next_fit:
        against = it.n_visible / it.n_visible_next_fit
        rows.append(at_least(f"{name}.visible_against_next_fit", against, "ratio", LEAST_VISIBLE))
    return rows
