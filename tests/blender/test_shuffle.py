"""Permutations: bijections with inverses, keyed by a hash, the same for ever."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from blender.shuffle import derive_key, permutation

SIZES = [1, 2, 3, 4, 7, 255, 256, 257, 300, 1023, 1024, 1025, 5000]


def order(
    n: int, *, kind: str = "row", seed: int = 0, epoch: int = 0, source: str = "packed.code"
) -> list[int]:
    """The whole order of an epoch."""
    return permutation(kind, n, seed=seed, epoch=epoch, source=source).forward(np.arange(n)).tolist()


@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("kind", ["none", "row"])
def test_every_item_is_read_once(n: int, kind: str) -> None:
    assert sorted(order(n, kind=kind)) == list(range(n))


@settings(deadline=None)
@given(st.integers(1, 1 << 45), st.integers(0, 2**64 - 1), st.integers(0, 5), st.data())
def test_an_item_is_found_again_at_its_position(n: int, seed: int, epoch: int, data: st.DataObject) -> None:
    positions = np.array(data.draw(st.lists(st.integers(0, n - 1), min_size=1, max_size=30)))
    shuffled = permutation("row", n, seed=seed, epoch=epoch, source="s")
    items = shuffled.forward(positions)
    assert ((items >= 0) & (items < n)).all()
    assert (shuffled.inverse(items) == positions).all()


def test_positions_beyond_32_bits_stay_distinct() -> None:
    n = (1 << 33) + 12345
    positions = np.concatenate([np.arange(100_000), np.arange(n - 100_000, n)])
    items = permutation("row", n, seed=3, epoch=0, source="s").forward(positions)
    assert len(np.unique(items)) == len(positions)
    assert items.max() > 1 << 32
    assert items.max() < n


def test_no_order_is_the_identity() -> None:
    assert order(300, kind="none") == list(range(300))


@pytest.mark.parametrize("n", [300, 200])
def test_seed_epoch_and_source_each_make_another_order(n: int) -> None:
    orders = [order(n), order(n, seed=1), order(n, epoch=1), order(n, source="packed.prose")]
    assert len({tuple(one) for one in orders}) == 4


def test_the_next_epoch_is_not_the_first_of_the_next_seed() -> None:
    assert order(300, seed=7, epoch=1) != order(300, seed=8, epoch=0)


def test_keys_do_not_run_together() -> None:
    assert derive_key(seed=1, epoch=11, level="row", source="s") != derive_key(
        seed=11, epoch=1, level="row", source="s"
    )


@pytest.mark.parametrize("n", [3, 5])
def test_small_sources_see_all_orders_equally_often(n: int) -> None:
    counts = Counter(tuple(order(n, epoch=epoch)) for epoch in range(2400))
    orders = {3: 6, 5: 120}[n]
    assert len(counts) == orders
    expected = 2400 / orders
    chi2 = sum((count - expected) ** 2 / expected for count in counts.values())
    assert chi2 / (orders - 1) < 2  # far beyond chance for 5 and 119 degrees of freedom is above 3


@pytest.mark.parametrize("n", [1000, 4097, 70_000])
def test_a_large_order_is_spread_evenly_and_forgets_its_neighbours(n: int) -> None:
    items = np.array(order(n, seed=5))
    grid = np.histogram2d(np.arange(n), items, bins=16)[0]
    chi2 = ((grid - n / 256) ** 2 / (n / 256)).sum() / 225
    assert 0.6 < chi2 < 1.4
    assert abs(np.corrcoef(items[:-1], items[1:])[0, 1]) < 4 / np.sqrt(n)


GOLDEN_EXPLICIT = [8, 7, 5, 0, 3, 9, 1, 2, 4, 6]  # seed 7, epoch 2, of 10 rows
GOLDEN_FEISTEL = [518435, 255320, 351076, 864876, 858708, 539642]  # of 1,000,003 rows


def test_golden_orders_never_change() -> None:
    """Blends on record rely on them: a change of an order is a new `blender.config.FORMAT`."""
    assert order(10, seed=7, epoch=2) == GOLDEN_EXPLICIT
    large = permutation("row", 1_000_003, seed=7, epoch=2, source="packed.code").forward(np.arange(6))
    assert large.tolist() == GOLDEN_FEISTEL
