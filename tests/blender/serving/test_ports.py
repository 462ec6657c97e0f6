"""Ports that are free, taken, or shared."""

from __future__ import annotations

import socket

import pytest

from blender.serving import serve
from blender.serving.ports import is_loopback, port_number, require_free, reserve
from factory.errors import ConfigurationError, MachineError


@pytest.mark.parametrize("shared", [False, True])
def test_a_port_that_anybody_has_is_refused_shared_or_not(shared: bool) -> None:
    with socket.socket() as taken:
        taken.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, int(shared))
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        for take in (require_free, reserve):
            with pytest.raises(MachineError, match=rf"{port} of 127.0.0.1 cannot be bound \(address already"):
                take("127.0.0.1", port)


@pytest.mark.parametrize(
    "text, said",
    [
        ("99999", "Port 99,999 is out of range. Use 1 to 65,535, or 0 for any."),
        ("-5", "`-5` is not a port. Use 1 to 65,535, or 0 for any free one."),
        ("http", "`http` is not a port. Use 1 to 65,535, or 0 for any free one."),
    ],
)
def test_a_number_above_all_ports_is_refused(
    text: str, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(ConfigurationError) as caught:
        port_number(text)
    assert str(caught.value) == said
    for option in ("--port", "--metrics-port"):
        assert serve.main([f"{option}={text}"]) == ConfigurationError.exit_code
        assert capsys.readouterr() == ("", f"{said}\n")


@pytest.mark.parametrize("text", ["0", "1", "65535"])
def test_every_port_is_a_number(text: str) -> None:
    assert port_number(text) == int(text)


def test_a_reserved_port_can_be_bound_by_those_who_share_it_alone() -> None:
    with reserve("127.0.0.1", 0) as held, socket.socket() as other:
        address = held.getsockname()
        with pytest.raises(OSError, match="in use"):
            other.bind(address)
        other.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        other.bind(address)
        other.listen()
        with socket.create_connection(address, timeout=20):  # the one who listens gets every connection
            other.accept()[0].close()


@pytest.mark.parametrize(
    "host, alone",
    [("127.0.0.1", True), ("[::1]", True), ("localhost", True), ("0.0.0.0", False), ("a.b", False)],
)
def test_only_this_machine_reaches_loopback(host: str, alone: bool) -> None:
    assert is_loopback(host) is alone
