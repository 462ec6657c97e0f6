"""Weights are exact for vocabularies of any size: similarities equal float64 ones from the definition."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from bench.dedup.idf import N_DOCUMENTS, THRESHOLD, Pairs, around, packed_bag, verified
from factory.dedup import idf as idf_module
from factory.dedup.idf import name_of
from factory.errors import MachineError
from tests.dedup.bagged import idf_table

SLOT_BITS, SLOTS, PER_SLOT = 20, 1_500, 57
PAIRS = 1_000


def crowded_vocabulary() -> tuple[np.ndarray, np.ndarray]:
    """(tokens, document frequencies): 57 tokens have the same 20 bits, frequent and rare ones of a corpus."""
    generator = np.random.default_rng(5)
    low = generator.choice(1 << SLOT_BITS, SLOTS, replace=False).repeat(PER_SLOT).astype(np.uint64)
    high = generator.permutation(len(low)).astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    frequencies = np.minimum(N_DOCUMENTS, generator.zipf(1.4, len(low)))
    return (high << np.uint64(SLOT_BITS)) | low, frequencies


@pytest.mark.invariant(
    "Similarities use float64 weights from exact document frequencies, for vocabularies of any size."
)
def test_no_pair_below_the_threshold_is_called_similar() -> None:
    tokens, frequencies = crowded_vocabulary()
    assert np.unique(tokens & np.uint64((1 << SLOT_BITS) - 1), return_counts=True)[1].min() == PER_SLOT
    counted = dict(zip(tokens.astype(np.int64).tolist(), frequencies.tolist(), strict=True))
    idf = idf_table(counted, N_DOCUMENTS)
    pairs = around(tokens, frequencies, PAIRS)
    exact = dict(enumerate(pairs.similarities.tolist()))
    assert all(THRESHOLD - 0.05 < exact[pair] < THRESHOLD for pair in range(PAIRS))
    assert [*verified(pairs, idf, THRESHOLD)] == [*range(PAIRS, 2 * PAIRS)]
    assert verified(pairs, idf, 0.5) == pytest.approx(exact, abs=1e-12)


def test_an_uncounted_token_weighs_as_one_of_a_single_document() -> None:
    idf = idf_table({1: 1, 2: 500}, 1000)
    bags = [packed_bag(np.array(tokens, np.uint64), np.ones(2)) for tokens in ((1, 2), (2, 3))]
    rare, frequent = np.log1p(1000), np.log1p(2)
    found = verified(Pairs(bags[:1], bags[1:], np.empty(1)), idf, 0.01)
    assert found[0] == pytest.approx(frequent / (frequent + 2 * rare))


def test_a_table_takes_eleven_bytes_per_token_of_two_documents() -> None:
    tokens = np.random.default_rng(1).integers(-(2**63), 2**63 - 1, 400_000).tolist()
    once, twice = dict.fromkeys(tokens[:200_000], 1), dict.fromkeys(tokens[200_000:], 2)
    assert idf_table(once | twice, 10) == idf_table(twice, 10)
    assert len(idf_table(once | twice, 10)) <= 11 * len(twice) + (1 << 19) + 256


@pytest.mark.parametrize(
    "frequencies,n_documents,message",
    [
        ({5: 0}, 9, "Token 5 is in 0 documents"),
        ({5: 1 << 32}, 9, "split the group"),
        ({-5: 10}, 9, "Token -5 is in 10 of 9 documents. Count the vocabulary again."),
    ],
)
def test_impossible_counts_are_refused(frequencies: dict[int, int], n_documents: int, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        idf_table(frequencies, n_documents)


def test_a_damaged_table_is_refused() -> None:
    whole = idf_table(dict.fromkeys(range(50), 2), 9)
    bags = [packed_bag(np.arange(3, dtype=np.uint64), np.ones(3))]
    short, nothing = whole.slice(0, len(whole) - 64), pa.array([], pa.uint8())
    for damaged in (short, whole.slice(64), whole.slice(8), nothing, whole.cast("int64")):
        with pytest.raises(ValueError, match="The idf table is damaged"):
            verified(Pairs(bags, bags, np.empty(1)), damaged, 0.1)


def test_a_file_with_a_flipped_bit_is_not_mapped(tmp_path: Path) -> None:
    table = idf_table(dict.fromkeys(range(50), 2), 9)
    file = tmp_path / name_of(table)
    file.write_bytes(table.to_numpy().tobytes())
    assert idf_module.mapped(str(file)) == table
    idf_module.mapped.cache_clear()
    flipped = bytearray(file.read_bytes())
    flipped[100] ^= 4
    file.write_bytes(flipped)
    with pytest.raises(MachineError, match=f"{file} differs from what the driver wrote"):
        idf_module.mapped(str(file))
