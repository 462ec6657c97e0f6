"""The cost of every stage of the pipeline: CPU seconds by kind of process, MB a CPU second, peak memory.

Runs the real pipeline (`jobs.definitions`) once on a fresh lake in a temporary folder, on the default share
of the installation (FACTORY_INSTALLATION_SHARE scales it), and ends with the figures of its packed sequences.

Assets run one after the other, so all work of the process tree between the start of one asset and the start
of the next counts for the first: reading, writing, checks, fingerprint, publishing, chart, Dagster's event
log. The time before the first asset (Dagster's run, the JVM) is a row of its own, `start`.

Before that it runs on a quarter of the share in another process: the line through both sizes divides the CPU
seconds of an asset into a part that does not grow with the corpus and one that does. A corpus of
FACTORY_DATASETS has one size, and no such parts.

The input of a stage is the text that enters it: the sum of `n_bytes`, bytes in the source, over its
documents, however often its assets read them. Ingest's includes rejected records.
"""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import dagster as dg
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import SparkSession
from rich.console import Console

from bench.harness import Report, Row, at_most, table
from bench.lakes import own_lake
from bench.packing.measure import CAVEATS as PACKING_CAVEATS
from bench.packing.measure import add_quality
from bench.pipeline.fixed import Costs, Split, smaller_run, split
from bench.processes import SAMPLE_S, ByKind, Meter, Span
from factory.cli.runs import execute
from factory.lake import names
from factory.lake.names import TableName
from factory.lake.tables import Lake
from factory.orchestration.host.definitions import definitions
from factory.orchestration.keys import table_of
from factory.orchestration.table import progress
from factory.settings import Settings, settings

START, TOTAL = "start", "total"
MB = 1e6
ALL_STAGES = list(dict.fromkeys(names.STAGE_OF_NAMESPACE.values()))  # in the order of the pipeline
UNTIL_DEDUPLICATED = (START, names.INGEST, names.FILTERS, names.DEDUP)
MOST_FIXED_S, MOST_FIXED_DEDUPLICATED_S = 40, 25  # aims of the whole pipeline, and of it until there
COST_COLUMNS = "wall s | CPU s | driver | JVM | workers | peak MB | JVM MB | workers MB"
CAVEATS = [
    "One run on a cold JVM: its compiler and its garbage count, the first stages pay more of it.",
    "The JVM keeps its heap, so a stage's peak includes what earlier stages left.",
    "The fixed part is a line through two runs, so their noise goes into it.",
    "Wall seconds depend on the machine's other work; CPU seconds depend on it less.",
]


@dataclass(frozen=True)
class Input:
    """The documents that enter a stage, and the bytes of their text."""

    documents: int = 0
    n_bytes: int = 0

    def __add__(self, other: Input) -> Input:
        return Input(self.documents + other.documents, self.n_bytes + other.n_bytes)


def measure(console: Console) -> Report:
    """Run the pipeline on a temporary lake. Raises RunFailed, WrongAnswer."""
    datasets = settings().datasets
    small = smaller_run(settings().installation_share) if datasets is None else None
    with tempfile.TemporaryDirectory(prefix="bench-pipeline-") as folder, _spark_stopped():
        return _measured(own_lake(Path(folder)), small, console)


def costs_of_run(own: Settings, console: Console) -> Costs:
    """Run the pipeline on the lake of `own`; return the CPU seconds of its assets and the MB that it read."""
    with _spark_stopped():
        meter, keys = _run_all(own, console)
        return _costs(meter.spans, inputs(Lake(own), datasets_of(keys)))


def _costs(spans: Iterable[Span], given: Mapping[str, Input]) -> Costs:
    seconds = {span.name: span.cpu_s.total for span in spans}
    return Costs(given[names.INGEST].n_bytes / MB, seconds)


@contextlib.contextmanager
def _spark_stopped() -> Iterator[None]:
    """Stop Spark at the end, before its scratch is removed."""
    try:
        yield
    finally:
        running = SparkSession.getActiveSession()
        if running is not None:
            running.stop()


def _run_all(own: Settings, console: Console) -> tuple[Meter, list[dg.AssetKey]]:
    from jobs.definitions import CORPUS  # after the bench has set its settings

    defined = definitions(CORPUS.assets, own)
    keys = sorted(defined.resolve_asset_graph().get_all_asset_keys())
    console.print(f"the pipeline on {own.installation_share:.1%} of this Python installation, in {own.home}")
    return run(defined, own, keys, console), keys


