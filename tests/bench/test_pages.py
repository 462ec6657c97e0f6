"""The bench of pages: its readers give the same rows and the right figures."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench.harness import Report, Runs
from bench.pages import measure as bench
from bench.pages.data import LAYOUTS, ROW_BYTES, save_index, write
from bench.pages.measure import JUDGED, READER
from bench.peers import PeerFailed, answer

N = 300


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Rows in every layout of ours."""
    made = tmp_path_factory.mktemp("pages")
    write(made, N)
    for layout in LAYOUTS:
        save_index(made, layout)
    save_index(made, "plain", 10)
    return made


def read(home: Path, reader: str, state: str = "warm", times: int = 1) -> dict[str, float]:
    """What the reading program prints of 200 rows in batches of 50."""
    (found,) = answer(READER, reader, home, "50:200", 5, state, times)
    return dict(found)


def test_readers_give_the_same_rows_in_every_state_of_the_page_cache(home: Path) -> None:
    found = [
        read(home, reader, state)
        for reader in ("memmap", *JUDGED, "p8", "pyarrow")
        for state in ("warm", "scattered", "cold")
    ]
    assert len({one["digest"] for one in found}) == 1
    assert all(one["cpu_us"] > 0 and one["rows_per_s"] > 0 and one["anonymous_mib"] > 1 for one in found)


def test_a_page_of_one_row_is_asked_for_alone(home: Path) -> None:
    assert 1 < read(home, "plain")["asked"] / ROW_BYTES < 1.05
    assert read(home, "p8")["asked"] / ROW_BYTES > 3
    assert read(home, "plain", times=10)["digest"] == read(home, "plain")["digest"]


def test_every_cold_reading_of_a_mapped_file_comes_from_the_disk(home: Path) -> None:
    if not read(home, "plain", "cold")["disk"]:
        pytest.skip("These files lie on no disk.")
    found = answer(READER, "memmap", home, "50:200,50:200", 5, "cold", 1)
    assert len(found) == 2
    assert all(one["disk"] > 0 for one in found)


def test_a_reader_that_does_not_exist_is_an_error(home: Path) -> None:
    with pytest.raises(PeerFailed, match="nobody"):
        read(home, "nobody")


def test_best_and_median_are_of_all_runs() -> None:
    runs = Runs(({"cpu_us": 3}, {"cpu_us": 1}, {"cpu_us": 7}))
    assert (runs.best("cpu_us"), runs.median("cpu_us")) == (1, 3)


def test_both_layouts_are_judged_by_medians_against_map_style() -> None:
    runs = Runs(tuple({"cpu_us": it, "asked": it, "anonymous_mib": it} for it in (1.0, 8.0, 9.0)))
    cells = {(reader, 64): runs for reader in (*bench.OURS, *bench.PEERS)}
    cells["hf", 64] = Runs(({"cpu_us": 1.0, "asked": 1.0, "anonymous_mib": 4.0},))
    report = Report([], "")
    bench._add_warm(report, cells)
    bench._add_scattered(report, cells)
    bench._add_memory(report, cells, {"packed": 8.0, "plain": 16.0})
    found = {row.name: (row.value, row.met) for row in report.rows}
    for layout in JUDGED:
        assert found[f"pages.{layout}.b64.of_memmap"] == (1.0, True)
        assert found[f"pages.{layout}.b64.scattered.of_memmap"] == (1.0, True)
        assert found[f"pages.{layout}.anonymous_of_hf"] == (2.0, False)
    assert found["pages.packed.anonymous_at_tenfold"] == (1.0, True)
    assert found["pages.plain.anonymous_at_tenfold"] == (2.0, False)
