"""A blend read without a port: a pure function of (blend, offset), with an inverse."""

from __future__ import annotations

import itertools
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from blender.catalog.blends import Blends, open_blends
from blender.errors import EndOfData, InvalidBlend, InvalidRequest
from blender.opened.blend import Blend
from blender.records import Source
from blender.spec.ranks import RankSlice
from blender.spec.step_range import StepRange
from factory.settings import Settings
from tests.blender.lakes import CODE, PROSE, SHUFFLES, make_lake, packed_rows, write_table


@pytest.fixture
def lake(shared_lake: Settings) -> Settings:
    """One lake for the file, whose tests change none of its two tables."""
    return shared_lake


def mixed(blends: Blends) -> Blend:
    """6 rows a step of code, shuffled and oversampled, and 2 of prose in order: 150 steps."""
    stored = blends.create([Source(CODE, 6, oversample=True, shuffle="row"), Source(PROSE, 2)], seed=7)
    return blends.open(stored.id)


def rows_of(blend: Blend, offset: int, steps: int, stride: int = 1, **options: Any) -> list[dict]:
    """All rows of a fetch, whatever its blocks."""
    blocks = blend.fetch(StepRange(offset, steps or None, stride), **options)
    return [row for block in blocks for row in block.batch.to_pylist()]


def test_a_step_has_the_weight_of_each_source_in_event_order(blends: Blends) -> None:
    step = mixed(blends).step(3)
    assert step.column("source").to_pylist() == [0, 0, 1, 0, 0, 0, 1, 0]  # 1/4 ties: code stands first
    assert step.column("offset").to_pylist() == [3] * 8
    assert [row["ordinal"] for row in step.to_pylist() if row["source"] == 1] == [6, 7]


def test_the_tokens_are_those_of_the_ordinal(blends: Blends) -> None:
    blend = mixed(blends)
    tables = [packed_rows("code", 40), packed_rows("prose", 300)]
    for row in rows_of(blend, 0, 30):
        written = tables[row["source"]].slice(row["ordinal"], 1).to_pylist()[0]
        assert row["tokens"] == written["tokens"]
        assert row["segment_lengths"] == [segment["length"] for segment in written["segments"]]


def test_every_epoch_reads_an_oversampled_source_in_a_new_order(blends: Blends) -> None:
    blend = mixed(blends)
    rows = [row for row in rows_of(blend, 0, 20) if row["source"] == 0]  # 120 rows: three epochs of 40
    epochs = [[row["ordinal"] for row in rows if row["epoch"] == epoch] for epoch in range(3)]
    assert [sorted(epoch) for epoch in epochs] == [list(range(40))] * 3
    assert len({tuple(epoch) for epoch in epochs}) == 3


@pytest.mark.invariant(
    "Reading from any offset equals reading from the start, and the slices of all ranks make up the step."
)
def test_any_offset_is_what_reading_through_gives(blends: Blends) -> None:
    blend = mixed(blends)
    through = rows_of(blend, 0, 150)
    for offset in (0, 1, 77, 149):
        assert blend.step(offset).to_pylist() == through[8 * offset : 8 * offset + 8]


@pytest.mark.parametrize("block_bytes", [1, 100, 1000, 1 << 20])
def test_the_size_of_blocks_changes_no_row_and_no_resumption(blends: Blends, block_bytes: int) -> None:
    blend = mixed(blends)
    expected = rows_of(blend, 5, 20)
    blocks = list(blend.fetch(StepRange(5, 20), block_bytes=block_bytes))
    assert [row for block in blocks for row in block.batch.to_pylist()] == expected
    assert blocks[-1].next_offset == 25
    for block in blocks:
        complete = [row for row in expected if row["offset"] < block.next_offset]
        taken = itertools.chain.from_iterable(
            one.batch.to_pylist() for one in blocks[: blocks.index(block) + 1]
        )
        assert list(taken)[: len(complete)] == complete


