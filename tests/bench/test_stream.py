"""The bench of streams: its readers give whole epochs, go on from states, and count what ranks read."""

from __future__ import annotations

import time
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

from bench.harness import Report, Runs
from bench.stream import measure as bench
from bench.stream.data import LAYOUTS, PAGE_ROWS, write
from bench.stream.measure import FIGURES
from bench.stream.ours import ranks
from bench.stream.reader import READERS, measured
from bench.stream.rows import BATCH, SOURCES, STEP_ROWS, array, n_rows_of, total
from blender.pages import get_idx_matrix

ROWS = 1_000
OURS = ("packed", "plain", "memmap")


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Arrays, tables and blends of a thousand rows."""
    made = tmp_path_factory.mktemp("stream")
    write(made, ROWS)
    return made


def test_sources_have_whole_steps_of_rows(home: Path) -> None:
    rows = [len(array(home, source)) for source in SOURCES]
    assert rows == [n_rows_of(source, ROWS) for source in SOURCES] == [576, 288, 96]
    assert total(home) == ROWS // STEP_ROWS * STEP_ROWS


@pytest.mark.parametrize("name", OURS)
def test_an_epoch_has_every_row_once_as_it_was_written(home: Path, name: str) -> None:
    stream = READERS[name].opened(home, None)
    rows = np.concatenate(list(stream.batches))
    for source in SOURCES:
        of_source = rows[rows[:, 1] == source]
        assert np.array_equal(of_source[np.argsort(of_source[:, 0])], array(home, source))


@pytest.mark.parametrize("name", OURS)
@pytest.mark.parametrize("done", [0, 7, 60])
def test_a_reader_goes_on_from_a_state_inside_a_step(home: Path, name: str, done: int) -> None:
    whole = np.concatenate(list(READERS[name].opened(home, None).batches))
    first = READERS[name].opened(home, None)
    for _ in range(done):
        next(first.batches)
    rest = np.concatenate(list(READERS[name].opened(home, first.state()).batches))
    assert np.array_equal(rest, whole[done * BATCH :])


def test_costs_are_of_the_batches_asked_for(home: Path) -> None:
    found, seen = measured(READERS["plain"].opened(home, None), 20, time.perf_counter())
    assert found["rows"] == len(seen) == 20 * BATCH
    assert found["rows_per_s"] > 0 < found["p50_us"] <= found["p99_us"]
    assert found["anonymous_mib"] > 10


def test_ranks_behind_one_cache_read_what_one_reader_reads(home: Path) -> None:
    found = ranks(home, "packed", 10)
    assert found["one"] > 100_000
    assert found["together"] == pytest.approx(found["one"], rel=0.05)
    assert found["alone"] > 5 * found["one"]


def test_the_first_layout_has_the_pages_and_codec_of_packed_tables(home: Path) -> None:
    assert [*LAYOUTS] == ["packed", "plain"]
    for layout, rows, codec in (("packed", PAGE_ROWS, "ZSTD"), ("plain", 1, "UNCOMPRESSED")):
        path = home / f"packed.s0_{layout}.parquet"
        assert pq.ParquetFile(path).metadata.row_group(0).column(1).compression == codec
        assert get_idx_matrix([path], "tokens")[0].n_rows == rows


def test_medians_decide_and_memory_is_compared_with_map_style() -> None:
    def run(cpu_s: float) -> dict[str, float]:
        return dict.fromkeys((key for key, _ in FIGURES.values()), cpu_s)

    names = [*bench.OURS, "memmap", *bench.PEERS]
    runs = {name: Runs(tuple(run(it) for it in (1.0, 4.0, 9.0))) for name in names}
    runs["hf_map"] = Runs((run(2.0),))
    about = {name: {"first_s": 1.0, "bytes_read": 1} for name in names}
    report = Report([], "")
    bench._add_scattered(report, {"plain": runs["hf_map"], "memmap": runs["plain"]})
    bench._add(report, about, about, runs, dict.fromkeys(names, 1.0))
    found = {row.name: row for row in report.rows}
    assert found["stream.packed.memory_of_hf_map"].value == 2.0
    assert found["stream.packed.memory_of_hf_map"].met is False
    assert found["stream.plain.cpu_of_memmap"].value == 1.0
    assert found["stream.plain.scattered.cpu_of_memmap"].value == 0.5
    assert found["stream.packed.memory_of_hf_streaming"].aim is None
