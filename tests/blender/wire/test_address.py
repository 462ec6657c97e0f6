"""Addresses that gRPC would wait for in vain are refused with the one that was meant."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from blender.errors import InvalidRequest
from blender.loading.client import LoadingClient
from blender.trainer.client import BlenderClient
from blender.wire.address import HostPort, checked_address, host_and_port

REFUSED = {
    "http://127.0.0.1:50051": r"begins with `http://`\. Write `127\.0\.0\.1:50051`; `factory serve` prints",
    "https://blender:50051/": r"begins with `https://`\. Write `blender:50051`, and give .* `tls=Tls\(\)`",
    "grpc://blender": r"begins with `grpc://`\. Write `blender:50051`",
    "127.0.0.1": r"has no port\. Write `127\.0\.0\.1:50051`",
    "blender:": r"has no port\. Write `blender:50051`",
    "[::1]": r"has no port\. Write `\[::1\]:50051`",
    ":50051": r"has no host\. Write `127\.0\.0\.1:50051`",
    "127.0.0.1:50051/blends": r"contains a path\. Write `127\.0\.0\.1:50051`",
    "127.0.0.1:50051 ": r"contains a blank\. Write `127\.0\.0\.1:50051`",
    "ipv4:10.0.0.1:50051, 10.0.0.2:50051": r"contains a blank\. Write `ipv4:10\.0\.0\.1:50051,10",
    "::1:50051": r"has several colons\. Write `\[::1\]:50051`",
    "blender:grpc": r"has the port `grpc`\. Write `blender:50051`",
    "blender:0": r"has the port `0`",
    "blender:70000": r"has the port `70000`",
    "": r"The address is empty\. Write it as `host:50051`",
    " ": r"The address is empty",
}


@pytest.mark.parametrize("address", REFUSED)
def test_a_malformed_address_is_refused_with_the_correct_one(address: str) -> None:
    with pytest.raises(InvalidRequest, match=REFUSED[address]):
        BlenderClient(address)


def test_an_address_of_another_type_is_refused() -> None:
    with pytest.raises(InvalidRequest, match="The address is of type `int`"):
        BlenderClient(50051)  # type: ignore[arg-type]


def test_constructors_of_a_loader_are_addressed_in_the_same_way() -> None:
    with pytest.raises(InvalidRequest, match="begins with `http://`"):
        LoadingClient("127.0.0.1:50052,http://127.0.0.1:50053")


@pytest.mark.parametrize(
    "address",
    [
        "ipv4:10.0.0.1:50051,10.0.0.2:50051",
        "dns:///blender:50051",
        "unix:///run/blender",
        "DNS:blender:50051",
    ],
)
def test_names_that_grpc_resolves_by_itself_pass(address: str) -> None:
    assert checked_address(address) == address
    assert host_and_port(address) is None


HOSTS = st.from_regex(r"[a-z0-9][a-z0-9.-]{0,30}|\[[0-9a-f:]{2,20}\]", fullmatch=True)


@given(HOSTS, st.integers(1, 65_535))
def test_every_host_and_port_passes_and_comes_apart_again(host: str, port: int) -> None:
    address = f"{host}:{port}"
    assert checked_address(address) == address
    assert host_and_port(address) == HostPort(host.strip("[]"), port)
