"""The access log: its lines are those of the calls that real clients made, and have no secret."""

from __future__ import annotations

import hashlib
import json
import logging
import re
import signal
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from blender.catalog.blends import Blends, open_blends
from blender.errors import BlenderFailure, BlendNotFound, EndOfData, Unauthenticated
from blender.loading.client import LoadingClient
from blender.records import Source
from blender.serving import access_log
from blender.serving.server import BlenderServer
from blender.serving.service import blend_services
from blender.spec.step_range import StepRange
from blender.trainer.client import BlenderClient
from blender.wire.credentials import Tls
from factory.settings import Settings
from tests.blender.lakes import CODE, PROSE, Server, serving
from tests.blender.papers import Papers
from tests.blender.programs import eventually

SOURCES = [Source(CODE, 3, oversample=True), Source(PROSE, 1)]
TOKEN = "a-secret-of-the-test"

pytestmark = pytest.mark.process


def lines_of(text: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in text.splitlines() if line.startswith("{")]


def stopped(server: Server) -> str:
    """What a server wrote to its standard error until it stopped."""
    server.process.send_signal(signal.SIGTERM)
    _, errors = server.process.communicate(timeout=60)
    return errors


def fields(lines: list[dict[str, Any]], *names: str) -> list[tuple[Any, ...]]:
    return [tuple(line.get(name) for name in names) for line in lines]


@pytest.fixture
def server(lake: Settings) -> Iterator[Server]:
    with serving(lake.home, "--log-level", "calls") as running:
        yield running


@pytest.mark.invariant(
    "Every call of a client that fails is a line of the access log, and no line has a secret."
)
def test_every_call_is_one_line_with_what_it_asked_and_got(server: Server) -> None:
    with BlenderClient(server.address) as client:
        blend = client.create(SOURCES, seed=1).id
        batches = list(client.fetch(blend, 5, steps=10, rank=1, ranks=2, stride=2))
        client.describe(blend)
        client.explain(blend, 7)
        with pytest.raises(BlendNotFound):
            client.get("0" * 32)
        with pytest.raises(EndOfData):
            list(client.fetch(blend, 299, steps=10))
    lines = lines_of(stopped(server))
    assert fields(lines, "event", "method", "blend", "offset", "next_offset", "rows", "status") == [
        ("end", "Create", blend, None, None, None, "OK"),
        ("end", "Fetch", blend, 5, 15, 10, "OK"),
        ("end", "Describe", blend, None, None, None, "OK"),
        ("end", "Explain", blend, 7, None, None, "OK"),
        ("end", "Get", "0" * 32, None, None, None, "NOT_FOUND"),
        ("end", "Fetch", blend, 299, 300, 4, "OUT_OF_RANGE"),
    ]
    fetch = lines[1]
    assert (fetch["steps"], fetch["rank"], fetch["ranks"], fetch["stride"]) == (10, 1, 2, 2)
    assert fetch["bytes"] >= sum(batch.tokens.nbytes / 2 for batch in batches)
    assert all(re.fullmatch(r"ipv4:127\.0\.0\.1:\d+", line["peer"]) for line in lines)
    assert {line["client"] for line in lines} == {"ipv4:127.0.0.1"}
    assert all(0 <= line["seconds"] < 60 for line in lines)
    now = datetime.now(UTC)
    assert all(abs((now - datetime.fromisoformat(line["time"])).total_seconds()) < 600 for line in lines)
    assert "This lake has no blend" in lines[4]["message"]
    assert "ends after 300 steps" in lines[5]["message"]
    assert not any("message" in line for line in lines[:4])


@pytest.fixture
def written(
    blends: Blends, tmp_path: Path, request: pytest.FixtureRequest
) -> Iterator[tuple[BlenderServer, Path]]:
    """A server of this process and the file of its access log, of all calls unless a level is given."""
    logger, file = logging.getLogger("blender.access"), tmp_path / "access.log"
    before, level = list(logger.handlers), logger.level
    access_log.configure(getattr(request, "param", "calls"), file)
    with BlenderServer(blend_services(blends)) as running:
        yield running, file
    for handler in set(logger.handlers) - set(before):
        logger.removeHandler(handler)
        handler.close()
    logger.setLevel(level)


