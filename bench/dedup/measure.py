"""The whole deduplication in Spark against datatrove's and rensa's: cost, growth, and lost documents.

The corpus is several releases each of 100 packages. Ours runs as its assets do in production, from raw table
to deduplicated documents, on a tenth, a third and all of it; the peers run on the same tenth, because
datatrove would need an hour for the whole. On that tenth every pair of texts is compared exactly
(`bench/dedup/exact.py`), by words and weights made without our code (`bench/dedup/truth.py`). Each tool is
judged by the documents it keeps, by the weighted Jaccard and by its own measure.

Its parts run by themselves, as `make bench NAME=dedup.<part>`: `minhash` measures signatures and their error,
`idf` the weights of large vocabularies, `scripts` the similarity of texts in twelve scripts, `rules` the
outcome of each keep rule, `families` the cost of large families of near copies, and `components` connected
components of ten million edges.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from rich.console import Console
from rich.table import Table

from bench.dedup import families, idf, rules
from bench.dedup.accuracy import Judged, check_decisions, exact_pairs, kept_ids, numbered, of_texts
from bench.dedup.bandings import add_bandings
from bench.dedup.chain import Chain, Part
from bench.dedup.components import measure as components
from bench.dedup.corpus import FOLDS, corpus
from bench.dedup.costs import MB, add_costs, megabytes
from bench.dedup.exact import Alike
from bench.dedup.judge import FAR, Verdict, lost_families, shown, verdict
from bench.dedup.minhash import measure as minhash
from bench.dedup.peers import PEERS, Kept, deduplicated, lay_out, own_measure
from bench.dedup.scripts import measure as scripts
from bench.dedup.truth import weighted_words
from bench.harness import Report, Row, at_least, at_most, cells, table
from bench.lakes import own_lake
from factory.dedup.config import DedupConfig
from factory.spark.session import build_session

PARTS = {
    "minhash": minhash.measure,
    "idf": idf.measure,
    "scripts": scripts.measure,
    "rules": rules.measure,
    "families": families.measure,
    "components": components.measure,
}
CONFIG = DedupConfig(kind="code")
SHARES = {"tenth": FOLDS // 10, "third": FOLDS // 3, "whole": FOLDS}  # in folds, from the first on
COMPARED = "tenth"  # the part that every tool runs on
WARM = "warm"
WARM_FOLDS = range(FOLDS - 3, FOLDS)
WORST = 5  # families shown
MEASURES = {"datatrove": "its 5-grams", "rensa": "its 5-grams"}
WEIGHTED = "J_W"
CAVEATS = [
    "Ours: the CPU of driver, JVM and Python workers for every table of the dedup group and the deduplicated "
    "documents, with checks, fingerprints and publishing. The JVM starts and compiles on three other folds, "
    "which are deduplicated first and not timed.",
    "datatrove: four stages with its defaults, two workers, Parquet in and out; rensa: one process, shingles "
    "of five words made in Python. Both first run on a few documents, which are not timed. Speeds are "
    "compared on the same tenth of the corpus.",
    "A tool is judged by texts, where exact copies are one text; recall is the share of similar pairs of "
    "texts of which at most one stays. Unsupported: removed texts that resemble no kept one.",
]


def measure(progress: Console) -> Report:
    """Deduplicate, check, judge, and compare. Raises WrongAnswer."""
    found = corpus(progress)
    judged = numbered(
        found.read(range(SHARES[COMPARED]), ["doc_id", "content_hash", "repository", "path", "text"])
    )
    sizes = {name: found.read(range(share), ["n_bytes"])["n_bytes"] for name, share in SHARES.items()}
    report = Report(
        CAVEATS,
        f"{len(sizes['whole']):,} files, {megabytes(sizes['whole']):,.0f} MB; compared: "
        f"{judged.documents.num_rows:,} files of {judged.texts:,} texts, "
        f"{megabytes(sizes[COMPARED]):,.0f} MB",
    )
    with tempfile.TemporaryDirectory(prefix="bench-dedup-") as scratch:
        own = own_lake(Path(scratch) / "lake", spark_master="local[2]")
        parts = [Part(WARM, found.files(WARM_FOLDS))]
        parts += [Part(name, found.files(range(share))) for name, share in SHARES.items()]
        chain = Chain(parts, CONFIG, own)
        chain.run(WARM, progress)
        spans = {name: chain.run(name, progress) for name in SHARES}
        columns = ["doc_id", "kept", "reason", "duplicate_of", "similarity", "kept_document"]
        decided = chain.table(COMPARED, "decisions", columns)
        signed = chain.table(COMPARED, "signatures", ["doc_id", "signature"])
        build_session(own).stop()  # the session of the runs, before its scratch is removed
        progress.print("exact similarities of all pairs")
        exact = exact_pairs(weighted_words(judged.documents["text"].to_pylist()), judged.first)
        check_decisions(report, judged, decided, exact, CONFIG.threshold)
        _judge(report, judged, decided, exact)
        add_bandings(report, of_texts(judged, signed), exact, CONFIG)
        report.rows += [
            Row("dedup.bags.stored", round(chain.stored("whole", "bags") / MB, 1), "MB"),
            Row("dedup.bags.documents", round(chain.stored("whole") / MB, 1), "MB"),
        ]
        peers = _peers(report, judged, exact, Path(scratch), progress)
    add_costs(report, spans, sizes, peers, COMPARED)
    return report


def _judge(report: Report, judged: Judged, decided: pa.Table, exact: Alike) -> None:
    """Add the verdict on ours and on the keep rules over exact pairs."""
    n, threshold = judged.texts, CONFIG.threshold
    truth = exact.at(threshold)
    edges = dict(zip(sorted(truth.pairs()), truth.similarity.tolist(), strict=True))
    empty = set(decided.filter(pc.equal(decided["reason"], "no_tokens"))["doc_id"].to_pylist())
    kept, numbers = kept_ids(decided), [f"{it:08}" for it in range(n)]
    found = [
        verdict(name, WEIGHTED, texts, n, exact, threshold)
        for name, texts in {
            "ours": _texts(judged, kept),
            "independent set": rules.decided(numbers, edges, "independent_set"),
            "one per component": rules.decided(numbers, edges, "one_per_component"),
        }.items()
    ]
    report.tables.append(_verdicts("By exact weighted Jaccard of all pairs", found))
    ours = found[0]
    report.rows += [
        at_most("dedup.accuracy.unsupported", ours.unsupported, "texts", 0),
        at_most("dedup.accuracy.alike_kept", ours.alike_kept, "pairs", 10),
        at_least("dedup.accuracy.recall", round(ours.recall, 6), "share of similar pairs", 0.995),
        at_most("dedup.accuracy.families_lost", ours.lost, "groups", 0),
        Row("dedup.accuracy.pairs", ours.pairs, "pairs"),
        Row("dedup.accuracy.removed", ours.removed, "texts"),
        Row("dedup.accuracy.without_tokens", len(empty), "documents"),
    ]


def _texts(judged: Judged, kept: set[str]) -> set[int]:
    """The texts with a kept document."""
    stays = np.array([doc_id in kept for doc_id in judged.documents["doc_id"].to_pylist()])
    return set(judged.text_of[stays].tolist())


def _peers(report: Report, judged: Judged, exact: Alike, scratch: Path, progress: Console) -> dict[str, Kept]:
    """Run the peers, and add the verdicts on them."""
    lay_out(judged.documents.select(["doc_id", "text"]), scratch)
    done: dict[str, Kept] = {}
    found: list[Verdict] = []
    worst = table("The largest families that a peer loses, by its own measure", "tool | texts | families")
    for name in PEERS:
        progress.print(f"{name} on {judged.documents.num_rows:,} documents")
        done[name] = deduplicated(name, scratch, progress)
        progress.print(f"{name}'s own measure of all pairs")
        own = own_measure(name, scratch, judged.number_of, FAR, progress)
        kept = _texts(judged, done[name].documents)
        for measure, similar in ((WEIGHTED, exact), (MEASURES[name], own)):
            found.append(verdict(name, measure, kept, judged.texts, similar, CONFIG.threshold))
            report.rows += _verdict_rows(found[-1], measure != WEIGHTED)
        for family in lost_families(kept, own, CONFIG.threshold)[:WORST]:
            worst.add_row(name, str(len(family)), shown(family, judged.paths))
    report.tables += [_verdicts("Peers", found), worst]
    return done


def _verdict_rows(it: Verdict, own: bool) -> list[Row]:
    name = f"dedup.{it.tool}.{'own_measure' if own else 'weighted'}"
    return [
        Row(f"{name}.unsupported", it.unsupported, "texts"),
        Row(f"{name}.far", it.far, "texts"),
        Row(f"{name}.precision", round(it.precision, 4), "share of removed texts"),
        Row(f"{name}.recall", round(it.recall, 4), "share of similar pairs"),
        Row(f"{name}.families_lost", it.lost, "groups"),
    ]


def _verdicts(title: str, found: list[Verdict]) -> Table:
    columns = f"tool | measure | kept | removed | unsupported | none\nat {FAR:g} | precision"
    lines = (
        f"{it.tool} | {it.measure} | {it.kept:,} | {it.removed:,} | {it.unsupported:,} | {it.far:,}"
        f" | {it.precision:.3f} | {it.pairs:,} | {it.alike_kept:,} | {it.recall:.4f} | {it.lost:,}"
        for it in found
    )
    columns += " | similar\npairs | both\nkept | recall | families\nlost"
    return table(title, columns, map(cells, lines))
