"""The example for Node, which uses the proto file and none of our code, reads the rows of our client."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from blender import BlenderClient, Source
from factory.lake.schemas.packing import TOKEN_BYTES
from factory.settings import Settings
from tests.blender.lakes import ROOT, Server, packed_rows, serving, write_table

EXAMPLE = Path("examples/node")

pytestmark = pytest.mark.process


@pytest.fixture(scope="module", autouse=True)
def packages() -> None:
    """The packages of the example, where `make test` has not installed them."""
    subprocess.run(["make", "-s", EXAMPLE / "node_modules" / ".package-lock.json"], cwd=ROOT, check=True)


@pytest.fixture(scope="module")
def server(shared_lake: Settings) -> Iterator[Server]:
    """A server of `shared_lake`."""
    with serving(shared_lake.home) as running:
        yield running


@pytest.mark.invariant(
    "A blend read in the trainer's process has the bytes that a server sends, and a client generated from"
    " the proto file alone receives the same bytes."
)
@pytest.mark.parametrize("width", [2, 4])
def test_the_example_reads_the_rows_of_our_client(width: int, shared_lake: Settings, server: Server) -> None:
    rows = packed_rows("code", 12)
    ids = [256**width // 4 * 3 + np.arange(n) for n in rows["n_tokens"].to_pylist()]  # above a signed one's
    encoded = pa.array([column.astype(f"<u{width}").tobytes() for column in ids])
    column = rows.schema.names.index("tokens")
    table = f"packed.bytes_{width}"
    write_table(
        shared_lake,
        table,
        rows.set_column(column, rows.schema.field(column), encoded.cast(rows.schema.field(column).type)),
        properties={TOKEN_BYTES: str(width)},
    )
    with BlenderClient(server.address) as client:
        blend = client.create([Source(table, 4, shuffle="row")], seed=3).id
        command = ["node", EXAMPLE / "fetch.mjs", server.address, blend, "1", "2"]
        read = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120)
        assert read.returncode == 0, read.stderr
        expected = [
            (batch.offset, int(source), int(ordinal), ids[ordinal].tolist())
            for batch in client.fetch(blend, offset=1, steps=2)
            for source, ordinal in zip(batch.source, batch.ordinal, strict=True)
        ]
    found = [json.loads(line) for line in read.stdout.splitlines()]
    assert [(row["offset"], row["source"], row["ordinal"], row["tokens"]) for row in found] == expected
    assert len(expected) == 8


@pytest.mark.parametrize(
    "address, status, sentence",
    [
        ("http://127.0.0.1:1", 2, "Write ADDRESS as host:50051, without http://."),
        ("127.0.0.1", 2, "Write ADDRESS as host:50051"),
        ("127.0.0.1:1", 1, "Blender at 127.0.0.1:1: No connection established."),
        (None, 1, "`4f1c`. An id has 32 hexadecimal digits"),
    ],
)
def test_what_goes_wrong_is_one_line(address: str | None, status: int, sentence: str, server: Server) -> None:
    command = ["node", EXAMPLE / "fetch.mjs", address or server.address, "4f1c", "0", "1"]
    read = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120)
    assert read.returncode == status
    assert sentence in read.stderr
    assert len(read.stderr.splitlines()) == 1
    assert read.stdout == ""


def test_the_packages_name_no_registry() -> None:
    assert '"resolved"' not in (ROOT / EXAMPLE / "package-lock.json").read_text()
