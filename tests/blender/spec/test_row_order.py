"""The order of a blend, computed without its tables, names the rows it serves, for any steps and ranks."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from blender.catalog.blends import Blends, open_blends
from blender.errors import InvalidRequest
from blender.opened.blend import Blend
from blender.records import RowPosition, Source
from blender.spec.config import BlendConfig, blend_config, updated
from blender.spec.mixture import Mixture
from blender.spec.ranks import RankSlice
from blender.spec.row_order import BlendOrder
from blender.spec.step_range import StepRange
from factory.settings import Settings
from tests.blender.lakes import CODE, PROSE, append_rows, packed_rows, write_table

LIVE = "packed.live"
SIZES = {CODE: 40, PROSE: 300}

SHUFFLES: list[dict[str, Any]] = [
    {},
    {"shuffle": "row"},
    {"shuffle": "page", "page_rows": 7},
    {"shuffle": "page_window", "page_rows": 3, "window_pages": 4},
    {"shuffle": "window", "window_rows": 9},
]


def configured(seed: int = 0, **weights_of: tuple[int, dict[str, Any]]) -> BlendConfig:
    """A blend of endless sources by table: (weight, further fields) each."""
    sources = [
        Source(**{"table": f"packed.{name}", "weight": weight, "content": name, "oversample": True} | fields)
        for name, (weight, fields) in weights_of.items()
    ]
    return blend_config(sources, seed)


def order_of(config: BlendConfig, *later: BlendConfig) -> BlendOrder:
    """The order of a blend and its updates, by the sizes of its tables alone."""
    pieces, starts = (
        [config.piece, *(update.piece for update in later)],
        [0, *(update.offset for update in later)],
    )
    newest = later[-1] if later else config
    sizes = [None if source.live else SIZES[source.table] for source in newest.sources]
    return BlendOrder(newest, Mixture(pieces, starts), sizes)


def served(batch: pa.RecordBatch) -> list[list[int]]:
    """Source, epoch and ordinal of the rows of a batch."""
    return [batch.column(name).to_pylist() for name in ("source", "epoch", "ordinal")]


def named(order: BlendOrder, rows: np.ndarray) -> list[list[int]]:
    """Source, epoch and ordinal of row numbers."""
    return [column.tolist() for column in order.origins(rows)]


@pytest.mark.invariant(
    "Blender serves the order computed from the config and the sizes of the sources, for every rank."
)
@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    weights=st.tuples(st.integers(0, 7), st.integers(1, 7)),
    shuffles=st.tuples(st.sampled_from(SHUFFLES), st.sampled_from(SHUFFLES)),
    seed=st.integers(0, 2**64 - 1),
    change=st.integers(1, 30),
    offset=st.one_of(st.integers(0, 60), st.integers(0, 10**12)),
)
def test_the_order_names_the_rows_that_a_blend_serves(
    blends: Blends,
    weights: tuple[int, int],
    shuffles: tuple[dict[str, Any], dict[str, Any]],
    seed: int,
    change: int,
    offset: int,
) -> None:
    sources = [
        Source(table, weight=weight, oversample=True, **shuffle)
        for table, weight, shuffle in zip(SIZES, weights, shuffles, strict=True)
    ]
    first = blends.create(sources, seed)
    second = blends.update(first.id, change, {CODE: 3})
    order = order_of(first.config, second.config)
    blend = blends.open(second.id)
    assert named(order, order.row_numbers(offset)) == served(blend.step(offset))


@given(
    weight=st.integers(1, 5),
    ranks=st.integers(1, 6),
    offset=st.integers(0, 40),
    steps=st.integers(0, 40),
    stride=st.integers(1, 9),
)
def test_the_slices_of_all_ranks_partition_every_step(
    weight: int, ranks: int, offset: int, steps: int, stride: int
) -> None:
    config = configured(code=(weight * ranks, {}))
    order = order_of(config, updated(config, 17, {CODE: ranks}), updated(config, 23, {CODE: 2 * ranks}))
    offsets = range(offset, offset + steps * stride, stride)
    steps_read = StepRange(offset, steps * stride, stride)
    slices = [order.rows_of_steps(steps_read, RankSlice(rank, ranks)) for rank in range(ranks)]
    whole = [order.row_numbers(step) for step in offsets]
    expected = np.concatenate([np.empty(0, dtype=np.int64), *whole])
    assert sorted(np.concatenate(slices).tolist()) == expected.tolist()
    assert order.rows_of_steps(steps_read).tolist() == expected.tolist()
    per_step = [
        [order.row_numbers(step, RankSlice(rank, ranks)) for rank in range(ranks)] for step in offsets
    ]
    assert [np.concatenate(parts).tolist() for parts in per_step] == [rows.tolist() for rows in whole]


@given(shuffle=st.sampled_from(SHUFFLES), seed=st.integers(0, 2**64 - 1), epoch=st.integers(0, 1 << 40))
def test_an_epoch_reads_every_ordinal_once_and_locate_leads_back(
    shuffle: dict[str, Any], seed: int, epoch: int
) -> None:
    order = order_of(configured(seed, code=(1, shuffle), prose=(3, {})))
    code = order.sources[0]
    ordinals = code.permutation(epoch).forward(np.arange(40))
    assert sorted(ordinals.tolist()) == list(range(40))
    assert [code.index(ordinal, epoch) for ordinal in ordinals.tolist()] == list(
        range(40 * epoch, 40 * (epoch + 1))
    )
    rows = order.row_numbers(5)
    for row, (source, at, ordinal) in enumerate(zip(*named(order, rows), strict=True)):
        name = order.sources[source].config.name
        assert order.locate(name, ordinal, epochs=at + 1)[-1] == RowPosition(5, row, at)


@given(
    shuffles=st.tuples(st.sampled_from(SHUFFLES), st.sampled_from(SHUFFLES)),
    rows=st.lists(st.one_of(st.integers(0, 400), st.integers(0, 1 << 50)), max_size=40),
)
def test_rows_of_any_sources_and_epochs_have_the_origins_of_each_alone(
    shuffles: tuple[dict[str, Any], dict[str, Any]], rows: list[int]
) -> None:
    order = order_of(configured(code=(1, shuffles[0]), prose=(2, shuffles[1])))
    alone = [[column[0] for column in named(order, np.array([row], dtype=np.int64))] for row in rows]
    together = named(order, np.array(rows, dtype=np.int64))
    assert list(zip(*together, strict=True)) == [tuple(row) for row in alone]


@pytest.mark.invariant(
    "Blender serves the order computed from the config and the sizes of the sources, for every rank."
)
@pytest.mark.parametrize("fields", [{}, {"shuffle": "window", "window_rows": 4}])
def test_the_order_of_a_live_source_does_not_depend_on_its_length(
    lake: Settings, fields: dict[str, Any]
) -> None:
    def opened() -> Blend:
        return open_blends(lake).open(stored.id)

    write_table(lake, LIVE, packed_rows("live", 8))
    sources = [Source(LIVE, weight=2, live=True, **fields), Source(PROSE, weight=3)]
    stored = open_blends(lake).create(sources, 11)
    order = order_of(stored.config)
    early = [opened().step(step) for step in range(4)]
    append_rows(lake, LIVE, 8, 48)
    late = [opened().step(step) for step in range(24)]
    assert early == late[:4]
    assert [named(order, order.row_numbers(step)) for step in range(24)] == [served(batch) for batch in late]
    assert order.rows_needed(24).tolist() == [50, 75]  # more than there are: the order knows no size
    (position,) = order.locate(LIVE, 49)
    assert position.offset >= 24
    assert named(order, order.row_numbers(position.offset))[2][position.row] == 49
    assert (order.steps, order.ends) == (100, (None, 100))


@pytest.mark.parametrize("rank, ranks", [(2, 2), (-1, 1), (0, 0), (0, -2)])
def test_a_rank_outside_its_ranks_is_refused(rank: int, ranks: int) -> None:
    with pytest.raises(InvalidRequest, match=f"Rank {rank} of {ranks} was asked for"):
        RankSlice(rank, ranks)