def _measured(own: Settings, small: Costs | None, console: Console) -> Report:
    meter, keys = _run_all(own, console)
    console.print("checking the tables, measuring the packed sequences")
    lake, datasets = Lake(own), datasets_of(keys)
    given = inputs(lake, datasets)
    entered = given[names.INGEST]
    report = Report(
        [*CAVEATS, _sampling(meter), *PACKING_CAVEATS],
        f"{own.installation_share:.0%} of this Python installation: "
        f"{entered.documents:,} documents, {entered.n_bytes / MB:,.1f} MB",
    )
    check(report, lake, datasets)
    parts = split(small, _costs(meter.spans, given)) if small else {}
    add_costs(report, meter.spans, given, parts)
    add_quality(report, lake, datasets)
    return report


def run(
    defined: dg.Definitions,
    lake_settings: Settings,
    keys: Sequence[dg.AssetKey],
    console: Console,
    named_tables: Iterable[TableName] = (),
) -> Meter:
    """Materialize `keys`; the meter has a span per asset, named after its table, after the span `start`.

    Of tables that are made on demand, the `named_tables` are made.
    """
    with Meter() as meter:

        def listener(event: progress.Progress) -> None:
            if event.phase == "started":
                meter.begin(event.asset)

        with progress.listening(listener):
            execute(defined, lake_settings, keys, console, reuse=False, named_tables=named_tables)
    return meter


def datasets_of(keys: Iterable[dg.AssetKey]) -> list[str]:
    """The datasets among the tables of `keys`."""
    return sorted({table.name for table in map(table_of, keys) if table.namespace == "filtered"})


def by_stage(spans: Iterable[Span]) -> dict[str, Span]:
    """The spans summed by the stage that writes their table, in the order of the pipeline."""
    summed: dict[str, Span] = {}
    for span in spans:
        stage = _stage(span.name)
        summed.setdefault(stage, Span(stage)).add(span)
    return {stage: summed[stage] for stage in (START, *ALL_STAGES) if stage in summed}


def _stage(name: str) -> str:
    return START if name == START else TableName.parse(name).stage


def inputs(lake: Lake, datasets: Iterable[str]) -> dict[str, Input]:
    """The input of every stage, counted in the published tables."""
    given: dict[str, Input] = {}

    def add(stage: str, rows: pa.Table) -> None:
        found = Input(rows.num_rows, int(pc.sum(rows["n_bytes"]).as_py() or 0))
        given[stage] = given.get(stage, Input()) + found

    for dataset in datasets:
        documents = lake.read(names.raw(dataset), ["doc_id", "n_bytes"])
        add(names.INGEST, documents)
        add(names.INGEST, lake.read(names.rejected(dataset), ["n_bytes"]))
        add(names.FILTERS, documents)
        kept = lake.read(names.filtered(dataset), ["doc_id"], "kept = true")
        add(names.DEDUP, documents.filter(pc.is_in(documents["doc_id"], kept["doc_id"])))
        if not lake.exists(names.deduplicated(dataset)):
            continue
        remaining = lake.read(names.deduplicated(dataset), ["n_bytes"])
        add(names.PACKING, remaining)
        if lake.exists(names.sorted_table(dataset)):
            add(names.DEPSORT, remaining)
    return given


def check(report: Report, lake: Lake, datasets: Iterable[str]) -> None:
    """Check that no stage loses or adds a document. Raises WrongAnswer."""
    for dataset in datasets:
        raw, filtered = names.raw(dataset), names.filtered(dataset)
        report.check(
            f"{filtered} holds every document of {raw} once", _ids(lake, raw) == _ids(lake, filtered)
        )
        left, tokenized = names.deduplicated(dataset), names.tokenized(dataset)
        if lake.exists(tokenized):
            content = lake.published(names.packed(dataset)).lineage.content
            report.check(
                f"{tokenized} holds every document of {left} once; packed content {content}",
                _ids(lake, left) == _ids(lake, tokenized),
            )


def _ids(lake: Lake, name: TableName) -> list[str]:
    return sorted(lake.read(name, ["doc_id"])["doc_id"].to_pylist())