@pytest.mark.invariant(
    "Reading from any offset equals reading from the start, and the slices of all ranks make up the step."
)
@pytest.mark.parametrize("ranks", [1, 2, 4, 8])
def test_the_slices_of_all_ranks_make_the_step(blends: Blends, ranks: int) -> None:
    blend = mixed(blends)
    for offset in (0, 13):
        shares = [blend.step(offset, RankSlice(rank, ranks)) for rank in range(ranks)]
        assert pa.Table.from_batches(shares).to_pylist() == blend.step(offset).to_pylist()
    fetched = [rows_of(blend, 0, 5, share=RankSlice(rank, ranks)) for rank in range(ranks)]
    assert sorted(map(repr, itertools.chain(*fetched))) == sorted(map(repr, rows_of(blend, 0, 5)))


def test_strides_of_several_readers_cover_all_steps(blends: Blends) -> None:
    parent = mixed(blends)
    blend = blends.open(blends.update(parent.id, 31, {CODE: 2}).id)
    rows = rows_of(blend, 5, 100)
    for stride, block_bytes in itertools.product((2, 7), (1, 1000, 1 << 20)):
        dealt: list[dict] = []
        for reader in range(stride):
            mine = rows_of(blend, 5 + reader, 100 - reader, stride=stride, block_bytes=block_bytes)
            assert {(row["offset"] - 5) % stride for row in mine} == {reader}
            dealt += mine
        assert sorted(dealt, key=lambda row: row["offset"]) == rows


def test_a_reader_of_every_nth_step_continues_after_any_block(blends: Blends) -> None:
    blend = mixed(blends)
    blocks = list(blend.fetch(StepRange(3, 100, 9), block_bytes=500))
    assert len(blocks) > 2
    for block in blocks:
        rest = rows_of(blend, block.next_offset, 103 - block.next_offset, stride=9)
        assert rest == [row for row in rows_of(blend, 3, 100, stride=9) if row["offset"] >= block.next_offset]
        if block.next_offset > 94:
            break


def test_the_blend_ends_with_a_clear_status_after_its_last_step(blends: Blends) -> None:
    blend = mixed(blends)
    assert blend.steps == 150
    assert len(rows_of(blend, 140, 0)) == 10 * 8
    assert rows_of(blend, 150, 0) == []
    fetched = blend.fetch(StepRange(148, 10))
    assert next(fetched).next_offset == 150
    with pytest.raises(EndOfData, match=r"`packed.prose` has 300 rows .* step 150 needs 302"):
        next(fetched)
    for beyond in (
        lambda: blend.step(150),
        lambda: blend.explain(150),
        lambda: list(blend.fetch(StepRange(200))),
    ):
        with pytest.raises(EndOfData, match="ends after 150 steps"):
            beyond()


