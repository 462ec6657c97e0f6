"""A client that no further try connects says why at once, to real servers of the wrong kind."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from blender.catalog.blends import Blends
from blender.errors import BlenderUnavailable
from blender.serving.security import ServerSecurity
from blender.serving.server import BlenderServer
from blender.serving.service import blend_services
from blender.trainer.client import BlenderClient
from blender.wire.credentials import Tls
from blender.wire.diagnosis import proxy_clause
from tests.blender.papers import Papers
from tests.ports import free_ports

PATIENCE_S = 1_000  # beyond the limit of a test: whatever waits for it fails


@pytest.fixture(scope="module")
def papers(tmp_path_factory: pytest.TempPathFactory) -> Papers:
    return Papers(tmp_path_factory.mktemp("papers"))


@pytest.fixture
def secure(blends: Blends, papers: Papers) -> Iterator[BlenderServer]:
    with BlenderServer(blend_services(blends), security=ServerSecurity(*papers.server)) as running:
        yield running


def refused(address: str, tls: Tls | None = None, patience_s: float = PATIENCE_S) -> str:
    """The sentence with which a call and a fetch are refused."""
    sentences = []
    for call in (BlenderClient.list, lambda client: next(client.fetch("0" * 32))):
        client = BlenderClient(address, tls=tls, patience_s=patience_s)
        with client, pytest.raises(BlenderUnavailable) as raised:
            call(client)
        sentences.append(str(raised.value))
    assert sentences[0] == sentences[1]
    return sentences[0]


def test_a_client_of_tls_learns_that_the_server_speaks_plaintext(
    server: BlenderServer, papers: Papers
) -> None:
    assert refused(server.address, Tls(papers.ca)) == (
        f"The Blender at {server.address} speaks plaintext, and this client TLS. Leave `tls` out, or start "
        "the server with --tls-cert and --tls-key."
    )


@pytest.mark.invariant(
    "A client that no retry can connect says why at once: plaintext or TLS on the wrong side, an unknown "
    "host, a server that is not a Blender."
)
def test_a_client_of_plaintext_learns_that_the_server_speaks_tls(secure: BlenderServer) -> None:
    assert refused(secure.address) == (
        f"The Blender at {secure.address} speaks TLS, and this client plaintext. Give the client "
        "`tls=Tls(ca=...)` with the authority of the server's certificate."
    )


def test_a_client_learns_that_it_does_not_know_the_authority(secure: BlenderServer, papers: Papers) -> None:
    assert refused(secure.address, Tls(papers.stranger_ca)) == (
        f"This client does not trust the certificate of the Blender at {secure.address} (unable to get local "
        "issuer certificate). Give `Tls(ca=...)` the file of the authority that signed it, or renew the "
        "certificate."
    )


def test_a_client_learns_that_the_certificate_is_for_another_name(blends: Blends, papers: Papers) -> None:
    security = ServerSecurity(*papers.server)
    with BlenderServer(blend_services(blends), host="127.0.0.2", security=security) as server:
        assert refused(server.address, Tls(papers.ca)) == (
            f"The certificate of the Blender at {server.address} is for another name. Use the host that it "
            "names, or issue a certificate for this one."
        )


class Page(BaseHTTPRequestHandler):
    """Answers as servers of pages do; says nothing."""

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def page() -> Iterator[str]:
    with ThreadingHTTPServer(("127.0.0.1", 0), Page) as running:
        thread = threading.Thread(target=running.serve_forever)
        thread.start()
        yield f"127.0.0.1:{running.server_port}"
        running.shutdown()
        thread.join()


def test_the_address_of_a_page_is_told_from_one_of_a_blender(page: str) -> None:
    assert refused(page).startswith(f"What answers at {page} does not speak gRPC. Give the address that")


def test_an_unknown_host_is_said_at_once() -> None:
    assert refused("no-such-host.invalid:50051") == (
        "The host of the Blender at no-such-host.invalid:50051 is unknown. Correct the address, or the name "
        "server."
    )


def test_a_proxy_of_the_environment_is_named(server: BlenderServer, monkeypatch: pytest.MonkeyPatch) -> None:
    (closed,) = free_ports(1)
    monkeypatch.setenv("no_proxy", "")
    monkeypatch.setenv("http_proxy", f"http://user:secret@127.0.0.1:{closed}")
    sentence = refused(server.address, patience_s=0.1)
    assert sentence.endswith(
        "The variable `http_proxy` sends the calls to a proxy: add `127.0.0.1` to `no_proxy`."
    )
    assert "secret" not in sentence
    monkeypatch.setenv("no_proxy", "example.org,127.0.0.0/8")
    assert proxy_clause(server.address) == ""
    with BlenderClient(server.address) as client:
        assert client.list() == []


def test_a_closed_port_is_named_without_the_words_of_grpc() -> None:
    (closed,) = free_ports(1)
    assert refused(f"127.0.0.1:{closed}", patience_s=0.1) == (
        f"Blender at 127.0.0.1:{closed} does not answer (Connection refused). Start it with `factory serve`, "
        "or correct the address."
    )


def test_a_server_that_changes_to_tls_is_diagnosed_after_patience(
    server: BlenderServer, blends: Blends, papers: Papers
) -> None:
    with BlenderClient(server.address, patience_s=1) as client:
        client.list()
        server.stop(0)
        port = int(server.address.rpartition(":")[2])
        security = ServerSecurity(*papers.server)
        with (
            BlenderServer(blend_services(blends), port=port, security=security),
            pytest.raises(BlenderUnavailable, match="speaks TLS, and this client plaintext"),
        ):
            client.list()