def add_costs(
    report: Report, spans: Sequence[Span], given: Mapping[str, Input], parts: Mapping[str, Split]
) -> None:
    """Add the costs of every stage and asset, and of the whole pipeline with its start.

    `parts` has the fixed and the growing CPU seconds of every asset, or nothing.
    """
    stages = by_stage(spans)
    total = Span(TOTAL)
    for span in stages.values():
        total.add(span)
    costs = table("Stages", f"stage | documents in | MB in | MB/CPU s | {COST_COLUMNS}")
    for stage, span in [*stages.items(), (TOTAL, total)]:
        entered = given.get(names.INGEST if stage == TOTAL else stage)
        costs.add_row(stage, *_input_cells(span, entered), *_cost_cells(span))
        report.rows += _rows(f"pipeline.{stage}", span, entered)
    report.tables.append(costs)
    assets = table("Assets", f"table | {COST_COLUMNS} | fixed CPU s | growing CPU s")
    for span in spans:
        if span.name != START:
            part = [parts[span.name]] if parts else []
            assets.add_row(span.name, *_cost_cells(span), *_part_cells(part))
            report.rows.append(Row(f"pipeline.asset.{span.name}.cpu", _rounded(span.cpu_s.total), "s"))
            report.rows += _part_rows(f"pipeline.asset.{span.name}.cpu", part)
    assets.add_row(
        TOTAL, *_cost_cells(total), *_part_cells([_sum(parts, (START, *ALL_STAGES))] if parts else [])
    )
    report.tables.append(assets)
    if parts:
        _add_sums(report, parts)


def _add_sums(report: Report, parts: Mapping[str, Split]) -> None:
    """Add the parts of the whole pipeline and of it up to deduplication, the fixed ones with their aims."""
    for name, part, most_s in (
        (TOTAL, _sum(parts, (START, *ALL_STAGES)), MOST_FIXED_S),
        ("deduplicated", _sum(parts, UNTIL_DEDUPLICATED), MOST_FIXED_DEDUPLICATED_S),
    ):
        report.rows += [
            at_most(f"pipeline.{name}.cpu.fixed", _rounded(part.fixed), "s", most_s),
            Row(f"pipeline.{name}.cpu.growing", _rounded(part.growing), "s"),
        ]


def _sum(parts: Mapping[str, Split], stages: Sequence[str]) -> Split:
    """The parts of these stages, whose spans are the start and tables."""
    return sum((split for name, split in parts.items() if _stage(name) in stages), Split(0, 0))


def _input_cells(span: Span, entered: Input | None) -> list[str]:
    if entered is None:
        return ["", "", ""]
    return [f"{entered.documents:,}", f"{entered.n_bytes / MB:,.1f}", f"{_speed(span, entered):,.2f}"]


def _cost_cells(span: Span) -> list[str]:
    peak = span.peak
    memory = (f"{it / MB:,.0f}" for it in (peak.total, peak.jvm, peak.workers))
    return [*(f"{duration:,.1f}" for duration in span.seconds), *memory]


def _part_cells(found: Iterable[Split]) -> list[str]:
    return [f"{value:,.1f}" for part in found for value in (part.fixed, part.growing)]


def _part_rows(name: str, found: Iterable[Split]) -> list[Row]:
    return [Row(f"{name}.{of}", _rounded(value), "s") for part in found for of, value in asdict(part).items()]


def _rows(name: str, span: Span, entered: Input | None) -> list[Row]:
    rows = []
    if entered is not None:
        rows += [
            Row(f"{name}.documents", entered.documents, "documents"),
            Row(f"{name}.input", _rounded(entered.n_bytes / MB), "MB"),
            Row(f"{name}.speed", _rounded(_speed(span, entered)), "MB/CPU s"),
        ]
    rows += [Row(f"{name}.wall", _rounded(span.wall_s), "s"), *_by_kind(f"{name}.cpu", span.cpu_s, 1, "s")]
    return rows + _by_kind(f"{name}.peak_memory", span.peak, MB, "MB")


def _by_kind(name: str, quantity: ByKind, unit_size: float, unit: str) -> list[Row]:
    parts = {"": quantity.total} | {f".{kind}": value for kind, value in asdict(quantity).items()}
    return [Row(f"{name}{part}", _rounded(value / unit_size), unit) for part, value in parts.items()]


def _speed(span: Span, entered: Input) -> float:
    """MB of input a CPU second; the kernel counts CPU in hundredths, so a span has at least one."""
    return entered.n_bytes / MB / max(span.cpu_s.total, 0.01)


def _rounded(value: float) -> float:
    """The value to four digits: more would be noise."""
    return float(f"{value:.4g}")


def _sampling(meter: Meter) -> str:
    return (
        f"Memory is sampled every {SAMPLE_S} s; the {meter.own_cpu_s:.1f} CPU s of sampling are left out. "
        "Pages that Python workers share are divided among them."
    )
