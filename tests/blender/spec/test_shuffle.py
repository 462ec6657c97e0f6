"""Permutations: bijections with inverses, keyed by a hash, the same for ever."""

from __future__ import annotations

from collections import Counter
from itertools import groupby

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from blender.spec.shuffle import Shuffle, derive_key, permutation

SIZES = [1, 2, 3, 4, 7, 255, 256, 257, 300, 1023, 1024, 1025, 5000]


ROW = Shuffle("row")
PAGE, WINDOW = Shuffle("page", 7), Shuffle("page_window", 7, 3)
SHUFFLES = [Shuffle(), PAGE, WINDOW, ROW]


def order(
    n: int, shuffle: Shuffle = ROW, *, seed: int = 0, epoch: int = 0, source: str = "packed.code"
) -> list[int]:
    """The whole order of an epoch."""
    return permutation(shuffle, n, seed=seed, epoch=epoch, source=source).forward(np.arange(n)).tolist()


def runs(pages: list[int]) -> list[int]:
    """The numbers without their immediate repetitions."""
    return [page for page, _ in groupby(pages)]


@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("shuffle", SHUFFLES)
def test_every_item_is_read_once(n: int, shuffle: Shuffle) -> None:
    assert sorted(order(n, shuffle)) == list(range(n))


@settings(deadline=None)
@given(st.integers(1, 1 << 45), st.integers(0, 2**64 - 1), st.integers(0, 5), st.data())
def test_an_item_is_found_again_at_its_position(n: int, seed: int, epoch: int, data: st.DataObject) -> None:
    positions = np.array(data.draw(st.lists(st.integers(0, n - 1), min_size=1, max_size=30)))
    page_rows, window_pages = data.draw(st.integers(1, 5000)), data.draw(st.integers(1, 5000))
    shuffle = data.draw(
        st.sampled_from([ROW, Shuffle("page", page_rows), Shuffle("page_window", page_rows, window_pages)])
    )
    shuffled = permutation(shuffle, n, seed=seed, epoch=epoch, source="s")
    items = shuffled.forward(positions)
    assert ((items >= 0) & (items < n)).all()
    assert (shuffled.inverse(items) == positions).all()


def test_positions_beyond_32_bits_stay_distinct() -> None:
    n = (1 << 33) + 12345
    positions = np.concatenate([np.arange(100_000), np.arange(n - 100_000, n)])
    items = permutation(ROW, n, seed=3, epoch=0, source="s").forward(positions)
    assert len(np.unique(items)) == len(positions)
    assert items.max() > 1 << 32
    assert items.max() < n


def test_no_order_is_the_identity() -> None:
    assert order(300, Shuffle()) == list(range(300))


@pytest.mark.parametrize("n", [2, 6, 7, 8, 20, 21, 300, 2003])
def test_pages_are_read_whole_and_their_rows_in_order(n: int) -> None:
    items = np.array(order(n, PAGE))
    pages = runs((items // 7).tolist())
    assert sorted(pages) == list(range(-(-n // 7)))
    assert n < 100 or pages != sorted(pages)
    within = np.diff(items)[np.diff(items // 7) == 0]
    assert (within == 1).all()


@pytest.mark.parametrize("n", [20, 21, 22, 300, 2003])
def test_a_window_permutes_the_rows_of_its_pages(n: int) -> None:
    in_pages, in_windows = (order(n, shuffle) for shuffle in (PAGE, WINDOW))
    sizes = [len([*rows]) for _, rows in groupby(item // 7 for item in in_pages)]
    first = 0
    for window in range(0, len(sizes), 3):
        end = first + sum(sizes[window : window + 3])
        assert sorted(in_windows[first:end]) == sorted(in_pages[first:end])
        assert end - first < 10 or in_windows[first:end] != in_pages[first:end]
        first = end
    assert first == n


def test_a_window_of_all_pages_mixes_all_rows() -> None:
    items = np.array(order(4097, Shuffle("page_window", 64, 65)))
    assert abs(np.corrcoef(items[:-1], items[1:])[0, 1]) < 4 / np.sqrt(4097)


def test_windows_of_an_epoch_have_orders_of_their_own() -> None:
    within = [
        tuple(np.argsort(np.array(order(210, WINDOW))[begin : begin + 21]).tolist())
        for begin in range(0, 210, 21)
    ]
    assert len(set(within)) == 10


@pytest.mark.parametrize("n", [300, 200])
@pytest.mark.parametrize("shuffle", SHUFFLES[1:])
def test_seed_epoch_and_source_each_make_another_order(n: int, shuffle: Shuffle) -> None:
    orders = [
        order(n, shuffle),
        order(n, shuffle, seed=1),
        order(n, shuffle, epoch=1),
        order(n, shuffle, source="packed.prose"),
    ]
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
GOLDEN_PAGE = [21, 22, 23, 7, 8, 9, 10, 11, 12, 13, 0, 1, 2, 3, 4, 5, 6, 14, 15, 16, 17, 18, 19, 20]
GOLDEN_WINDOW = [11, 9, 0, 2, 23, 22, 7, 6, 10, 3, 8, 1, 4, 12, 5, 21, 13, 20, 19, 14, 16, 18, 17, 15]
GOLDEN_LARGE_PAGE = [960896, 960897, 960959, 527808, 868128, 262463]  # pages of 64 of 1,000,003 rows
GOLDEN_LARGE_WINDOW = [125679, 867631, 260245, 867636, 778666, 782697]  # windows of 256 of them
GOLDEN_FEISTEL = [518435, 255320, 351076, 864876, 858708, 539642]  # of 1,000,003 rows


def test_golden_orders_never_change() -> None:
    """Blends on record rely on them: a change of an order is a new `blender.spec.config.FORMAT`."""
    assert order(10, seed=7, epoch=2) == GOLDEN_EXPLICIT
    large = permutation(ROW, 1_000_003, seed=7, epoch=2, source="packed.code").forward(np.arange(6))
    assert large.tolist() == GOLDEN_FEISTEL
    assert order(24, PAGE, seed=7, epoch=2) == GOLDEN_PAGE
    assert order(24, WINDOW, seed=7, epoch=2) == GOLDEN_WINDOW
    far = np.array([0, 1, 63, 64, 20_000, 1_000_002])
    for shuffle, golden in (
        (Shuffle("page", 64), GOLDEN_LARGE_PAGE),
        (Shuffle("page_window", 64, 256), GOLDEN_LARGE_WINDOW),
    ):
        paged = permutation(shuffle, 1_000_003, seed=7, epoch=2, source="packed.code")
        assert paged.forward(far).tolist() == golden
