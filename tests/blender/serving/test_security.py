"""Who may talk to a Blender: certificates and tokens over real connections."""

from __future__ import annotations

from pathlib import Path

import grpc
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc

from blender import BlenderClient, Source, Tls
from blender.catalog.blends import Blends
from blender.errors import BlenderUnavailable, Unauthenticated
from blender.serving.security import ServerSecurity
from blender.serving.server import BlenderServer
from blender.serving.service import blend_services
from factory.errors import ConfigurationError
from tests.blender.papers import Papers

SOURCES = [Source("packed.code", 2)]


@pytest.fixture(scope="module")
def papers(tmp_path_factory: pytest.TempPathFactory) -> Papers:
    return Papers(tmp_path_factory.mktemp("papers"))


@pytest.fixture
def tokens(tmp_path: Path) -> Path:
    return private(tmp_path / "tokens", "first-token\n\nsecond-token\n")


def private(path: Path, text: str) -> Path:
    """A file that its owner alone may open."""
    path.write_text(text)
    path.chmod(0o600)
    return path


def fetched(address: str, tls: Tls | None = None, token: str | None = None) -> int:
    """How many rows a client of these papers gets of one step."""
    with BlenderClient(address, tls=tls, token=token, patience_s=0, timeout_s=20) as client:
        blend = client.create(SOURCES, seed=1)
        return sum(len(batch.tokens) for batch in client.fetch(blend.id, steps=1))


def test_a_client_that_knows_the_authority_reads_over_tls(blends: Blends, papers: Papers) -> None:
    with BlenderServer(blend_services(blends), security=ServerSecurity(*papers.server)) as server:
        assert fetched(server.address, Tls(papers.ca)) == 2
        for tls in (None, Tls(papers.stranger_ca)):
            with pytest.raises(BlenderUnavailable, match=r"certificate|`tls`"):
                fetched(server.address, tls)


def test_a_server_serves_clients_whose_certificates_it_trusts(blends: Blends, papers: Papers) -> None:
    asking = ServerSecurity(*papers.server, client_ca=papers.ca)
    with BlenderServer(blend_services(blends), security=asking) as server:
        assert fetched(server.address, Tls(papers.ca, *papers.client)) == 2
        strangers = [((), "this client shows none"), (papers.stranger, "may not trust .*stranger.pem")]
        for shown, reason in strangers:
            tls = Tls(papers.ca, *shown)
            with pytest.raises(BlenderUnavailable, match=rf"require a certificate, and .*{reason}: give the"):
                fetched(server.address, tls)
            client = BlenderClient(server.address, tls=tls, patience_s=0)
            with client, pytest.raises(BlenderUnavailable, match=reason):
                next(client.fetch("0" * 32))


@pytest.mark.parametrize("over_tls", [False, True])
def test_each_token_of_the_file_opens_every_call(
    blends: Blends, papers: Papers, tokens: Path, over_tls: bool
) -> None:
    shown, tls = (papers.server, Tls(papers.ca)) if over_tls else ((None, None), None)
    with BlenderServer(blend_services(blends), security=ServerSecurity(*shown, tokens=tokens)) as server:
        for token in ("first-token", "second-token"):
            assert fetched(server.address, tls, token) == 2
        with pytest.raises(Unauthenticated, match=r"requires a token\. Give the client `token`"):
            fetched(server.address, tls)
        for token in ("first", "FIRST-TOKEN", "second-tokens"):
            with pytest.raises(Unauthenticated, match="does not accept the token"):
                fetched(server.address, tls, token)
        for token in ("", "first-token ", "first\ttoken", "tokén"):
            with pytest.raises(ConfigurationError, match="The token is empty, or contains a space"):
                fetched(server.address, tls, token)


def test_a_stream_is_refused_like_a_call_and_health_needs_no_token(blends: Blends, tokens: Path) -> None:
    with BlenderServer(blend_services(blends), security=ServerSecurity(tokens=tokens)) as server:
        with BlenderClient(server.address, patience_s=0) as client, pytest.raises(Unauthenticated):
            next(client.fetch("0" * 32))
        with grpc.insecure_channel(server.address) as channel:
            answer = health_pb2_grpc.HealthStub(channel).Check(health_pb2.HealthCheckRequest(), timeout=20)
        assert answer.status == health_pb2.HealthCheckResponse.SERVING


