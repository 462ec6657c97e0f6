"""The bench of streams: its readers give whole epochs, go on from states, and count what ranks read."""

from __future__ import annotations

import time
from pathlib import Path

import numpy as np
import pytest

from bench.stream.data import write
from bench.stream.ours import ranks
from bench.stream.reader import READERS, measured
from bench.stream.rows import BATCH, SOURCES, STEP_ROWS, array, n_rows_of, total

ROWS = 1_000
OURS = ("memmap", "plain", "zstd")


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
    found = ranks(home, "zstd", 10)
    assert found["one"] > 100_000
    assert found["together"] == pytest.approx(found["one"], rel=0.05)
    assert found["alone"] > 5 * found["one"]
