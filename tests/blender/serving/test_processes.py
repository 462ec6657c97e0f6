"""A Blender of several processes on one port, as its operator sees it."""

from __future__ import annotations

import ctypes
import hashlib
import os
import signal
import subprocess
import sys
import urllib.request
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path

import grpc
import psutil
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc

from blender import Batch, BlenderClient, Source
from blender.proto.blender.v1 import blender_pb2 as pb
from blender.wire.stubs import stub
from tests.blender.lakes import CODE, Server, make_lake, serving
from tests.blender.programs import eventually
from tests.ports import free_ports

pytestmark = pytest.mark.process

SOURCES = [Source(CODE, 6, oversample=True, shuffle="row")]


def scrape(port: int) -> dict[str, float]:
    """The samples of a scrape, by name with labels; zero for one that is not there yet."""
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=20) as answer:
        lines = answer.read().decode().splitlines()
    samples = (line.rsplit(" ", 1) for line in lines if line[0] != "#")
    return defaultdict(float, {name: float(value) for name, value in samples})


def digest(batches: Iterable[Batch]) -> str:
    """A hash of all rows in their order."""
    sums = hashlib.blake2b(digest_size=16)
    for batch in batches:
        for values in (batch.tokens, batch.ordinal, batch.epoch):
            sums.update(values.tobytes())
    return sums.hexdigest()


def channel_of_its_own(address: str) -> grpc.Channel:
    """A connection that no other channel of this process shares."""
    return grpc.insecure_channel(address, options=[("grpc.use_local_subchannel_pool", 1)])


def takes_calls(address: str) -> bool:
    """Whether somebody answers new calls on an address."""
    with channel_of_its_own(address) as channel:
        try:
            health_pb2_grpc.HealthStub(channel).Check(health_pb2.HealthCheckRequest(), timeout=20)
        except grpc.RpcError:
            return False
        return True


def listeners(server: Server) -> list[psutil.Process]:
    """The processes that answer on the server's port."""
    return psutil.Process(server.process.pid).children()


@pytest.mark.invariant("All processes of a Blender give the same answers, and none outlives its parent.")
def test_processes_share_a_port_and_a_dead_one_comes_back(tmp_path: Path) -> None:
    make_lake(tmp_path, code=40)
    (metrics,) = free_ports(1)
    with serving(tmp_path, "--processes", "2", "--metrics-port", str(metrics)) as server:
        assert len(listeners(server)) == 2
        with BlenderClient(server.address) as client:
            blend = client.create(SOURCES, seed=7)
            expected = [batch.arrow for batch in client.fetch(blend.id, steps=50)]
        request = pb.FetchRequest(blend=blend.id, steps=50)
        payloads = set()
        for _ in range(20):  # the chance that the kernel gives all to one process is 2^-19
            with channel_of_its_own(server.address) as channel:
                messages = list(stub(channel, "BlendData").Fetch(request))
                payloads.add(b"".join(message.payload for message in messages))
        assert len(payloads) == 1
        assert eventually(lambda: scrape(metrics)['blender_calls_total{method="Fetch",status="OK"}'] == 21)
        seen = scrape(metrics)
        assert seen["blender_rows_total"] == 21 * 50 * 6
        assert seen["blender_processes"] == 2
        assert seen['blender_wait_seconds_total{table="packed.code"}'] > 0

        killed = listeners(server)[0]
        killed.kill()
        assert eventually(lambda: len(listeners(server)) == 2 and killed not in listeners(server))
        assert eventually(lambda: scrape(metrics)["blender_processes"] == 2)
        assert scrape(metrics)["blender_rows_total"] >= seen["blender_rows_total"]
        with BlenderClient(server.address, patience_s=60) as client:
            assert [batch.arrow for batch in client.fetch(blend.id, steps=50)] == expected

        children = listeners(server)
        server.process.send_signal(signal.SIGTERM)
        assert server.process.wait(timeout=60) == 0
        assert not [child for child in children if child.is_running()]
        assert server.process.stdout.read() == ""  # the address was its one line of output


