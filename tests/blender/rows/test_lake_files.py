"""Files of a store that does not answer, and how many local ones are open."""

from __future__ import annotations

import socket
import time
from pathlib import Path

import numpy as np
import psutil
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from blender.call_context import CallContext, current_context, use_context
from blender.errors import CallCancelled, Stalled
from blender.parquet.matrix import get_idx_matrix
from blender.rows.lake_files import LakeFiles
from tests.blender.lakes import store_settings


@pytest.mark.invariant("No wait outlasts its call, and a call that times out names the cause of the wait.")
def test_a_file_that_never_comes_is_named_at_the_deadline(tmp_path: Path) -> None:
    (tmp_path / "here").write_bytes(b"0123456789")
    with socket.socket() as silent:  # a store that takes connections and says nothing
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        files = LakeFiles(store_settings(tmp_path, silent.getsockname()[1]))
        here, away = str(tmp_path / "here"), "s3://lake/warehouse/packed/code/data/1.parquet"
        began = time.monotonic()
        with (
            use_context(CallContext(timeout_s=0.3)),
            pytest.raises(Stalled, match=r"data/1\.parquet did not come"),
        ):
            files.fetch([(here, [(2, 5)]), (away, [(0, 8)])])
        gone = CallContext()
        gone.cancel(CallCancelled("gone"))
        with use_context(gone), pytest.raises(CallCancelled):
            files.fetch([(away, [(0, 8)])])
        assert time.monotonic() - began < 15  # the store itself is given up after 20 s
        assert files.fetch([(here, [(2, 5), (0, 1)])]) == [[b"234", b"0"]]


def test_who_waits_is_known_inside_alone() -> None:
    outer, inner = CallContext(), CallContext()
    with use_context(outer):
        with use_context(inner):
            assert current_context() is inner
        assert current_context() is outer
    assert current_context() not in (outer, inner)


def test_indexes_share_one_budget_of_open_files(tmp_path: Path) -> None:
    path, process = tmp_path / "rows.parquet", psutil.Process()
    pq.write_table(pa.table({"tokens": pa.array([b"a", b"b"])}), path)

    def open_handles() -> int:
        return sum(file.path == str(path) for file in process.open_files())

    indexes = [get_idx_matrix([path], "tokens") for _ in range(700)]
    assert {index.read_rows(np.array([1]))[0].as_py() for index in indexes} == {b"b"}
    assert 300 < open_handles() <= 512
    assert {index.read_rows(np.array([0]))[0].as_py() for index in indexes} == {b"a"}
    del indexes
    assert open_handles() == 0
