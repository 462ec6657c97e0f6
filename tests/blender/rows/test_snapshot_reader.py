"""Rows by ordinal: the same from any layout of the files, and refused where ordinals are not whole."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from blender.errors import InvalidBlend, SourceGone
from blender.rows.index.index_files import numbers_of
from blender.rows.lake_pages import LakePages
from blender.rows.snapshot_reader import SnapshotReader
from factory.settings import Settings
from tests.blender.lakes import CODE, load_table, open_reader, packed_rows, write_table

ROWS = 100
EVEN, ODD = list(range(0, ROWS, 2)), list(range(1, ROWS, 2))
LAYOUTS = {
    "one file": None,
    "three files, the last first": [range(60, 100), range(30), range(30, 60)],
    "ordinals dealt in turn to two files": [EVEN, ODD],
    "ordinals backwards": [range(ROWS - 1, -1, -1)],
    "shuffled over four files": np.random.default_rng(3).permutation(ROWS).reshape(4, 25).tolist(),
}


def lake_at(home: Path) -> Settings:
    return Settings(home=home, cache=home / "cache")


def reader(home: Path, rows: pa.Table, files: object = None, budget: int = 1 << 20) -> SnapshotReader:
    """A reader of `rows` written in `files`."""
    write_table(lake_at(home), CODE, rows, files=files, row_group=7)
    return open_reader(lake_at(home), memory_bytes=budget)


def read(one: SnapshotReader, ordinals: list[int], columns: tuple[str, ...] = ("tokens",)) -> list[dict]:
    """Rows by ordinal."""
    return one.read(np.array(ordinals, dtype=np.int64), columns).to_pylist()


@pytest.mark.parametrize("layout", LAYOUTS)
def test_an_ordinal_is_the_same_row_in_every_layout(layout: str, tmp_path: Path) -> None:
    rows = packed_rows("code", ROWS)
    one = reader(tmp_path, rows, LAYOUTS[layout])
    asked = [0, 99, 7, 50, 7, 49, 6, 13, 14]
    got = read(one, asked, ("tokens", "segments", "chunk"))
    assert one.n_rows == ROWS
    for ordinal, row in zip(asked, got, strict=True):
        written = rows.slice(ordinal, 1).to_pylist()[0]
        assert row["tokens"] == written["tokens"]
        assert row["segments"] == written["segments"]
        assert row["chunk"] == written["chunk"]
        assert row["segment_lengths"] == [segment["length"] for segment in written["segments"]]


@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_small_table_is_checked_as_a_whole_in_every_layout(layout: str, tmp_path: Path) -> None:
    reader(tmp_path, packed_rows("code", ROWS), LAYOUTS[layout]).prepare(("tokens",))
    (kept,) = (tmp_path / "page-index" / "snapshots").glob("*.ordinals")
    runs = numbers_of(kept.read_bytes())
    assert runs is not None
    assert runs[:, 3].all()
    assert sorted(ordinal for first, n, *_ in runs.tolist() for ordinal in range(first, first + n)) == list(
        range(ROWS)
    )
    again = open_reader(lake_at(tmp_path))
    ordinals = np.random.default_rng(1).permutation(ROWS).tolist()
    assert [row["n_tokens"] for row in read(again, ordinals, ("n_tokens",))] == [
        5 + (1 if ordinal % 4 == 3 else 3) for ordinal in ordinals
    ]


def test_no_ordinals_are_no_rows_of_the_same_columns(tmp_path: Path) -> None:
    one = reader(tmp_path, packed_rows("code", ROWS))
    columns = ("tokens", "segments", "chunk")
    none = one.read(np.array([], dtype=np.int64), columns)
    assert (none.num_rows, none.schema) == (0, one.read(np.array([5]), columns).schema)


def test_a_budget_too_small_for_a_row_group_reads_the_same(tmp_path: Path) -> None:
    rows = packed_rows("code", ROWS)
    wide, narrow = reader(tmp_path / "a", rows), reader(tmp_path / "b", rows, budget=1)
    assert read(wide, [3, 80]) == read(narrow, [3, 80])


@pytest.mark.parametrize(
    "ordinals, sentence",
    [
        ([0, 1, 3], "ordinal 2 is missing"),
        ([1, 2, 3], "ordinal 0 is missing"),
        ([0, 1, 1, 2], "ordinal 1 is there twice"),
    ],
)
def test_ordinals_with_a_gap_or_a_copy_are_refused(
    tmp_path: Path, ordinals: list[int], sentence: str
) -> None:
    rows = packed_rows("code", 4).take(ordinals)
    with pytest.raises(InvalidBlend, match=sentence):
        reader(tmp_path, rows)


def test_a_repeated_ordinal_is_refused_when_it_is_read(tmp_path: Path) -> None:
    one = reader(tmp_path, packed_rows("code", 4).take([0, 0, 2]))
    with pytest.raises(SourceGone, match="holds an ordinal twice"):
        read(one, [0])


def test_a_table_without_ordinals_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidBlend, match="no column `ordinal`"):
        reader(tmp_path, packed_rows("code", 4).drop_columns(["ordinal"]))


def test_a_column_the_table_lacks_is_refused_with_those_it_has(tmp_path: Path) -> None:
    with pytest.raises(InvalidBlend, match=r"no column `text`\. Its columns: `ordinal`, `tokens`"):
        reader(tmp_path, packed_rows("code", 4)).fields(("text",))


def test_a_lost_file_is_named(tmp_path: Path) -> None:
    one = reader(tmp_path, packed_rows("code", 4))
    (data,) = tmp_path.rglob("*.parquet")
    data.unlink()
    with pytest.raises(SourceGone, match=data.name):
        read(one, [0])


def test_a_file_cut_short_is_named(tmp_path: Path) -> None:
    rows = packed_rows("code", 400)
    one = reader(tmp_path, rows)
    (data,) = tmp_path.rglob("*.parquet")
    data.write_bytes(data.read_bytes()[:200])
    with pytest.raises(SourceGone, match=data.name):
        read(one, [399])


def test_a_snapshot_that_has_expired_is_named(tmp_path: Path) -> None:
    reader(tmp_path, packed_rows("code", 4))
    table = load_table(lake_at(tmp_path), CODE)
    with pytest.raises(SourceGone, match="no snapshot 12345"):
        SnapshotReader.at(table, 12345, LakePages(lake_at(tmp_path), 1))


def test_tokens_keep_the_width_and_length_of_their_own_snapshot(tmp_path: Path) -> None:
    reader(tmp_path, packed_rows("code", 4))
    table = load_table(lake_at(tmp_path), CODE)
    later = packed_rows("code", 6).slice(4)
    table.append(later, snapshot_properties={"factory.token-bytes": "2", "factory.sequence-length": "8"})
    with table.transaction() as transaction:
        transaction.set_properties({"factory.token-bytes": "4", "factory.sequence-length": "16"})
    one = open_reader(lake_at(tmp_path))
    assert (one.token_bytes, one.sequence_length) == ("2", "8")


def test_a_column_added_later_is_null_in_older_files(tmp_path: Path) -> None:
    reader(tmp_path, packed_rows("code", 4))
    table = load_table(lake_at(tmp_path), CODE)
    with table.update_schema() as update:
        update.union_by_name(pa.schema([pa.field("score", pa.float64())]))
    later = packed_rows("code", 6).slice(4).append_column("score", pa.array([0.5, 0.25]))
    table.append(later, snapshot_properties={"factory.content": "later-6"})
    one = open_reader(lake_at(tmp_path))
    assert [row["score"] for row in read(one, [0, 3, 4, 5], ("score",))] == [None, None, 0.5, 0.25]