@pytest.fixture
def broken(papers: Papers, tmp_path: Path) -> dict[str, ServerSecurity]:
    private(tmp_path / "empty", "\n")
    (tmp_path / "no.pem").write_text("no certificate")
    private(tmp_path / "two", "good\n\nnot good\n")
    (cert, key), (_, wrong), missing = papers.server, papers.client, tmp_path / "no-such-file"
    return {
        "needs a certificate and its key": ServerSecurity(cert),
        "needs a certificate and its key.": ServerSecurity(key=key),
        "Only TLS can check clients' certificates": ServerSecurity(client_ca=papers.ca),
        "TLS cannot use the certificate .* with the key .*KEY_VALUES_MISMATCH": ServerSecurity(cert, wrong),
        "TLS cannot use the certificate .* with the key": ServerSecurity(tmp_path / "no.pem", key),
        r"no-such-file cannot be read \(No such file or directory\)": ServerSecurity(cert, missing),
        "contains no token. Write one per line": ServerSecurity(tokens=tmp_path / "empty"),
        "Line 3 of .*two contains a space": ServerSecurity(tokens=tmp_path / "two"),
    }


def test_unusable_files_are_refused_before_the_port_is_bound(
    blends: Blends, broken: dict[str, ServerSecurity]
) -> None:
    for sentence, security in broken.items():
        with pytest.raises(ConfigurationError, match=sentence):
            BlenderServer(blend_services(blends), security=security)


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o620, 0o644])
def test_a_file_of_tokens_that_others_may_open_is_refused(blends: Blends, tokens: Path, mode: int) -> None:
    tokens.chmod(mode)
    sentence = rf"other than its owner may open it \(mode {mode:o}\)\. Run `chmod 600 {tokens}`"
    with pytest.raises(ConfigurationError, match=sentence):
        BlenderServer(blend_services(blends), security=ServerSecurity(tokens=tokens))


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o440, 0o644])
@pytest.mark.parametrize("linked", [False, True])
def test_a_private_key_that_others_may_open_is_refused(
    blends: Blends, tmp_path: Path, mode: int, linked: bool
) -> None:
    papers = Papers(tmp_path)
    for certificate, key in (papers.server, papers.client):
        key.chmod(mode)
        path = key
        if linked:  # as Kubernetes mounts a Secret
            path = tmp_path / f"link-{key.name}"
            path.symlink_to(key)
        sentence = rf"{path} contains secrets, .* \(mode {mode:o}\)\. Run `chmod 600 {path}`"
        with pytest.raises(ConfigurationError, match=sentence):
            BlenderServer(blend_services(blends), security=ServerSecurity(certificate, path))
        with pytest.raises(ConfigurationError, match=sentence):
            BlenderClient("127.0.0.1:1", tls=Tls(papers.ca, certificate, path))
        key.chmod(0o400)
        ServerSecurity(certificate, path).credentials()
        Tls(papers.ca, certificate, path).credentials()


def test_plaintext_stays_on_this_machine_and_tls_does_not_have_to(blends: Blends, papers: Papers) -> None:
    with pytest.raises(ConfigurationError, match=r"plaintext on 0\.0\.0\.0, .* Give --tls-cert"):
        BlenderServer(blend_services(blends), host="0.0.0.0")
    with BlenderServer(
        blend_services(blends), host="0.0.0.0", security=ServerSecurity(*papers.server)
    ) as server:
        assert fetched(server.address.replace("0.0.0.0", "127.0.0.1"), Tls(papers.ca)) == 2


def test_a_client_with_half_a_pair_or_an_unreadable_file_is_refused(papers: Papers) -> None:
    with pytest.raises(ConfigurationError, match="Give both or neither"):
        BlenderClient("127.0.0.1:1", tls=Tls(papers.ca, papers.client[0]))
    with pytest.raises(ConfigurationError, match="cannot be read"):
        BlenderClient("127.0.0.1:1", tls=Tls(papers.ca.with_name("none")))
