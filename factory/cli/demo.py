"""`factory demo`: run the pipeline on the corpus, serve a blend of it, trace two documents."""

from __future__ import annotations

import hashlib
import json
import random
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from blender import BlenderClient, Source
from blender.batch import Batch
from blender.catalog.blends import open_blends
from blender.errors import BlenderFailure
from blender.spec.mixture import MAX_ROWS_PER_STEP
from factory.cli.output import frame
from factory.cli.runs import RunReport, execute
from factory.cli.selection import select
from factory.cli.serving import blender_process
from factory.cli.summary import show_summary
from factory.cli.trace import as_plain, document_tree
from factory.errors import ConfigurationError, NotFound
from factory.explain.summary import PipelineSummary, summarize
from factory.explain.trace import DocumentTrace, trace_documents
from factory.lake import names
from factory.lake.packed_tables import delivered_columns
from factory.lake.tables import Lake
from factory.orchestration.datasets.blend_asset import created
from factory.orchestration.datasets.corpus import Corpus
from factory.orchestration.host.instance import open_instance
from factory.settings import Settings

CHECKED_OFFSETS = 5  # steps fetched again, and again from a restarted server


@dataclass(frozen=True)
class Fetched:
    """The steps fetched from the blend, and the result of fetching some of them again."""

    blend: str
    steps: int
    rows: int
    tokens: int
    seconds: float
    rows_per_second: float
    epochs: dict[str, int]  # epochs begun, by table
    checked_offsets: list[int]
    same_again: bool
    same_after_restart: bool


def run(settings: Settings, steps: int, console: Console) -> None:
    """Materialize, serve, fetch, check, trace, and print the figures.

    Writes the figures to FACTORY_HOME/summary.json, too. Raises RunFailed if an asset or check fails,
    BlenderFailure if a step fetched again differs, ConfigurationError for weights that no blend accepts.
    """
    from jobs.definitions import CORPUS, WATCHED, defs

    if (total := sum(CORPUS.weights.values())) > MAX_ROWS_PER_STEP:  # before the pipeline runs
        raise ConfigurationError(
            f"The weights of the blend sum to {total:,} rows a step. Use at most {MAX_ROWS_PER_STEP:,}."
        )
    began = time.monotonic()
    console.print(f"[bold]The pipeline[/] on {escape(CORPUS.title)}, in {settings.home}")
    report = execute(defs, settings, select(defs, "*"), console, reuse=True, watched=WATCHED)
    lake = Lake(settings)
    fetched = _fetch(settings, _weights(lake, CORPUS, console), CORPUS, steps, console)
    figures = {"steps": fetched.steps, "rows": fetched.rows, "tokens": fetched.tokens}
    open_instance(settings).report_runless_asset_event(created(fetched.blend, figures))
    summary = summarize(lake, CORPUS.datasets, CORPUS.groups)
    followed = _two_documents(settings, lake, CORPUS.datasets, fetched.blend)
    seconds = time.monotonic() - began
    _show(console, summary, fetched, followed)
    path = settings.files.summary
    path.write_text(json.dumps(_plain(summary, fetched, report, followed, seconds), indent=2, default=str))
    if report.warnings:
        console.print(f"\n{report.closing()}")  # again, because they have scrolled away
    console.print(f"\n{seconds:.0f} s in all. The same figures as JSON: {path}")


def digest(batch: Batch) -> str:
    """Return a hash of every value of a batch, including the bytes of its tokens."""
    state = hashlib.blake2b(digest_size=16)
    for column in batch.arrow.columns:
        state.update(repr(column.to_pylist()).encode())
    return state.hexdigest()


def _weights(lake: Lake, corpus: Corpus, console: Console) -> dict[str, int]:
    """Return the weights of the datasets with a sequence; raise NotFound if none has one."""
    found = {of: weight for of, weight in corpus.weights.items() if lake.published(names.packed(of)).rows}
    for empty in [name for name in corpus.weights if name not in found]:
        console.print(f"No document of {empty} is left to pack, so the blend leaves it out.")
    if not found:
        raise NotFound(
            f"No document of {', '.join(corpus.weights)} is left to serve. See what removed them: "
            f"factory sample {names.filtered(next(iter(corpus.weights)))}."
        )
    return found


