"""The cost index has the lengths of the table, is made again where damaged, and refused without lengths."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from blender.catalog.blends import Blends, open_blends
from blender.errors import FactoryError, MachineError, UnsupportedPageLayout
from blender.loading.cost_index import CostIndex
from blender.records import Source
from blender.rows.counts import BYTES, COUNTS
from blender.rows.snapshot_reader import SnapshotReader
from factory.lake.schemas.packing import PACKED, SEQUENCE_LENGTH
from factory.settings import Settings
from tests.blender.lakes import PROSE, open_reader, packed_rows, write_table


def reader_of(blends: Blends, table: str) -> SnapshotReader:
    return blends.open(blends.create([Source(table, 4)]).id).sources[0].reader


def test_lengths_are_those_of_the_segments(blends: Blends) -> None:
    reader = reader_of(blends, PROSE)
    facts = CostIndex(reader).of(np.arange(reader.n_rows)[::-1])
    lengths = [
        [segment["length"] for segment in row] for row in packed_rows("prose", 300)["segments"].to_pylist()
    ]
    assert facts["n_tokens"].tolist() == [sum(row) for row in reversed(lengths)]
    assert facts["squared_lengths"].tolist() == [sum(n * n for n in row) for row in reversed(lengths)]


def test_a_file_whose_rows_were_reordered_gives_the_same_index(lake: Settings, blends: Blends) -> None:
    before = CostIndex(reader_of(blends, PROSE)).of(np.arange(300))
    rows = packed_rows("prose", 300)
    write_table(lake, PROSE, rows, files=[list(range(150, 300)), list(range(149, -1, -1))])
    after = CostIndex(reader_of(open_blends(lake), PROSE)).of(np.arange(300))
    assert {name: values.tolist() for name, values in after.items()} == {
        name: values.tolist() for name, values in before.items()
    }


def test_every_flipped_bit_of_a_record_is_noticed_and_mended(blends: Blends) -> None:
    reader = reader_of(blends, PROSE)
    index = CostIndex(reader)
    whole = index.of(np.arange(reader.n_rows))
    content = index.path.read_bytes()
    for bit in range(16 * 8):
        damaged = bytearray(content)
        damaged[16 * 7 + bit // 8] ^= 1 << bit % 8
        index.path.write_bytes(damaged)
        again = CostIndex(reader).of(np.array([7]))
        assert {name: int(values[0]) for name, values in again.items()} == {
            name: int(values[7]) for name, values in whole.items()
        }
        assert index.path.read_bytes() == content


def test_a_file_that_was_cut_short_is_made_again(blends: Blends) -> None:
    reader = reader_of(blends, PROSE)
    index = CostIndex(reader)
    whole = index.of(np.array([299]))
    index.path.write_bytes(index.path.read_bytes()[:-16])
    assert CostIndex(reader).of(np.array([299])) == whole


def test_a_table_without_segments_is_refused(lake: Settings, blends: Blends) -> None:
    write_table(lake, "packed.bare", packed_rows("bare", 8).drop_columns(["segments"]))
    with pytest.raises(FactoryError, match=r"packed.bare at snapshot \d+ has no column `segments`"):
        CostIndex(reader_of(blends, "packed.bare"))


def test_a_file_without_an_offset_index_is_refused(lake: Settings, blends: Blends) -> None:
    # PyIceberg writes no offset index, without which a page of many can only be found by reading them all.
    n_segments = 400_000
    lengths = np.random.default_rng(1).integers(1, 1 << 20, n_segments)
    segments = pa.StructArray.from_arrays(
        [pa.array([""] * n_segments), pa.array(np.zeros(n_segments, dtype=np.int64)), pa.array(lengths)],
        fields=list(PACKED.columns.field("segments").type.value_type),
    )
    rows = packed_rows("long", 8)
    offsets = pa.array(np.arange(9, dtype=np.int32) * (n_segments // 8))
    lists = pa.ListArray.from_arrays(offsets, segments).cast(PACKED.columns.field("segments").type)
    place = rows.schema.get_field_index("segments")
    write_table(lake, "packed.long", rows.set_column(place, PACKED.columns.field("segments"), lists))
    with pytest.raises(UnsupportedPageLayout, match=r"packed.long .*offset index.*rewrite_data_files"):
        CostIndex(reader_of(blends, "packed.long"))


@pytest.mark.parametrize("obstacle", ["folder", "dangling link"])
def test_an_obstacle_at_the_path_of_the_index_is_named(blends: Blends, obstacle: str) -> None:
    reader = reader_of(blends, PROSE)
    path = CostIndex(reader).path
    path.unlink()
    if obstacle == "folder":
        path.mkdir()
    else:
        path.symlink_to("/nowhere/at/all")
    with pytest.raises(
        MachineError, match=rf"^The cost index {path} cannot be written .*set FACTORY_HOME to a"
    ) as refusal:
        CostIndex(reader)
    assert isinstance(refusal.value.__cause__, OSError)


@pytest.mark.parametrize("number", [errno.EROFS, errno.EFBIG, errno.EACCES])
def test_a_disk_that_refuses_the_index_is_named(
    blends: Blends, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    reader = reader_of(blends, PROSE)
    path = CostIndex(reader).path
    path.unlink()

    def refuse(_: int) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(os, "fsync", refuse)
    with pytest.raises(MachineError, match=os.strerror(number)) as refusal:
        CostIndex(reader)
    assert refusal.value.exit_code == 3
    assert sorted(path.parent.glob(".*lengths*")) == []


def test_what_killed_processes_left_is_dropped_when_an_index_is_made(blends: Blends) -> None:
    reader = reader_of(blends, PROSE)
    path = CostIndex(reader).path
    path.unlink()
    program = (
        "import os, sys; from pathlib import Path; from factory.atomic_file import replacing\n"
        "with replacing(Path(sys.argv[1])) as temporary:\n"
        "    temporary.write_bytes(bytes(16)); os._exit(9)"
    )
    assert subprocess.run([sys.executable, "-c", program, str(path)], check=False).returncode == 9
    own = Path(path.parent / "kept.txt")
    own.write_text("not a temporary file")
    assert list(path.parent.glob(".*lengths*"))
    CostIndex(reader)
    assert list(path.parent.glob(".*lengths*")) == []
    assert own.exists()


def test_an_index_is_made_without_a_token(lake: Settings) -> None:
    tokens = np.random.default_rng(0).integers(0, 1 << 16, (64, 4_096)).astype("<u2")
    rows = [
        {
            "ordinal": ordinal,
            "tokens": row.tobytes(),
            "n_tokens": len(row),
            "segments": [{"doc_id": f"{ordinal}", "doc_offset": 0, "length": len(row)}],
            **dict.fromkeys(("append", "shard", "chunk"), 0),
        }
        for ordinal, row in enumerate(tokens)
    ]
    table = pa.Table.from_pylist(rows, schema=PACKED.columns)
    write_table(lake, "packed.long", table, properties={SEQUENCE_LENGTH: "4096"})
    reader = open_reader(lake, "packed.long")
    before = COUNTS.sums().get((BYTES, reader.table), 0)
    index = CostIndex(reader)
    assert index.of(np.arange(64))["n_tokens"].tolist() == [4_096] * 64
    assert COUNTS.sums().get((BYTES, reader.table), 0) - before < tokens.nbytes / 50
