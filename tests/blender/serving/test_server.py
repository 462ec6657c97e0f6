"""A Blender as a process: it starts, stops and is killed, and no row changes."""

from __future__ import annotations

import hashlib
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from blender import Batch, BlenderClient, Source
from blender.errors import BlenderUnavailable, CorruptPage, InvalidRequest
from blender.wire import keepalive
from factory.errors import FactoryError, MachineError
from factory.settings import Settings
from tests.blender.lakes import CODE, ROOT, Server, make_lake, packed_rows, serving, write_table
from tests.blender.programs import run
from tests.ports import free_ports

pytestmark = pytest.mark.process

# A Blender whose pings, and the answers to them, come five times as often as by default.
FREQUENT_PINGS = """
from blender.wire import keepalive
keepalive.SERVER_OPTIONS[:] = [
    (name, value // 5 if name.endswith("_ms") else value) for name, value in keepalive.SERVER_OPTIONS
]
from blender.serving.serve import run
run()
"""
SOURCES = [Source("packed.code", 6, oversample=True, shuffle="row"), Source("packed.prose", 2)]


@pytest.fixture(scope="module")
def server(shared_lake: Settings) -> Iterator[Server]:
    """A server of `shared_lake`, for the tests that neither stop nor kill it."""
    with serving(shared_lake.home) as running:
        yield running


def digest(batches: list[Batch]) -> str:
    """Every byte and every number of the batches, in order."""
    content = hashlib.blake2b(digest_size=16)
    for batch in batches:
        content.update(repr(batch.arrow.to_pylist()).encode())
        content.update(batch.tokens.tobytes())
    return content.hexdigest()


@pytest.mark.invariant("A restart, another layout of files or a kill changes no row.")
def test_a_restarted_server_and_another_layout_give_the_same_batches(
    shared_lake: Settings, server: Server, tmp_path: Path
) -> None:
    settings = Settings(home=tmp_path, cache=tmp_path)
    dealt = np.random.default_rng(1).permutation(300).reshape(3, 100).tolist()
    write_table(settings, "packed.prose", packed_rows("prose", 300), files=dealt, row_group=16)
    write_table(settings, "packed.code", packed_rows("code", 40), row_group=3)
    seen = set()
    with serving(shared_lake.home) as later, serving(tmp_path) as other:
        for address in (server.address, later.address, other.address):
            with BlenderClient(address) as client:
                blend = client.create(SOURCES, seed=7)
                seen.add((blend.id, digest(list(client.fetch(blend.id)))))
    assert len(seen) == 1


@pytest.mark.invariant("A restart, another layout of files or a kill changes no row.")
def test_a_reader_resumes_after_kill_9_without_losing_or_repeating_a_row(tmp_path: Path) -> None:
    make_lake(tmp_path, code=40)
    (port,) = free_ports(1)  # to be taken a second time: one that the system gave may be another's by then
    with serving(tmp_path, port=port) as server, BlenderClient(server.address, patience_s=60) as client:
        blend = client.create([Source("packed.code", 200, oversample=True, shuffle="row")], seed=7)
        expected = digest(list(client.fetch(blend.id, 0, steps=900)))
        reading = client.fetch(blend.id, 0, steps=900)
        got = [next(reading) for _ in range(5)]
        server.kill()
        with serving(tmp_path, port=port):
            got += list(reading)
    assert [batch.offset for batch in got] == list(range(900))
    assert digest(got) == expected


def test_a_running_server_reads_a_file_again_once_it_is_restored(
    shared_lake: Settings, server: Server, tmp_path: Path
) -> None:
    write_table(shared_lake, "packed.fragile", packed_rows("fragile", 40))
    (file,) = (shared_lake.files.warehouse / "packed" / "fragile").rglob("*.parquet")
    whole = file.read_bytes()
    with BlenderClient(server.address, patience_s=0) as client:
        blend = client.create([Source("packed.fragile", 20, oversample=True, shuffle="row")], seed=7).id
        file.write_bytes(bytes(255 - byte for byte in whole[:-1000]) + whole[-1000:])
        with pytest.raises(CorruptPage, match="Restore or rewrite the file"):
            list(client.fetch(blend, 0, steps=2))
        backup = tmp_path / "backup"
        backup.write_bytes(whole)
        backup.rename(file)
        assert len(list(client.fetch(blend, 0, steps=2))) == 2


