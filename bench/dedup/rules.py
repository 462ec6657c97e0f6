"""The outcome of each keep rule: documents kept, similar pairs kept, removed documents without a kept match.

The documents are real files and synthetic copies: near copies, chains in which each resembles the one before,
and stars whose leaves resemble only their centre. Similar means an exact J_W of .8 or more.
"""

from __future__ import annotations

import random
import re
from collections import defaultdict
from dataclasses import dataclass

import networkx as nx
import numpy as np
import pyarrow as pa
from rich.console import Console
from rich.table import Table

from bench.dedup.graphs import Edge, groups, most, stars
from bench.dedup.minhash.corpus import corpus
from bench.harness import Report, Row, at_most, table
from factory import _native
from factory.dedup.bags import MAX_DISTINCT, TEXT_BYTES
from factory.dedup.banding import Banding
from factory.dedup.config import DedupConfig
from factory.dedup.decisions import Keep

FILES = 1_600
CONFIG = DedupConfig(kind="code", sweep=())
OURS = "independent set, all similar pairs"
FINE = Banding(4, 64)  # misses one pair in 10^14 at .8
SMALL = 40  # documents of the largest component whose optimum is searched
WORD = re.compile(r"[^\W\d]\w*")

CAVEATS = [
    "The copies of files are synthetic, so shares of kept documents say nothing about a corpus; the other "
    "columns compare the rules.",
    f"All pairs are those of a banding of {FINE.rows} x {FINE.bands}, compared exactly. A group "
    f"decides on the pairs that its banding of {CONFIG.banding.rows} x {CONFIG.banding.bands} finds. "
    "Many copies lie at the threshold by design, where a banding misses most.",
]
DATA = f"{FILES:,} files of this Python installation and their copies"


@dataclass(frozen=True)
class Outcome:
    """The documents a rule keeps, judged by the exact similarities of all pairs."""

    rule: str
    kept: set[int]
    alike: int
    """Pairs of similar documents that are both kept."""
    unsupported: int
    """Removed documents that resemble no kept one."""
    lost: int
    """Groups of similar documents without a kept one."""


def measure(progress: Console) -> Report:
    """Find all similar pairs, apply every rule, and judge each."""
    report = Report(CAVEATS, DATA)
    texts, idf = documents()
    names = [f"{number:06}" for number in range(len(texts))]
    signatures = _native.sign_packed(
        _bags(texts), idf, CONFIG.scheme, CONFIG.values, CONFIG.value_bits, CONFIG.seed
    )["signature"]
    progress.print(f"exact similarities of {len(texts):,} documents")
    fine = alike_pairs(names, texts, idf, signatures, FINE)
    banded = alike_pairs(names, texts, idf, signatures, CONFIG.banding)
    truth = set(fine)
    hubs = dict.fromkeys(stars(_buckets(signatures, CONFIG.banding)), CONFIG.threshold)
    n = len(texts)
    rules: list[tuple[Keep, str, dict[Edge, float]]] = [
        ("one_per_component", "stars of buckets", hubs),
        ("one_per_component", "all similar pairs", fine),
        ("cover", "stars of buckets", hubs),
        ("cover", "all similar pairs", fine),
        ("independent_set", "all similar pairs", fine),
        ("independent_set", "pairs that banding finds", banded),
    ]
    found = [
        judged(f"{keep.replace('_', ' ')}, {kind}", decided(names, edges, keep), n, truth)
        for keep, kind, edges in rules
    ]
    report.check(
        f"of {n:,} documents with {len(truth):,} similar pairs in {len(groups(truth)):,} groups, ours "
        f"decides on {len(banded):,} pairs, all of them similar",
        set(banded) <= truth and len(banded) > 0,
    )
    report.tables.append(_table(found))
    best, small = _optimum(truth, next(it.kept for it in found if it.rule == OURS))
    report.tables.append(best)
    report.rows += [*_rows(found), *small]
    return report


def documents() -> tuple[pa.Array, pa.UInt8Array]:
    """Real files and their copies in random order, which is their priority; and the files' idf."""
    bags = corpus()
    chosen = random.Random(4)
    texts: list[str] = []
    for number, text in enumerate(bags.texts.to_pylist()[:FILES]):
        texts.append(text)
        match number % 8:
            case 0:  # near copies of one another
                texts += [changed(text, 0.01, chosen) for _ in range(chosen.choice([1, 3, 12]))]
            case 1:  # a chain
                for _ in range(chosen.choice([3, 8, 20])):
                    text = changed(text, 0.06, chosen)
                    texts.append(text)
            case 2:  # a star
                texts += [changed(text, 0.11, chosen) for _ in range(chosen.choice([3, 8, 20]))]
    chosen.shuffle(texts)
    return pa.array(texts, pa.large_string()), bags.idf


def changed(text: str, share: float, chosen: random.Random) -> str:
    """`text` with a share of its names renamed, each name to one new name everywhere."""
    names = {
        name: f"{name}_{chosen.randrange(10**6)}"
        for name in sorted(set(WORD.findall(text)))
        if chosen.random() < share
    }
    return WORD.sub(lambda name: names.get(name[0], name[0]), text)


