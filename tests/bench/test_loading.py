"""The bench of loading plans, on tables and files small enough for seconds."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

from bench.harness import Report, WrongAnswer
from bench.lakes import own_lake
from bench.loading import fetch, images, memory, plan, sharing, tables, text
from bench.loading.balance import equal_sums, keeps_rows, order_times, plans
from bench.loading.corpus import packed
from bench.loading.laws import LAWS, ObservedPairs, flops, sequence
from bench.loading.plan import Case
from bench.loading.sharing import Way
from bench.loading.speedup import BACKBONES, ENCODERS, Cluster, mean_times
from blender.catalog.blends import open_blends
from blender.chunks import Piece, cut, without_tokens
from blender.loading import balance
from blender.loading.columns import StepColumns
from blender.loading.plan import Plan
from blender.loading.planner import Planner
from blender.loading.spec import LoadingSpec
from blender.loading.strategies import llm_balance, plain
from blender.loading.tree import ClientPlaceTree
from blender.opened.blend import Blend

SIZES = (24, 48)


@pytest.fixture(scope="module")
def blend(tmp_path_factory: pytest.TempPathFactory) -> Blend:
    """48 rows of 5 sources in a step."""
    home = tmp_path_factory.mktemp("loading")
    tables.write(home, SIZES, sources=5)
    assert tables.blend_of(home, 24).order.mixture.rows_per_step(0) == 24
    return tables.blend_of(home, 48)


def planner_of(blend: Blend, strategy: str = "llm") -> Planner:
    spec = Case("small", 48, 4, None, microbatches=2, group_size=2).spec(blend.id)
    return Planner(blend, spec.model_copy(update={"strategy": strategy}))


def plan_by_threads(step: StepColumns, tree: ClientPlaceTree, spec: LoadingSpec) -> Plan:
    return (plain if balance.THREADS == 2 else llm_balance)(step, tree, spec)


def test_each_part_of_a_plan_is_timed_after_the_plan_was_checked(blend: Blend) -> None:
    report = Report([], "")
    planned = plan.check(report, "small", blend, planner_of(blend))
    assert len(report.answers) == 3
    cpu_ms = plan.parts_ms(blend, planner_of(blend), rounds=2)
    assert {part: len(rounds) for part, rounds in cpu_ms.items()} == dict.fromkeys(plan.PARTS, 2)
    as_given, as_planned, bound = plan.excesses(planned)
    assert bound <= as_planned < as_given


def test_a_plan_that_depends_on_threads_is_a_wrong_answer(blend: Blend) -> None:
    with pytest.raises(WrongAnswer, match="one hash on 1, 2, 8 threads"):
        plan.check(Report([], ""), "small", blend, planner_of(blend, f"{__name__}:plan_by_threads"))
    assert balance.THREADS == 4


def test_facts_of_other_segments_are_found_out(blend: Blend) -> None:
    step, rows = planner_of(blend).summary_buffer(3), blend.explain(3)
    assert plan.explained(step, rows)
    squares = step.facts["squared_lengths"].copy()
    squares[7] += np.uint64(1)
    assert not plan.explained(replace(step, facts={**step.facts, "squared_lengths": squares}), rows)


def test_another_shuffle_names_other_rows_of_the_same_sources(blend: Blend) -> None:
    rows = blend.order.row_numbers(1)
    given = blend.order.origins(rows)
    orders = {shuffle["shuffle"]: plan.reshuffled(blend, shuffle).origins(rows) for shuffle in plan.SHUFFLES}
    assert np.array_equal(orders["row"], given)
    for name in ("none", "page_window"):
        assert np.array_equal(orders[name].source, given.source)
        assert not np.array_equal(orders[name].ordinal, given.ordinal)


def test_the_rows_of_a_source_hold_its_documents_one_after_the_other(blend: Blend, tmp_path: Path) -> None:
    segments = blend.sources[2].segments(np.arange(4))
    assert [sum(segment.length for segment in row) for row in segments] == [tables.LENGTH] * 4
    pieces = [segment for row in segments for segment in row]
    ends: dict[str, int] = {}
    for piece in pieces:
        assert piece.doc_offset == ends.get(piece.doc_id, 0)
        ends[piece.doc_id] = piece.doc_offset + piece.length
    assert list(ends) == [f"s2-{number}" for number in range(len(ends))]


def test_the_weights_of_a_step_sum_to_its_rows() -> None:
    for size in (306, 20_736, 82_944):
        rows = tables.weights(size, tables.SOURCES)
        assert (len(rows), sum(rows)) == (306, size)
        assert min(rows) >= 1


def test_packed_rows_hold_every_document_cut_at_the_row_length() -> None:
    rows = packed(np.array([25, 10, 7, 3, 1]), 10)
    assert sorted(rows.n_tokens.tolist()) == [6, 10, 10, 10, 10]
    assert int(rows.squared_lengths.sum()) == 2 * 10**2 + 5**2 + 10**2 + 7**2 + 3**2 + 1


def test_a_step_repeats_no_row_before_all_were_drawn() -> None:
    rows = packed(np.arange(1, 11), 10)
    step = rows.step(3, 2 * len(rows) + 1)
    assert sorted(step.ordinal[: len(rows)].tolist()) == list(range(len(rows)))
    assert sorted(np.bincount(step.ordinal).tolist()) == [2] * (len(rows) - 1) + [3]
    assert step.epoch.tolist() == [0] * len(rows) + [1] * len(rows) + [2]


def test_like_microbatches_side_by_side_are_worth_more_than_equal_sums() -> None:
    lengths = np.random.default_rng(1).lognormal(6, 1.3, 20_000).astype(np.int64) + 1
    rows = packed(lengths, 32_768)
    (planned,), (sums,) = plans(rows, 2_048, 8, "microbatch", steps=1), equal_sums(rows, 2_048, 8, steps=1)
    assert keeps_rows(planned)
    assert keeps_rows(sums)
    assert planned.figures["microbatch"].after * 1.3 < sums.figures["microbatch"].after
    assert sums.figures["step"].after < sums.figures["step"].before


def test_a_plan_that_puts_two_rows_in_a_microbatch_is_found_out() -> None:
    (planned,) = plans(packed(np.arange(1, 2_000), 2_000), 64, 2, "step", steps=1)
    moved = planned.bin.copy()
    moved[0] = (moved[0] + 1) % planned.bins
    assert not keeps_rows(replace(planned, bin=moved))


def test_small_microbatches_at_both_ends_keep_a_pipeline_full() -> None:
    ratios = order_times(draws=5)
    assert ratios["equal"] == 1
    assert ratios["hill, small at both ends"] < ratios["descending"] < ratios["V, large at both ends"]


def test_groups_of_images_are_balanced_with_each_other() -> None:
    costs = np.sort(images.drawn_costs(960))
    for group in (None, 2):
        as_given, as_placed, bound = images.ratios(costs, images.placed(costs, 8, group), 8)
        assert 1 <= bound <= as_placed < 1.02 < as_given


@pytest.mark.parametrize("name", LAWS)
def test_a_sequence_of_drawn_pairs_fits_its_context(name: str) -> None:
    for seed in range(20):
        patches, lengths = sequence(LAWS[name], 4_096, np.random.default_rng(seed))
        assert len(patches) == len(lengths) >= 1
        assert 0 < lengths.sum() <= 4_096
        assert patches.min() >= 64


def test_microbatches_of_longer_contexts_are_more_alike() -> None:
    short, long = (
        flops(LAWS["captions (COYO)"], context, np.random.default_rng(0)) for context in (4_096, 16_384)
    )
    for short_costs, long_costs in zip(short, long, strict=True):
        assert long_costs.max() / long_costs.min() < short_costs.max() / short_costs.min()


SMALL = Cluster(dp=2, tp=2, pp=2, microbatches=4)


def test_pictures_of_one_size_gain_nothing_from_balance() -> None:
    pairs = ObservedPairs(np.array([24]), np.array([1_024]))
    times = mean_times(pairs, SMALL, ENCODERS["ViT-2B"], BACKBONES["Llama-12B"], 8 * (24 + 256))
    for way in ("backbone", "microbatch", "step"):
        assert times.speedup(way) == pytest.approx(1)


@pytest.mark.parametrize("name", LAWS)
def test_a_wider_reach_of_balance_is_never_slower(name: str) -> None:
    times = mean_times(LAWS[name], SMALL, ENCODERS["ViT-2B"], BACKBONES["Llama-12B"], 8_192)
    assert times.step <= times.microbatch <= times.backbone * 1.0001
    assert 0 < times.encoder < times.as_given


@pytest.fixture(scope="module")
def drawn(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A table of 24 rows, and a blend of steps of 8."""
    home = tmp_path_factory.mktemp("drawn")
    text.write(home, [8], source_rows=24)
    return home


