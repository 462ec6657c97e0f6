"""Hostile inputs are read in bounded memory, measured in a process of its own."""

from __future__ import annotations

import gzip
import io
import json
import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest
import zstandard

pytestmark = pytest.mark.process

MIB = 1 << 20
# The longest document is held as bytes, as text and as Arrow, of 32 MiB each, in addition to a batch.
MOST_BYTES = 320 * MIB

READER = """
import json, os, pickle, sys
import pyarrow as pa
from spark_udfs.ingest.place import LocalFiles
from spark_udfs.ingest.work import WORK, read_work
from spark_udfs.ingest.records import Fields

def held(name):
    fields = dict(line.split(":", 1) for line in open("/proc/self/status"))
    return int(fields[name].split()[0]) * 1024

format, folder, name = sys.argv[1:]
place = pickle.dumps(LocalFiles.at(folder))
item = {"format": format, "source": "s", "place": place, "names": [os.fsencode(name)]}
before, outcome, n_bytes = held("VmRSS"), [], 0
for batch in read_work([pa.RecordBatch.from_pylist([item], schema=WORK)], Fields()):
    outcome += [row or "document" for row in batch["reason"].to_pylist()]
    n_bytes += sum(batch["n_bytes"].to_pylist())
print(json.dumps({"outcome": outcome, "peak": held("VmHWM") - before, "n_bytes": n_bytes}))
"""


def long_line(path: Path) -> None:
    """A record, a line of 200 MB, a record."""
    with path.open("wb") as file:
        file.write(b'{"text": "before"}\n{"text": "')
        for _ in range(200):
            file.write(b"x" * 1_000_000)
        file.write(b'"}\n{"text": "after"}\n')


def gzip_bomb(path: Path) -> None:
    """A record, then 300 MiB of one letter in less than a MiB."""
    with gzip.open(path, "wb", compresslevel=9) as file:
        file.write(b'{"text": "before"}\n')
        for _ in range(300):
            file.write(b"a" * MIB)


def zstd_bomb(path: Path) -> None:
    """The same in 60 KB."""
    with path.open("wb") as file, zstandard.ZstdCompressor().stream_writer(file) as packed:
        packed.write(b'{"text": "before"}\n')
        for _ in range(300):
            packed.write(b"a" * MIB)


def zip_bomb(path: Path) -> None:
    """Twelve members of 31 MiB each, in a file of 400 KB."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        for number in range(12):
            archive.writestr(f"{number}.txt", b"a" * (31 * MIB))


def tar_bomb(path: Path) -> None:
    """The same as a compressed tar."""
    with tarfile.open(path, "w:gz", compresslevel=9) as archive:
        for number in range(12):
            info = tarfile.TarInfo(f"{number}.txt")
            info.size = 31 * MIB
            archive.addfile(info, io.BytesIO(b"a" * info.size))


@pytest.mark.invariant(
    "Hostile inputs (bombs, endless lines) are read in bounded memory and time; all bounds are in "
    "`spark_udfs/ingest/bounds.py`."
)
@pytest.mark.parametrize(
    "format, name, make, outcome",
    [
        ("jsonl", "a.jsonl", long_line, ["document", "too_long", "document"]),
        ("jsonl", "a.jsonl.gz", gzip_bomb, ["document", "bomb"]),
        ("jsonl", "a.jsonl.zst", zstd_bomb, ["document", "bomb"]),
        ("archive", "a.zip", zip_bomb, ["document"] * 8 + ["bomb"]),
        ("archive", "a.tar.gz", tar_bomb, ["document"] * 8 + ["bomb"]),
    ],
)
def test_a_reader_stays_within_its_bound(
    tmp_path: Path, format: str, name: str, make: Callable[[Path], None], outcome: list[str]
) -> None:
    make(tmp_path / name)
    command = [sys.executable, "-c", READER, format, str(tmp_path), name]
    found = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    assert found["outcome"] == outcome
    assert found["peak"] < MOST_BYTES
