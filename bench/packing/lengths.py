"""The sequences that many lengths need, and the speed of the kernel and of seqpacker.

There are two sets of lengths: a million lognormal ones, and the lengths of files of real repositories. A
length above the sequence length gives full sequences and a remainder, and the remainders are packed. The
yardstick is a lower bound of every plan: the tokens divided by the sequence length.
"""

from __future__ import annotations

import tempfile
from dataclasses import dataclass
from pathlib import Path
from statistics import median

import numpy as np
import pyarrow as pa
from rich.console import Console

from bench.dedup.corpus import FOLDS, Corpus
from bench.harness import Report, at_least, at_most, table
from bench.peers import SEQPACKER
from bench.timing import cpu_seconds
from factory._native import best_fit_decreasing, fewest_sequences

N_LENGTHS = 1_000_000
MEAN_LOG, SIGMA_LOG = 6.3, 1.2
BYTES_PER_TOKEN = 4  # of the repositories' files
SEQUENCE_LENGTHS = (2_048, 8_192, 16_384, 32_768)
CHUNKS = (1_000, 4_000)  # documents of a plan
MOST_ABOVE = 2  # sequences above the bound
LEAST_AGAINST_PEER = 2.0  # lengths a CPU second
RUNS = 3
CAVEATS = [
    f"The lengths `lognormal` are lognormal({MEAN_LOG}, {SIGMA_LOG}), drawn with seed 0; `repositories` are "
    f"the files of the releases that `bench dedup` reads, a token for {BYTES_PER_TOKEN} bytes. CPU seconds "
    f"are medians of {RUNS} runs; of seqpacker's strategies the fastest counts.",
]


@dataclass(frozen=True)
class Packed:
    """Sequences of one packing of the remainders, and the CPU seconds of the call."""

    n_sequences: int
    cpu_s: float


def lognormal() -> np.ndarray:
    """A million lengths, distributed like the lengths of documents."""
    drawn = np.random.default_rng(0).lognormal(MEAN_LOG, SIGMA_LOG, N_LENGTHS)
    return np.maximum(1, drawn).astype(np.int64)


def of_repositories(found: Corpus) -> np.ndarray:
    """The estimated tokens of every file of the releases."""
    n_bytes = found.read(range(FOLDS), ["n_bytes"])["n_bytes"].to_numpy()
    return np.maximum(1, n_bytes // BYTES_PER_TOKEN).astype(np.int64)


def add_lengths(report: Report, name: str, lengths: np.ndarray, console: Console) -> None:
    """Pack `lengths` at every sequence length; raises WrongAnswer, PeerFailed."""
    chunks = " | ".join(f"plans of {n:,}" for n in CHUNKS)
    shown = table(
        f"{name}, {len(lengths):,} lengths: sequences above the bound, million lengths a CPU second (M/s)",
        f"tokens | bound | one plan | {chunks} | best-fit | seqpacker | M/s: ours | best-fit | seqpacker",
    )
    for sequence_length in SEQUENCE_LENGTHS:
        console.print(f"packing {len(lengths):,} lengths ({name}) in sequences of {sequence_length:,}")
        full, rest = full_and_rest(lengths, sequence_length)
        bound = -(-int(lengths.sum()) // sequence_length) - int(full.sum())
        ours = _packed(name, rest, sequence_length, report)
        best_fit = _timed(rest, sequence_length, best_fit_decreasing)[1]
        in_chunks = [_in_chunks(rest, sequence_length, n) for n in CHUNKS]
        peer = _peer(rest[rest > 0], sequence_length, console)
        fastest = min(peer.values(), key=lambda it: it.cpu_s)
        shown.add_row(
            f"{sequence_length:,}",
            f"{bound:,}",
            f"{ours.n_sequences - bound:,}",
            *(f"{n - bound:,} ({bound / n:.2%})" for n in in_chunks),
            f"{best_fit.n_sequences - bound:,}",
            f"{min(it.n_sequences for it in peer.values()) - bound:,}",
            *(f"{len(rest) / it.cpu_s / 1e6:.1f}" for it in (ours, best_fit, fastest)),
        )
        at = f"packing.{name}.{sequence_length}"
        report.rows += [
            at_most(f"{at}.above_bound", ours.n_sequences - bound, "sequences", MOST_ABOVE),
            at_least(f"{at}.against_seqpacker", fastest.cpu_s / ours.cpu_s, "ratio", LEAST_AGAINST_PEER),
        ]
    report.tables.append(shown)


def full_and_rest(lengths: np.ndarray, sequence_length: int) -> tuple[np.ndarray, np.ndarray]:
    """The full sequences of each length above `sequence_length`, and the remainders to pack."""
    full = np.where(lengths > sequence_length, lengths // sequence_length, 0)
    return full, lengths - full * sequence_length


def _packed(name: str, rest: np.ndarray, sequence_length: int, report: Report) -> Packed:
    placed, packed = _timed(rest, sequence_length, fewest_sequences)
    used = np.bincount(placed[rest > 0], weights=rest[rest > 0])
    report.check(
        f"every length of {name} has a sequence of {sequence_length:,} tokens, and none holds more",
        bool((placed[rest > 0] >= 0).all() and used.max() <= sequence_length and used.min() > 0),
    )
    return packed


def _timed(rest: np.ndarray, sequence_length: int, kernel) -> tuple[np.ndarray, Packed]:  # type: ignore[no-untyped-def]
    given = pa.array(rest)
    seconds = median(cpu_seconds(lambda: kernel(given, sequence_length), RUNS))
    placed = kernel(given, sequence_length).cast(pa.int64()).fill_null(-1).to_numpy(zero_copy_only=False)
    return placed, Packed(int(placed.max()) + 1, seconds)


def _in_chunks(rest: np.ndarray, sequence_length: int, documents: int) -> int:
    """Sequences if every `documents` lengths are planned separately."""
    chunks = (rest[start : start + documents] for start in range(0, len(rest), documents))
    placed = (fewest_sequences(pa.array(chunk), sequence_length) for chunk in chunks)
    return sum(max((s for s in chunk.to_pylist() if s is not None), default=-1) + 1 for chunk in placed)


def _peer(rest: np.ndarray, sequence_length: int, console: Console) -> dict[str, Packed]:
    with tempfile.TemporaryDirectory(prefix="bench-packing-") as folder:
        lengths = Path(folder) / "lengths.npy"
        np.save(lengths, rest)
        found = SEQPACKER.answer("bench.packing.peer", lengths, sequence_length, RUNS, console=console)
    return {name: Packed(it["sequences"], it["cpu_s"]) for name, it in found.items()}