@pytest.mark.parametrize("dictionary", [False, True])
def test_drawn_tokens_are_stored_in_pages_of_eight_rows(tmp_path: Path, dictionary: bool) -> None:
    text.write(tmp_path, [2], source_rows=24, dictionary=dictionary)
    assert np.array_equal(text.stored_tokens(tmp_path), text.drawn_tokens(0, 24))
    column = pq.ParquetFile(text.table_file(tmp_path, 0)).metadata.row_group(0).column(1)
    assert column.path_in_schema == "tokens"
    assert column.has_dictionary_page == dictionary
    blend = open_blends(own_lake(tmp_path / "lake")).open(text.blend_id(tmp_path))
    assert blend.sources[0].reader.column("tokens").groups[0].index.n_pages == 3


@pytest.mark.parametrize(
    "way",
    [
        Way("alone", readers=2),
        pytest.param(Way("cp 2", "cp=2", readers=2), marks=pytest.mark.slow),
        Way("pp 3", "pp=3", readers=3),
    ],
    ids=lambda way: way.label,
)
def test_ranks_get_the_rows_and_their_cost_is_counted(drawn: Path, way: Way) -> None:
    report = Report([], "")
    with sharing.server_of(drawn, way) as server:
        sharing.check(report, drawn, way, server, steps=2)
        figures = sharing.cost(drawn, way, server, warm=1, steps=3)
    assert len(report.answers) == (2 if way.mesh else 1)
    assert set(figures) == set(sharing.UNITS)
    assert min(figures[name] for name in ("server_mib", "ranks_mib", "rank_ms", "p50_ms")) > 0
    assert figures["p50_ms"] <= figures["p99_ms"]