def test_one_sentence_reports_an_error_however_many_processes(tmp_path: Path) -> None:
    make_lake(tmp_path, code=4)
    arguments = (
        "serve --host 0.0.0.0 --port 0 --processes 2 --workers 4 --workers-per-client 2 --max-steps 9 "
        "--wait-s 5 --memory-mib 64 --grace-s 1 --metrics-port 0 --metrics-host 127.0.0.1"
    )
    ended = subprocess.run(
        [sys.executable, "-m", "factory.cli.main", *arguments.split()],
        env={**os.environ, "FACTORY_HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert ended.returncode == 2
    (line,) = ended.stderr.splitlines()
    assert "plaintext on 0.0.0.0, which other machines can reach" in line


@pytest.mark.parametrize("processes", [pytest.param(1, marks=pytest.mark.slow), 2])
def test_a_second_sigterm_ends_at_once(tmp_path: Path, processes: int) -> None:
    make_lake(tmp_path, code=40)
    with (
        serving(tmp_path, "--processes", str(processes), "--grace-s", "600") as server,
        BlenderClient(server.address, patience_s=0) as client,
    ):
        stream = client.fetch(client.create([Source(CODE, 6000, oversample=True)]).id)
        next(stream)
        children = listeners(server)
        server.process.send_signal(signal.SIGTERM)
        assert eventually(lambda: not takes_calls(server.address))  # two signals that nobody saw yet are one
        with pytest.raises(subprocess.TimeoutExpired):
            server.process.wait(timeout=0.5)
        server.process.send_signal(signal.SIGTERM)
        assert server.process.wait(timeout=60) == 128 + signal.SIGTERM
        assert psutil.wait_procs(children, timeout=60)[1] == []
        stream.close()


@pytest.mark.skipif(sys.platform != "linux", reason="a thread of another process is signalled by tgkill")
def test_signals_that_another_thread_receives_count(tmp_path: Path) -> None:
    make_lake(tmp_path, code=40)
    with (
        serving(tmp_path, "--grace-s", "600") as server,
        BlenderClient(server.address, patience_s=0) as client,
    ):
        stream = client.fetch(client.create([Source(CODE, 6000, oversample=True)]).id)
        next(stream)
        pid = server.process.pid
        other = next(thread.id for thread in psutil.Process(pid).threads() if thread.id != pid)
        assert ctypes.CDLL(None).tgkill(pid, other, signal.SIGTERM) == 0
        assert eventually(lambda: not takes_calls(server.address))
        assert ctypes.CDLL(None).tgkill(pid, other, signal.SIGTERM) == 0
        assert server.process.wait(timeout=60) == 128 + signal.SIGTERM
        stream.close()


@pytest.mark.invariant("All processes of a Blender give the same answers, and none outlives its parent.")
@pytest.mark.parametrize("kills", [[200], pytest.param([200, 700], marks=pytest.mark.slow)])
def test_many_readers_of_a_repeatedly_killed_server_get_each_row_once(
    tmp_path: Path, kills: list[int]
) -> None:
    make_lake(tmp_path, code=40)
    steps, rows = kills[-1] + 500, 300  # the server is a few MiB ahead, and 500 steps have 8
    program = (
        "import hashlib, sys; from blender.trainer.client import BlenderClient\n"
        "sums, seen = hashlib.blake2b(digest_size=16), []\n"
        "with BlenderClient(sys.argv[1], patience_s=120, prefetch_bytes=1) as client:\n"
        "    for batch in client.fetch(sys.argv[2], 0, int(sys.argv[3])):\n"
        "        seen.append(batch.offset); sums.update(batch.tokens.tobytes())\n"
        "        sums.update(batch.ordinal.tobytes()); sums.update(batch.epoch.tobytes())\n"
        "        if batch.offset in (200, 700): print(batch.offset, flush=True)\n"
        "print(seen == list(range(int(sys.argv[3]))), sums.hexdigest())\n"
    )
    with serving(tmp_path, "--processes", "2") as server, BlenderClient(server.address) as client:
        blend = client.create([Source(CODE, rows, oversample=True, shuffle="row")], seed=7)
        expected = digest(client.fetch(blend.id, 0, steps))
        command = [sys.executable, "-c", program, server.address, blend.id, str(steps)]
        readers = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(2)]
        outputs = [reader.stdout for reader in readers if reader.stdout is not None]
        for step in kills:
            assert outputs[0].readline() == f"{step}\n"
            killed = set(listeners(server))
            for child in killed:
                child.kill()
            assert eventually(lambda killed=killed: len(set(listeners(server)) - killed) == 2)
        printed = {output.read().splitlines()[-1] for output in outputs}
        for reader in readers:
            reader.communicate()
        children = listeners(server)
        server.kill()
        assert psutil.wait_procs(children, timeout=60)[1] == []  # no process outlives its parent
    assert printed == {f"True {expected}"}
