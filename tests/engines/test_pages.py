"""Pages of files in a real S3-compatible store, read by ranges."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from obstore.store import S3Store

from blender.errors import CorruptPage, SourceGone
from blender.parquet.matrix import get_idx_matrix, open_idx_matrix, read_page, shuffle_index
from blender.parquet.page_ranges import StoreRanges
from factory.lake.files.random_access import ScatteredRows
from factory.lake.files.storage import S3_ENDPOINT, S3_KEY_ID, S3_REGION, S3_SECRET
from tests.blender.parquet_files import every_type, leaves, oracle, write
from tests.engines.processes import ObjectStore

pytestmark = pytest.mark.process

N = 400


@pytest.fixture
def store(object_store: ObjectStore, unique: str) -> S3Store:
    """A new bucket."""
    object_store.bucket(unique)
    return S3Store(
        unique,
        config={
            "endpoint": object_store.endpoint,
            "access_key_id": object_store.key_id,
            "secret_access_key": object_store.secret,
            "region": "us-east-1",
        },
        client_options={"allow_http": True},
    )


@pytest.mark.parametrize("indexed", [True, False])
def test_a_store_gives_the_pages_a_disk_gives(store: S3Store, indexed: bool, tmp_path: Path) -> None:
    paths = []
    for number in range(2):
        path = write(
            tmp_path / f"{number}.parquet",
            every_type(N, seed=number),
            write_page_index=indexed,
            data_page_version="2.0",
            compression="zstd",
        )
        store.put(path.name, path)
        paths.append(path)
    rows = np.random.default_rng(1).integers(0, 2 * N, 40)
    for leaf in leaves(paths[0]):
        for gap in (0, 1 << 20):
            ranges = StoreRanges(store, gap_bytes=gap)
            matrix = get_idx_matrix([path.name for path in paths], leaf, ranges)
            expected = pa.concat_arrays([oracle(path, leaf) for path in paths])
            assert matrix.read_rows(rows).cast(expected.type) == expected.take(pa.array(rows))
    some = shuffle_index(matrix, seed=1)[:5]
    assert [read_page(page) for page in some] == matrix.read_pages(some.numbers())


def test_a_worker_reads_rows_of_its_lakes_store(
    store: S3Store, object_store: ObjectStore, unique: str, tmp_path: Path
) -> None:
    path = write(tmp_path / "file.parquet", every_type(N))
    store.put("folder/file.parquet", path)
    storage = {
        S3_ENDPOINT: object_store.endpoint,
        S3_REGION: "us-east-1",
        S3_KEY_ID: object_store.key_id,
        S3_SECRET: object_store.secret,
    }
    rows = pa.array([7, None, 7, N - 1, 0])
    file = f"s3://{unique}/folder/file.parquet"
    files = pa.array([file if row.is_valid else None for row in rows], pa.string())
    found = ScatteredRows(storage, "string", pa.string()).read(files, rows)
    assert found == oracle(path, "string").cast(pa.string()).take(rows)


def test_a_saved_matrix_reads_its_store(store: S3Store, tmp_path: Path) -> None:
    path = write(tmp_path / "file.parquet", every_type(N))
    store.put("folder/file.parquet", path)
    get_idx_matrix(["folder/file.parquet"], "string", StoreRanges(store)).save(tmp_path / "matrix")
    opened = open_idx_matrix(tmp_path / "matrix", StoreRanges(store))
    assert opened.read_rows(range(N)) == oracle(path, "string")
    store.put("folder/file.parquet", path.read_bytes()[:2000] + bytes(200))
    with pytest.raises((CorruptPage, SourceGone), match=r"folder/file\.parquet|range"):
        opened.read_rows(range(N))
    store.delete("folder/file.parquet")
    with pytest.raises(SourceGone):
        opened.read_rows([0])
