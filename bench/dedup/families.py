"""Large families of near copies: what comparing them costs, and which members stay.

A member is a text of 400 words, of which it has some in versions of its own, so the exact similarity of two
members follows from their versions:

    clique    every member replaces 12 words: any two are similar (.89), at .8 and not at .9
    spread    every member replaces up to 40 words: from .67 to 1
    below     every member replaces 24 words: any two lie just below the threshold (.79)
    star      one text, and members that replace 40 of its words: similar to it (.82), not to each other (.67)
    chain     every member replaces 40 words of the one before: similar to its two neighbours alone
    drift     every member replaces 8 words of the one before: similar to the five on either side
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from types import SimpleNamespace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from rich.console import Console

from bench.harness import Report, Row, at_most, table
from factory import _native
from factory.dedup import large_buckets
from factory.dedup.bags import MAX_DISTINCT, TEXT_BYTES
from factory.dedup.config import DedupConfig
from factory.dedup.edges import PAIR_BUCKET
from spark_udfs.dedup import edges as udf

SHAPES = {"clique": 12, "spread": 40, "below": 24, "star": 40, "chain": 40, "drift": 8}  # words replaced
SIZES = (1_000, 10_000, 100_000)
WORDS = 400
CONFIG = DedupConfig(kind="prose")
SAMPLED = 1_000  # kept members of which similar kept ones are searched

CAVEATS = [
    "Families are made of words that weigh the same, so that each shape has its similarities at any size. A "
    "family is compared in one process by the functions that Spark's workers run; the time leaves out Spark "
    "and the reading of bags.",
    f"Similar kept members are counted for a sample of {SAMPLED:,} kept ones.",
]
DATA = f"families of {SIZES[0]:,} to {SIZES[-1]:,} members of {WORDS} words"

Edges = tuple[np.ndarray, np.ndarray, np.ndarray]  # left, right and similarity, by number


@dataclass(frozen=True)
class Family:
    """Members, best first: the version of each of their words, signatures, bags and buckets."""

    versions: np.ndarray
    signatures: pa.Array
    bags: pa.Array
    buckets: np.ndarray  # a row per member

    def __len__(self) -> int:
        return len(self.versions)


def measure(progress: Console) -> Report:
    """Compare families of every shape and size."""
    report = Report(CAVEATS, DATA)
    rows = []
    for shape in SHAPES:
        for size in SIZES:
            progress.print(f"{shape} of {size:,}")
            members = family(shape, size)
            began = time.process_time()
            edges, n_omitted = compare(members)
            seconds = time.process_time() - began
            keepers, n_unsupported = independent_set(size, edges)
            similar = similar_kept(members, keepers)
            counts = size, len(edges[0]), len(keepers), n_unsupported, similar, n_omitted
            rows.append(
                [
                    shape,
                    *(f"{number:,}" for number in counts),
                    f"{seconds:.2f}",
                    f"{seconds / size * 1e6:.0f}",
                ]
            )
            name = f"keep.{shape}.{size}"
            report.rows += [
                Row(f"{name}.cpu", seconds, "CPU s"),
                at_most(f"{name}.unsupported", n_unsupported, "documents", 0),
                Row(f"{name}.similar_kept", similar, "documents"),
                Row(f"{name}.uncompared", n_omitted, "documents"),
            ]
    columns = (
        "family | members | edges | kept | unsupported | similar kept | not compared | CPU s | us a member"
    )
    report.tables.append(table("Families", columns, rows))
    return report


def family(shape: str, size: int) -> Family:
    """The members of a family, in a random order of priority."""
    generator, n_replaced = np.random.default_rng(7), SHAPES[shape]
    versions = np.zeros((size, WORDS), np.int64)
    for number in range(size):
        if shape in ("chain", "drift") and number:
            versions[number] = versions[number - 1]
        n_words = generator.integers(n_replaced + 1) if shape == "spread" else n_replaced
        if shape != "star" or number:
            versions[number, generator.choice(WORDS, n_words, replace=False)] = number + 1
    versions = versions[generator.permutation(size)]
    texts = pa.array(
        (" ".join(f"w{word}v{version}" for word, version in enumerate(row)) for row in versions.tolist()),
        pa.large_string(),
    )
    bags = _native.BagMaker(CONFIG.lexer, MAX_DISTINCT, TEXT_BYTES).make(texts)["bag"]
    signatures = _native.sign_packed(
        bags, _equal(), CONFIG.scheme, CONFIG.values, CONFIG.value_bits, CONFIG.seed
    )["signature"]
    values = np.frombuffer(b"".join(signatures.to_pylist()), np.uint8).reshape(size, -1)
    banding = CONFIG.banding
    bands = np.ascontiguousarray(values[:, : banding.rows * banding.bands]).view(f"V{banding.rows}")
    buckets = np.empty((size, banding.bands), np.int64)
    for band in range(banding.bands):
        buckets[:, band] = np.unique(bands[:, band], return_inverse=True)[1] * banding.bands + band
    return Family(versions, signatures, bags, buckets)


def compare(members: Family) -> tuple[Edges, int]:
    """The edges of a family, and the members that were not compared with all others."""
    sizes = np.bincount(members.buckets.ravel())[members.buckets]
    pairs, large = (sizes > 1) & (sizes <= PAIR_BUCKET), sizes > PAIR_BUCKET
    edges = [_of_pairs(members, pairs)]
    waiting, omissions, n_left_out = np.flatnonzero(large.any(axis=1)), np.zeros(len(members), np.int64), 0
    lists = [row[is_large] for row, is_large in zip(members.buckets, large, strict=True)]
    for leading in large_buckets.LEADING:
        if not len(waiting):
            break
        rows = pa.Table.from_batches(_large(members, waiting, omissions, lists, leading))
        edges.append(_by_number(rows.filter(pc.is_valid(rows["right"]))))
        others = rows.filter(pc.is_null(rows["right"]))
        left_out = np.array(others["uncompared"].to_pylist(), np.int64)
        names, is_open = (
            np.array(others["left"].to_pylist(), np.int64),
            np.array(others["open"].to_pylist()) != 0,
        )
        omissions[names] = left_out
        n_left_out += int(np.count_nonzero(~is_open))
        waiting = np.sort(names[is_open])
    lesser, greater, similarity = (np.concatenate(column) for column in zip(*edges, strict=True))
    _, first = np.unique(lesser * len(members) + greater, return_index=True)
    return (lesser[first], greater[first], similarity[first]), n_left_out + len(waiting)


def _large(
    members: Family, waiting: np.ndarray, omissions: np.ndarray, lists: list[np.ndarray], leading: int
) -> Iterator[pa.RecordBatch]:
    """The rows of one round over a cell of the members `waiting`, part by part."""
    size = leading * large_buckets.MEMBERS_PER_PART
    first, others = waiting[:leading], waiting[leading:]
    for part in range(max(1, -(-len(others) // size))):
        numbers = np.concatenate([first, others[part * size : (part + 1) * size]])
        leads = np.arange(len(numbers)) < leading
        columns = {
            "cell": pa.array(np.zeros(len(numbers), np.int64)),
            "part": pa.array(np.full(len(numbers), part)),
            "leads": pa.array(leads),
            "shown": pa.array(~leads | (part == 0)),
            "open": pa.array(np.full(len(numbers), -1)),
            "uncompared": pa.array(omissions[numbers]),
            "buckets": pa.array([lists[number] for number in numbers], pa.list_(pa.int64())),
            "doc_id": pa.array(map(str, numbers.tolist()), pa.string()),
            "signature": members.signatures.take(pa.array(numbers)),
            "n_distinct": pa.array(np.full(len(numbers), WORDS)),
        }
        yield from udf.large_bucket_edges(
            [pa.RecordBatch.from_pydict(columns)],
            bags=lambda rows: members.bags.take(pa.array(map(int, rows["doc_id"].to_pylist()))),
            idf=SimpleNamespace(value=_equal()),
            value_bits=CONFIG.value_bits,
            limits=[
                (CONFIG.size.least_estimate(threshold), threshold, threshold in CONFIG.deciding)
                for threshold in CONFIG.thresholds
            ],
            bounds=large_buckets.BOUNDS,
        )


def _of_pairs(members: Family, is_small: np.ndarray) -> Edges:
    """The edges of the pairs of small buckets, those where `is_small`."""
    numbers, bands = np.nonzero(is_small)
    order = np.argsort(members.buckets[numbers, bands], kind="stable")
    buckets = members.buckets[numbers, bands][order]
    others: dict[int, set[int]] = {}
    for bucket in np.split(numbers[order], np.flatnonzero(np.diff(buckets)) + 1):
        for place, number in enumerate(bucket.tolist()):
            others.setdefault(number, set()).update(bucket[place + 1 :].tolist())
    if not others:
        return np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0)
    ends = sorted({*others, *(other for greater in others.values() for other in greater)})
    batch = pa.RecordBatch.from_pydict(
        {
            "document": pa.array(ends, pa.int64()),
            "others": pa.array(
                [np.array(sorted(others.get(end, ())), "<i8").tobytes() for end in ends], pa.binary()
            ),
            "doc_id": pa.array(map(str, ends), pa.string()),
            "signature": members.signatures.take(pa.array(ends)),
        }
    )
    least = CONFIG.size.least_estimate(CONFIG.threshold)
    candidates = _native.CandidatePairs(batch, CONFIG.value_bits, least)
    bags = members.bags.take(pa.array(ends).take(candidates.rows))
    return _by_number(pa.Table.from_batches([candidates.verify(bags, _equal(), CONFIG.threshold)]))


def _by_number(edges: pa.Table) -> Edges:
    ends = np.array([edges[name].to_pylist() for name in ("left", "right")], np.int64).reshape(2, -1)
    return ends.min(axis=0), ends.max(axis=0), np.array(edges["similarity"].to_pylist(), np.float64)


def independent_set(n: int, edges: Edges) -> tuple[np.ndarray, int]:
    """The members that the independent set keeps, and the number of removed ones without a kept one."""
    strong = edges[2] >= CONFIG.threshold
    names = np.char.zfill(np.arange(n).astype(str), 7)
    lesser, greater = (names[column[strong]] for column in edges[:2])
    batch = pa.RecordBatch.from_pydict(
        {
            "doc_id": pa.array(np.concatenate([names, lesser]).tolist(), pa.string()),
            "other": pa.array([*([None] * n), *greater.tolist()], pa.string()),
            "similarity": pa.array([*([None] * n), *edges[2][strong].tolist()], pa.float64()),
        }
    )
    rows = _native.decide(batch, "independent_set")
    keepers = rows.filter(rows["kept"])["doc_id"].to_pylist()
    n_unsupported = pc.sum(pc.and_(pc.invert(rows["kept"]), pc.is_null(rows["similarity"]))).as_py()
    return np.array(keepers, np.int64), int(n_unsupported or 0)


def similar_kept(members: Family, keepers: np.ndarray) -> int:
    """Sampled kept members that are similar to another kept one, by the versions of their words."""
    sample = np.random.default_rng(8).permutation(keepers)[:SAMPLED]
    by_version = members.versions[keepers]
    n_similar = 0
    for number in sample:
        n_shared = np.count_nonzero(by_version == members.versions[number], axis=1)
        similar = n_shared / (2 * WORDS - n_shared) >= CONFIG.threshold
        n_similar += int(np.count_nonzero(similar) > 1)
    return n_similar


def _equal() -> pa.UInt8Array:
    """An idf table in which all words weigh the same."""
    return _native.IdfBuilder().finish(1)