def test_a_stream_that_lasts_has_a_line_of_its_own(
    written: tuple[BlenderServer, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(access_log, "LONG_S", 0.1)
    server, file = written
    with BlenderClient(server.address) as client:
        blend = client.create([Source(CODE, 1000, oversample=True)]).id
        reading = client.fetch(blend)
        next(reading)
        assert eventually(lambda: '"open"' in file.read_text())
        reading.close()
        assert eventually(lambda: '"CANCELLED"' in file.read_text())
    lines = [line for line in lines_of(file.read_text()) if line["method"] == "Fetch"]
    assert fields(lines, "event", "blend", "status") == [("open", blend, None), ("end", blend, "CANCELLED")]
    assert lines[1]["rows"] >= lines[0]["rows"] > 0


def test_a_file_that_is_moved_away_is_opened_anew(written: tuple[BlenderServer, Path]) -> None:
    server, file = written
    with BlenderClient(server.address) as client:
        client.list()
        file.rename(file.with_suffix(".1"))
        client.list()
    for path in (file, file.with_suffix(".1")):
        assert fields(lines_of(path.read_text()), "method") == [("List",)]


@pytest.mark.parametrize("error", [ZeroDivisionError, SystemExit])  # a panic of a kernel is no Exception too
def test_an_error_that_nobody_meant_is_named_by_its_incident(
    written: tuple[BlenderServer, Path],
    blends: Blends,
    monkeypatch: pytest.MonkeyPatch,
    error: type[BaseException],
) -> None:
    server, file = written

    def fail(_: object) -> None:
        raise error("nobody meant it")

    monkeypatch.setattr(blends, "list", fail)
    with BlenderClient(server.address) as client, pytest.raises(BlenderFailure) as raised:
        client.list()
    (line,) = lines_of(file.read_text())
    assert line["status"] == "INTERNAL"
    assert line["message"] in str(raised.value)
    assert "incident" in line["message"]


@pytest.mark.parametrize("written, n_lines", [("off", 0), ("errors", 1), ("calls", 2)], indirect=["written"])
def test_the_level_decides_which_calls_are_written(written: tuple[BlenderServer, Path], n_lines: int) -> None:
    server, file = written
    with BlenderClient(server.address) as client:
        client.list()
        with pytest.raises(BlendNotFound):
            client.get("0" * 32)
    assert len(lines_of(file.read_text())) == n_lines


def test_errors_are_written_by_default_and_people_are_told_two_things(lake: Settings) -> None:
    with serving(lake.home) as server:
        with BlenderClient(server.address) as client:
            client.list()
            with pytest.raises(BlendNotFound):
                client.get("0" * 32)
        said = stopped(server)
    assert fields(lines_of(said), "method") == [("Get",)]
    people = [line for line in said.splitlines() if not line.startswith("{")]
    assert people[0].startswith("Blender serves the lake ")
    assert people[1].startswith("Ctrl-C or SIGTERM stops it")
    assert len(people) == 2


@pytest.mark.invariant(
    "Every call of a client that fails is a line of the access log, and no line has a secret."
)
def test_refused_calls_are_counted_and_no_token_is_written(lake: Settings, tmp_path: Path) -> None:
    tokens, log = tmp_path / "tokens", tmp_path / "access.log"
    tokens.write_text(f"{TOKEN}\n")
    tokens.chmod(0o600)
    options = ("--token-file", str(tokens), "--log-level", "calls", "--log-file", str(log))
    with serving(lake.home, *options) as server:
        for token in (None, "another-secret", TOKEN):
            with BlenderClient(server.address, token=token) as client:
                if token == TOKEN:
                    client.list()
                    continue
                for _ in range(5):
                    with pytest.raises(Unauthenticated):
                        client.list()
        said = stopped(server)
    text = log.read_text()
    assert "secret" not in text + said
    assert not lines_of(said)
    refused, unknown, answered = lines_of(text)
    assert fields([refused, unknown], "event", "status", "calls") == [("refused", "UNAUTHENTICATED", 1)] * 2
    assert "requires a token" in refused["message"]
    assert "does not accept the token" in unknown["message"]
    digest = hashlib.sha256(f"Bearer {TOKEN}".encode()).hexdigest()
    assert (answered["method"], answered["client"]) == ("List", f"token {digest[:12]}")


def test_a_certificate_names_the_client(lake: Settings, tmp_path: Path) -> None:
    papers, log = Papers(tmp_path), tmp_path / "access.log"
    certificate, key = papers.server
    options = ["--tls-cert", certificate, "--tls-key", key, "--tls-client-ca", papers.ca]
    options += ["--log-level", "calls", "--log-file", log]
    tls = Tls(papers.ca, *papers.client)
    with serving(lake.home, *map(str, options)) as server, BlenderClient(server.address, tls=tls) as client:
        client.list()
    (line,) = lines_of(log.read_text())
    assert line["client"] == "certificate trainer@example.org"


def test_all_processes_write_whole_lines_into_one_file(lake: Settings, tmp_path: Path) -> None:
    log = tmp_path / "access.log"
    options = ("--processes", "2", "--log-level", "calls", "--log-file", str(log))
    with serving(lake.home, *options) as server:
        for _ in range(20):  # the chance that the kernel gives all to one process is 2^-19
            with BlenderClient(server.address) as client:
                client.list()
        assert eventually(lambda: len(lines_of(log.read_text())) == 20)
        stopped(server)
    assert {line["method"] for line in lines_of(log.read_text())} == {"List"}


def test_a_constructor_of_planned_steps_writes_its_calls(lake: Settings) -> None:
    blend = open_blends(lake).create([Source(PROSE, 4)]).id
    options = (blend, "--mesh", "dp=1", "--microbatches", "2", "--log-level", "calls")
    with serving(lake.home, *options, package="blender.loading") as server:
        with LoadingClient(server.address) as client:
            steps = list(client.open().read(StepRange(2, 3), 0))
        lines = lines_of(stopped(server))
    assert [step.offset for step in steps] == [2, 3, 4]
    assert fields(lines, "method", "offset", "next_offset", "status") == [
        ("Spec", None, None, "OK"),
        ("Spec", 2, None, "OK"),
        ("Load", 2, 5, "OK"),
    ]
    assert lines[2]["bytes"] > 0


@pytest.mark.parametrize(
    "options, sentence",
    [
        (("--log-level", "debug"), "Unknown level `debug` of the access log. Use one of off, errors, calls."),
        (
            ("--log-file", "/no/such/folder/log"),
            "The access log /no/such/folder/log cannot be written",
        ),
    ],
)
def test_wrong_options_are_one_sentence(lake: Settings, options: tuple[str, str], sentence: str) -> None:
    with serving(lake.home, *options) as server:
        _, errors = server.process.communicate(timeout=60)
    assert sentence in errors
    assert "Traceback" not in errors