def test_wrong_tokens_of_a_rank_are_found_out(drawn: Path) -> None:
    blend = open_blends(own_lake(drawn / "lake")).open(text.blend_id(drawn))
    rows, stored = blend.step(0), text.stored_tokens(drawn)
    wanted = np.sort(rows.column("ordinal").to_numpy())
    pieces = [cut(rows, Piece(rank, 2, "row")) for rank in range(2)]
    lengths = without_tokens(rows, Piece())
    for right in ([rows, rows], pieces, [rows, lengths, rows]):
        assert sharing.right_step(right, wanted, stored)
    other = stored.copy()
    other[wanted[3], 4_000] += 1
    for wrong in ([rows, rows], pieces):
        assert not sharing.right_step(wrong, wanted, other)
    for incomplete in ([pieces[0], pieces[0]], [lengths, lengths], [rows.slice(0, 7)], [rows, rows.slice(1)]):
        assert not sharing.right_step(incomplete, wanted, stored)


@pytest.mark.parametrize(
    "place, ahead", [pytest.param("embedded", 0, marks=pytest.mark.slow), ("constructor", 2)]
)
def test_the_wait_for_tensors_is_timed_after_warm_steps(drawn: Path, place: str, ahead: int | None) -> None:
    pytest.importorskip("torch")
    spec = fetch.spec_for(drawn, microbatches=4)
    costs = fetch.read(drawn, spec, place, ahead, warm=2, steps=3)
    assert costs["right"]
    assert len(costs["waits_ms"]) == 3
    assert min(costs["waits_ms"]) > 0
    assert fetch.planned_tokens(drawn, spec, 2).shape == (2, 8, tables.LENGTH)


@pytest.fixture(scope="module")
def three_sources(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Tables of 24 rows, of which a step has 1, 2 and 3."""
    home = tmp_path_factory.mktemp("three")
    text.write(home, [1, 2, 3], source_rows=24)
    return home


@pytest.mark.parametrize(
    "way",
    [
        memory.PYARROW,
        memory.CONSTRUCTOR,
        *(pytest.param(way, marks=pytest.mark.slow) for way in (memory.TORCH, memory.BLEND)),
    ],
    ids=lambda way: way.reader,
)
def test_ranks_read_all_sources_and_their_memory_is_counted(three_sources: Path, way: memory.Way) -> None:
    if way is memory.TORCH:
        pytest.importorskip("torch")
    report, known = Report([], ""), memory.digests(three_sources, sources=3)
    sizes = {"warm": 2, "steps": 2, "weights": [1, 2, 3]}
    counted = memory.read(report, three_sources, way, 2, known, "plain", **sizes)
    assert len(report.answers) == 1
    assert counted.rank > 0
    assert (counted.worker > 0, counted.server > 0) == (way.workers > 0, way.served)
    if way is memory.PYARROW:
        with pytest.raises(WrongAnswer, match="as they are stored"):
            memory.read(report, three_sources, way, 2, dict.fromkeys(known, 0), "plain", **sizes)


def test_a_constructor_needs_ranks_enough_to_share_it() -> None:
    constructor, alone = memory.Memory(600, 50, 0), memory.Memory(0, 20, 300)
    least = memory.passes_at(alone, constructor, workers=8)
    assert least == 5
    ratios = [alone.of(n, 8) / constructor.of(n, 0) for n in (least - 1, least)]
    assert ratios[0] <= memory.PAPER_RATIO < ratios[1]
    assert memory.passes_at(memory.Memory(0, 370, 0), constructor, workers=0) is None