def _fetch(
    settings: Settings, weights: Mapping[str, int], corpus: Corpus, steps: int, console: Console
) -> Fetched:
    """Define the blend, fetch its first steps, then a few of them again, also from a restarted server."""
    lake, tables = Lake(settings), {names.packed(dataset): weight for dataset, weight in weights.items()}
    sources = [
        Source(
            str(table),
            weight=weight,
            oversample=True,
            shuffle="row",
            columns=delivered_columns(lake, table),
        )
        for table, weight in tables.items()
    ]
    offsets = sorted(random.Random(corpus.seed).sample(range(steps), min(CHECKED_OFFSETS, steps)))
    digests: dict[int, str] = {}
    epochs: dict[int, int] = {}
    rows = tokens = 0
    with blender_process(settings) as address, BlenderClient(address) as blender:
        blend = blender.create(sources, seed=corpus.seed, pad=corpus.pad)
        console.print(f"[bold]Blender[/] at {address} serves blend {blend.id}")
        began = time.monotonic()
        for batch in blender.fetch(blend.id, offset=0, steps=steps):
            rows += len(batch)
            tokens += int(batch.n_tokens.sum())
            for source, epoch in zip(batch.source.tolist(), batch.epoch.tolist(), strict=True):
                epochs[source] = max(epochs.get(source, 0), epoch + 1)
            if batch.offset in offsets:
                digests[batch.offset] = digest(batch)
        seconds = time.monotonic() - began
        again = _digests(blender, blend.id, offsets)
    with blender_process(settings) as address, BlenderClient(address) as blender:
        restarted = _digests(blender, blend.id, offsets)
    if not again == restarted == digests:
        raise BlenderFailure(f"Steps {offsets} of blend {blend.id} differed when fetched again.")
    return Fetched(
        blend=blend.id,
        steps=steps,
        rows=rows,
        tokens=tokens,
        seconds=seconds,
        rows_per_second=rows / seconds,
        epochs={sources[number].table: count for number, count in sorted(epochs.items())},
        checked_offsets=offsets,
        same_again=again == digests,
        same_after_restart=restarted == digests,
    )


def _digests(blender: BlenderClient, blend: str, offsets: list[int]) -> dict[int, str]:
    return {
        offset: digest(batch) for offset in offsets for batch in blender.fetch(blend, offset=offset, steps=1)
    }


def _two_documents(
    settings: Settings, lake: Lake, datasets: Sequence[str], blend: str
) -> dict[str, DocumentTrace]:
    """Return a served document and, if a rule rejected any, a rejected one."""

    def rejected_by_a_rule(dataset: str) -> list[str]:
        ids: list[str] = lake.read(names.filtered(dataset), ["doc_id"], "kept = false")["doc_id"].to_pylist()
        return sorted(ids)

    opened = open_blends(settings).open(blend)
    served = next(segment.doc_id for row in opened.explain(0) for segment in row.segments)
    # The last dataset first: in the demo's corpus that is prose, whose documents are shorter.
    plain = [dataset for dataset in reversed(datasets) if dataset == names.base(dataset)]
    rejected = next(filter(None, map(rejected_by_a_rule, plain)), [])
    traces = trace_documents(lake, [served, *rejected[:1]], [opened])
    return {trace.outcome: trace for trace in traces if trace.outcome in ("served", "filtered")}


def _show(
    console: Console, summary: PipelineSummary, fetched: Fetched, followed: dict[str, DocumentTrace]
) -> None:
    console.print()
    show_summary(summary, console)
    table = Table("", "", title="Blend", title_justify="left", box=None, show_header=False)
    table.add_row("fetched", f"{fetched.steps:,} steps, {fetched.rows:,} rows, {fetched.tokens:,} tokens")
    table.add_row("speed", f"{fetched.rows_per_second:,.0f} rows a second through gRPC")
    table.add_row("epochs begun", ", ".join(f"{table} {n}" for table, n in fetched.epochs.items()))
    offsets = ", ".join(map(str, fetched.checked_offsets))
    table.add_row("same bytes again", f"steps {offsets}: fetched again, and from a restarted server")
    console.print(table)
    for outcome, trace in followed.items():
        title = f"A document that is {outcome}"
        console.print(frame(console, title, document_tree(trace)))


def _plain(
    summary: PipelineSummary,
    fetched: Fetched,
    report: RunReport,
    followed: dict[str, DocumentTrace],
    seconds: float,
) -> dict[str, Any]:
    return {
        **summary.plain(),
        "blend": asdict(fetched),
        "run": asdict(report),
        "traced": {outcome: as_plain(trace) for outcome, trace in followed.items()},
        "seconds": seconds,
    }