def test_sigterm_finishes_the_stream_under_way_and_exits_0(tmp_path: Path) -> None:
    make_lake(tmp_path, code=40)
    with (
        serving(tmp_path, "--grace-s", "300") as server,
        BlenderClient(server.address, patience_s=0) as client,
    ):
        blend = client.create([Source("packed.code", 2000, oversample=True)])
        reading = client.fetch(blend.id, 0, steps=100)
        got = [next(reading)]
        server.process.send_signal(signal.SIGTERM)
        time.sleep(0.2)
        got += list(reading)
        assert len(got) == 100
        assert server.process.wait(timeout=60) == 0
        assert server.process.stdout.read() == ""  # the address was its one line of output


@pytest.mark.invariant("A client detects a silent server, even in a long wait for rows.")
def test_a_silent_server_is_detected_while_a_client_waits_for_rows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_lake(tmp_path, live=8)
    monkeypatch.setattr(keepalive, "SHORTEST_SILENCE_S", 1)
    with serving(tmp_path, program=FREQUENT_PINGS) as server:
        client = BlenderClient(server.address, timeout_s=300, patience_s=0, silence_s=6, prefetch_bytes=1)
        blend = client.create([Source("packed.live", 4, live=True)])
        reading = client.fetch(blend.id, 0, steps=3)
        assert [next(reading).offset, next(reading).offset] == [0, 1]
        ended: list[BaseException] = []
        waiting = threading.Thread(target=lambda: ended.append(failure(reading)))
        waiting.start()
        waiting.join(13)  # three pings; a server that permits one in five minutes ends at the third
        assert waiting.is_alive()
        os.kill(server.process.pid, signal.SIGSTOP)
        waiting.join(240)
        os.kill(server.process.pid, signal.SIGCONT)
        waiting.join()
        client.close()
    assert isinstance(ended[0], BlenderUnavailable)
    assert "ping timeout" in str(ended[0])


def failure(reading: Iterator[Batch]) -> BaseException:
    """The error that ends the next step of a fetch."""
    with pytest.raises(FactoryError) as raised:
        next(reading)
    return raised.value


def test_a_silence_that_servers_do_not_permit_is_refused() -> None:
    with pytest.raises(InvalidRequest, match=r"`silence_s` is 2, .* Use at least 10 s\."):
        BlenderClient("127.0.0.1:1", silence_s=2)


def test_the_server_says_its_address_its_lake_its_blends_and_how_to_stop(tmp_path: Path) -> None:
    make_lake(tmp_path, code=4)
    file = tmp_path / "address"
    for blends in ("no blend yet", "1 blend on record (`factory blend list --retired`)"):
        options = ("--grace-s", "2", "--address-file", str(file))
        with serving(tmp_path, *options) as server, BlenderClient(server.address) as client:
            assert file.read_text().strip() == server.address
            client.create([Source("packed.code", 1)])
            server.process.send_signal(signal.SIGTERM)
            _, said = server.process.communicate(timeout=60)
        assert said.splitlines() == [
            f"Blender serves the lake {tmp_path} at {server.address}: {blends}.",
            "Ctrl-C or SIGTERM stops it; running calls then have 2 s to end.",
        ]


@pytest.mark.parametrize(
    "arguments, code, sentence",
    [
        (["--port", "{taken}"], MachineError.exit_code, "cannot be bound (address already in use)."),
        (["--host", "0.0.0.0"], 2, "which other machines can reach."),
    ],
)
def test_a_server_that_cannot_start_says_why_in_one_sentence(
    shared_lake: Settings, server: Server, arguments: list[str], code: int, sentence: str
) -> None:
    given = [argument.format(taken=server.port) for argument in arguments]
    ended = subprocess.run(
        [sys.executable, "-m", "blender.serving", *given],
        cwd=ROOT,
        env={"FACTORY_HOME": str(shared_lake.home)},
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert ended.returncode == code
    assert ended.stdout == ""
    assert sentence in ended.stderr
    assert "Traceback" not in ended.stderr
    assert len(ended.stderr.splitlines()) == 1


def test_the_first_batch_waits_for_no_import_of_pandas(server: Server) -> None:
    program = (
        "import sys; from blender.trainer.client import BlenderClient; "
        "batch = next(BlenderClient(sys.argv[1]).fetch(sys.argv[2])); "
        "batch.tokens, batch.position_ids, batch.cu_seqlens, batch.source, batch.ordinal, batch.epoch; "
        "print(len(batch), 'pandas' in sys.modules)"
    )
    with BlenderClient(server.address) as client:
        blend = client.create([Source(CODE, 3)])
        assert run(program, server.address, blend.id) == "3 False\n"