def alike_pairs(
    names: list[str], texts: pa.Array, idf: pa.UInt8Array, signatures: pa.Array, banding: Banding
) -> dict[Edge, float]:
    """Every pair that shares a bucket and is similar by exact comparison, with its similarity."""
    pairs = sorted(
        {
            (left, right)
            for members in _buckets(signatures, banding)
            for right in members
            for left in members
            if left < right
        }
    )
    others: dict[int, list[int]] = {document: [] for document in range(len(names))}
    for left, right in pairs:
        others[left].append(right)
    batch = pa.RecordBatch.from_pydict(
        {
            "document": pa.array([*others], pa.int64()),
            "others": pa.array([np.array(other, "<i8").tobytes() for other in others.values()], pa.binary()),
            "doc_id": pa.array(names, pa.string()),
            "signature": signatures,
        }
    )
    alike = _native.CandidatePairs(batch, CONFIG.value_bits, CONFIG.size.least_estimate(CONFIG.threshold))
    verified = alike.verify(_bags(texts).take(alike.rows), idf, CONFIG.threshold)
    ends = zip(verified["left"].to_pylist(), verified["right"].to_pylist(), strict=True)
    edges = [(int(one), int(other)) for one, other in ends]
    return dict(zip(edges, verified["similarity"].to_pylist(), strict=True))


def _buckets(signatures: pa.Array, banding: Banding) -> list[list[int]]:
    """The documents of every bucket with more than one."""
    found: dict[tuple[int, bytes], list[int]] = defaultdict(list)
    for document, signature in enumerate(signatures.to_pylist()):
        for band in range(banding.bands):
            found[band, signature[band * banding.rows : (band + 1) * banding.rows]].append(document)
    return [members for members in found.values() if len(members) > 1]


def decided(names: list[str], edges: dict[Edge, float], keep: Keep) -> set[int]:
    """The documents that a keep rule of the dedup stage keeps, given in order of priority."""
    nothing = [None] * len(names)
    batch = pa.RecordBatch.from_pydict(
        {
            "doc_id": pa.array([*names, *(names[left] for left, _ in edges)]),
            "other": pa.array([*nothing, *(names[right] for _, right in edges)], pa.string()),
            "similarity": pa.array([*nothing, *edges.values()], pa.float64()),
        }
    )
    return {int(row["doc_id"]) for row in _native.decide(batch, keep).to_pylist() if row["kept"]}


def judged(rule: str, kept: set[int], n: int, truth: set[Edge]) -> Outcome:
    """The figures of a rule that kept `kept` of n documents."""
    near = nx.Graph(list(truth)).adj
    return Outcome(
        rule,
        kept,
        alike=sum(left in kept and right in kept for left, right in truth),
        unsupported=sum(kept.isdisjoint(near.get(it, ())) for it in range(n) if it not in kept),
        lost=sum(not kept & set(members) for members in groups(truth)),
    )


def _optimum(truth: set[Edge], kept: set[int]) -> tuple[Table, list[Row]]:
    """Documents kept by our rule and by an optimal one, in groups of up to SMALL documents."""
    small = [members for members in groups(truth) if len(members) <= SMALL]
    graph = nx.Graph(list(truth))
    at_best = sum(most(graph.subgraph(members)) for members in small)
    here = sum(len(kept & set(members)) for members in small)
    counts = [f"{it:,}" for it in (len(small), sum(map(len, small)), here, at_best)]
    columns = "groups | documents | ours keeps | at best | share"
    made = table(f"Groups of up to {SMALL} documents", columns, [[*counts, f"{here / at_best:.3f}"]])
    return made, [Row("keep.optimum_share", here / at_best, "share of the largest independent set")]


def _table(found: list[Outcome]) -> Table:
    columns = "rule | kept | similar pairs kept | unsupported | groups lost"
    figures = ((it.rule, len(it.kept), it.alike, it.unsupported, it.lost) for it in found)
    return table("Rules", columns, ([rule, *(f"{it:,}" for it in rest)] for rule, *rest in figures))


def _rows(found: list[Outcome]) -> list[Row]:
    rows = []
    for it in found:
        name = f"keep.{it.rule.replace(',', '').replace(' ', '_')}"
        unsupported = f"{name}.unsupported", it.unsupported, "documents"
        lost = f"{name}.lost", it.lost, "groups"
        rows += [Row(f"{name}.kept", len(it.kept), "documents"), Row(f"{name}.alike", it.alike, "pairs")]
        aimed = it.rule.startswith("independent set")
        rows += [at_most(*row, 0) if aimed else Row(*row) for row in (unsupported, lost)]
    return rows


def _bags(texts: pa.Array) -> pa.Array:
    return _native.BagMaker(CONFIG.lexer, MAX_DISTINCT, TEXT_BYTES).make(texts)["bag"]
