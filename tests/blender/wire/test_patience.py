"""The one line of a client that waits for a Blender."""

from __future__ import annotations

import socket
import threading
from contextlib import ExitStack

import pytest

from blender.catalog.blends import Blends
from blender.errors import BlenderUnavailable
from blender.records import BlendRecord
from blender.serving.server import BlenderServer
from blender.serving.service import blend_services
from blender.trainer.client import BlenderClient
from blender.wire import patience
from tests.blender.lakes import ROOT
from tests.blender.programs import completed, eventually
from tests.ports import free_ports

LINE = "No Blender answers at {} yet; trying for {} s. `factory serve` starts one."


@pytest.fixture(autouse=True)
def short_notice(monkeypatch: pytest.MonkeyPatch) -> None:
    """The line comes after a fifth of a second instead of two."""
    monkeypatch.setattr(patience, "NOTICE_S", 0.2)


@pytest.fixture
def closed() -> str:
    (port,) = free_ports(1)
    return f"127.0.0.1:{port}"


def lines(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage() for record in caplog.records if record.name == "blender.client"]


def test_a_wait_of_seconds_is_said_once(closed: str, caplog: pytest.LogCaptureFixture) -> None:
    with BlenderClient(closed, patience_s=2) as client, pytest.raises(BlenderUnavailable):
        client.list()
    assert lines(caplog) == [LINE.format(closed, 2)]


def test_a_fetch_says_it_too(closed: str, caplog: pytest.LogCaptureFixture) -> None:
    with BlenderClient(closed, patience_s=2) as client, pytest.raises(BlenderUnavailable):
        next(client.fetch("0" * 32))
    assert lines(caplog) == [LINE.format(closed, 2)]


def test_a_short_wait_says_nothing(closed: str, caplog: pytest.LogCaptureFixture) -> None:
    with BlenderClient(closed, patience_s=0.1) as client, pytest.raises(BlenderUnavailable):
        client.list()
    assert lines(caplog) == []


def test_a_connection_that_nobody_accepts_is_said_while_it_hangs(caplog: pytest.LogCaptureFixture) -> None:
    with ExitStack() as opened:
        deaf = opened.enter_context(socket.create_server(("127.0.0.1", 0), backlog=0))
        for _ in range(2):  # the queue is full, and the kernel drops what comes
            waiting = opened.enter_context(socket.socket())
            waiting.setblocking(False)
            waiting.connect_ex(deaf.getsockname())
        address = f"127.0.0.1:{deaf.getsockname()[1]}"
        with BlenderClient(address, timeout_s=2) as client, pytest.raises(BlenderUnavailable):
            client.list()
    assert lines(caplog) == [LINE.format(address, 30)]


def test_a_server_that_comes_in_time_is_used(
    blends: Blends, closed: str, caplog: pytest.LogCaptureFixture
) -> None:
    found: list[list[BlendRecord]] = []

    def ask() -> None:
        with BlenderClient(closed) as client:
            found.append(client.list())

    asking = threading.Thread(target=ask)
    asking.start()
    assert eventually(lambda: lines(caplog) != [])
    with BlenderServer(blend_services(blends), port=int(closed.rpartition(":")[2])):
        asking.join()
    assert found == [[]]
    assert lines(caplog) == [LINE.format(closed, 30)]


PROGRAM = """
import logging, sys
from blender.trainer.client import BlenderClient
from blender.wire import patience
patience.NOTICE_S = 0.2
for level in (logging.NOTSET, logging.ERROR):
    logging.getLogger("blender").setLevel(level)
    try:
        BlenderClient(sys.argv[1], patience_s=2).list()
    except Exception as error:
        print(error)
"""


def test_the_line_is_on_stderr_unless_its_logger_is_silenced(closed: str) -> None:
    ended = completed(PROGRAM, closed, PYTHONPATH=str(ROOT))
    assert ended.stderr == f"{LINE.format(closed, 2)}\n"
    assert ended.stdout.count("does not answer (Connection refused)") == 2