def test_a_blend_of_oversampled_sources_never_ends(blends: Blends) -> None:
    stored = blends.create([Source(CODE, 3, oversample=True, shuffle="row")])
    blend = blends.open(stored.id)
    assert blend.steps is None
    far = blend.step(10**12)
    assert far.column("epoch").to_pylist() == [3 * 10**12 // 40] * 3
    assert blend.order.locate(CODE, far.column("ordinal")[0].as_py()) == blend.order.locate(
        CODE, far.column("ordinal")[0].as_py(), epochs=1
    )


@pytest.mark.parametrize(
    "request_, sentence",
    [
        ({"steps": StepRange(-1)}, "Steps -1 to"),
        ({"steps": StepRange(0, -2)}, "Steps 0 to -2"),
        ({"steps": StepRange(1 << 43)}, "A blend has"),
        ({"steps": StepRange(), "share": RankSlice(0, 3)}, "A step of 8 rows .* 3 ranks"),
        ({"steps": StepRange(stride=0)}, "A stride of 0"),
        ({"steps": StepRange(stride=1 << 62)}, "A stride of 4,6"),
    ],
)
def test_a_wrong_request_is_refused_at_once(blends: Blends, request_: dict[str, Any], sentence: str) -> None:
    with pytest.raises(InvalidRequest, match=sentence):
        mixed(blends).fetch(**request_)


@pytest.mark.parametrize("shuffle", SHUFFLES, ids=lambda one: str(one["shuffle"]))
@pytest.mark.parametrize("columns", [("tokens",), ("n_tokens", "chunk")])
def test_explain_names_the_documents_of_what_fetch_serves(
    blends: Blends, shuffle: dict[str, object], columns: tuple[str, ...]
) -> None:
    code = Source(CODE, 6, oversample=True, columns=columns, **shuffle)
    parent = blends.create([code, Source(PROSE, 2, columns=columns)], seed=7)
    again = Source(CODE, 3, name="again", columns=columns, **shuffle)
    child = blends.open(blends.update(parent.id, 9, {CODE: 1}, [again]).id)
    tables = {CODE: packed_rows("code", 40), PROSE: packed_rows("prose", 300)}
    for offset in (8, 9, 12):
        step = child.step(offset).to_pylist()
        explained = child.explain(offset)
        assert [row.row for row in explained] == list(range(8 if offset < 9 else 6))
        for served, row in zip(step, explained, strict=True):
            written = tables[row.table].slice(served["ordinal"], 1).to_pylist()[0]
            assert (row.ordinal, row.epoch) == (served["ordinal"], served["epoch"])
            assert row.source == child.sources[served["source"]].config.name
            assert [vars(segment) for segment in row.segments] == written["segments"]
            assert {name: served[name] for name in columns} == {name: written[name] for name in columns}


@pytest.mark.invariant("Looking up a row finds every step that serves it.")
def test_locate_finds_every_row_where_fetch_serves_it(blends: Blends) -> None:
    blend = mixed(blends)
    served: dict[tuple[int, int], list[tuple[int, int, int]]] = {}
    for row, number in zip(rows_of(blend, 0, 150), itertools.count(), strict=False):
        key = (row["source"], row["ordinal"])
        served.setdefault(key, []).append((row["offset"], number % 8, row["epoch"]))
    for (number, ordinal), positions in served.items():
        found = blend.order.locate(blend.sources[number].config.name, ordinal, epochs=100)
        assert [(place.offset, place.row, place.epoch) for place in found] == positions
    assert len(served) == 340


def test_a_missing_row_is_not_located(blends: Blends) -> None:
    with pytest.raises(InvalidRequest, match="no source `x`"):
        mixed(blends).order.locate("x", 0)
    with pytest.raises(InvalidRequest, match="ordinals 0 to 39; 40 is outside"):
        mixed(blends).order.locate(CODE, 40)


def test_another_layout_of_the_files_gives_the_same_blend_and_rows(tmp_path: Path) -> None:
    one = make_lake(tmp_path / "one", code=40, prose=300)
    other = Settings(home=tmp_path / "other", cache=tmp_path)
    dealt = np.random.default_rng(1).permutation(300).reshape(3, 100).tolist()
    write_table(other, PROSE, packed_rows("prose", 300), files=dealt, row_group=16)
    write_table(other, CODE, packed_rows("code", 40), files=[range(20, 40), range(20)], row_group=3)
    here, there = mixed(open_blends(one)), mixed(open_blends(other, memory_bytes=1000))
    assert here.id == there.id
    assert [block.batch for block in here.fetch(StepRange(0, 150))] == [
        block.batch for block in there.fetch(StepRange(0, 150))
    ]


def test_an_updated_blend_equals_its_parent_before_the_offset_only(blends: Blends) -> None:
    parent = mixed(blends)
    stored = blends.update(parent.id, 20, {CODE: 2, PROSE: 4})
    child = blends.open(stored.id)
    before, after = rows_of(parent, 0, 20), rows_of(child, 0, 25)
    assert after[: 20 * 8] == before
    step = child.step(20).to_pylist()
    assert Counter(row["source"] for row in step) == {0: 2, 1: 4}
    # The source continues, without repeating a row.
    assert [row["ordinal"] for row in step if row["source"] == 1] == [40, 41, 42, 43]
    assert child.steps == 20 + (300 - 40) // 4
    with pytest.raises(InvalidRequest, match=r"A step of 6 rows \(from step 20 on"):
        child.fetch(StepRange(0, 25), RankSlice(0, 4))
    assert len(rows_of(child, 0, 20, share=RankSlice(0, 4))) == 40


def test_a_source_may_pause_and_continue(blends: Blends) -> None:
    parent = mixed(blends)
    resting = blends.update(parent.id, 10, {PROSE: 0})
    back = blends.open(blends.update(resting.id, 30, {PROSE: 2}).id)
    rows = [row["ordinal"] for row in rows_of(back, 0, 40) if row["source"] == 1]
    assert rows == list(range(40))
    assert [place.offset for place in back.order.locate(PROSE, 20)] == [30]
    assert blends.open(resting.id).order.locate(PROSE, 20) == []


def test_an_update_may_add_a_source(blends: Blends, lake: Settings) -> None:
    write_table(lake, "packed.new", packed_rows("new", 10))
    parent = mixed(blends)
    child = blends.open(blends.update(parent.id, 5, {}, [Source("packed.new", 8)]).id)
    assert rows_of(child, 0, 5) == rows_of(parent, 0, 5)
    assert Counter(child.step(5).column("source").to_pylist()) == {0: 6, 1: 2, 2: 8}
    assert child.steps == 6  # of ten rows, eight are one step


def test_columns_of_one_source_are_null_for_the_others(blends: Blends) -> None:
    stored = blends.create([Source(CODE, 1, columns=("tokens", "chunk")), Source(PROSE, 1)])
    rows = blends.open(stored.id).step(17).to_pylist()
    assert [row["chunk"] for row in rows] == [1, None]
    assert all(row["tokens"] for row in rows)


def test_columns_of_two_types_are_refused(blends: Blends, lake: Settings) -> None:
    write_table(lake, "packed.other", pa.table({"ordinal": [0, 1], "chunk": ["a", "b"]}))
    with pytest.raises(InvalidBlend, match=r"`chunk` is int64 in source `packed\.code` and string"):
        blends.create([Source(CODE, 1, columns=("chunk",)), Source("packed.other", 1, columns=("chunk",))])


def test_tokens_of_two_widths_are_refused(blends: Blends, lake: Settings) -> None:
    write_table(lake, "packed.wide", packed_rows("wide", 4), properties={"factory.token-bytes": "4"})
    with pytest.raises(InvalidBlend, match=r"different widths .*`packed\.code` 2, `packed.wide` 4"):
        blends.create([Source(CODE, 1), Source("packed.wide", 1)])


@settings(
    max_examples=25,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(
    weights=st.tuples(st.integers(0, 9), st.integers(0, 9)).filter(any),
    shuffle=st.sampled_from(SHUFFLES),
    seed=st.integers(0, 2**64 - 1),
    offset=st.integers(0, 10**6),
)
def test_offset_to_row_and_back_round_trips(
    blends: Blends, weights: tuple[int, int], shuffle: dict[str, object], seed: int, offset: int
) -> None:
    chosen = [
        Source(table, weight, oversample=True, **shuffle)
        for table, weight in zip((CODE, PROSE), weights, strict=True)
    ]
    blend = blends.open(blends.create(chosen, seed).id)
    for number, row in enumerate(blend.step(offset).to_pylist()):
        opened = blend.order.sources[row["source"]]
        index = opened.index(row["ordinal"], row["epoch"])
        found = blend.order.mixture.row_of(row["source"], np.array([index]))
        assert int(blend.order.mixture.step_of(found)[0]) == offset
        assert int(found[0]) - blend.order.mixture.first_row(offset) == number
