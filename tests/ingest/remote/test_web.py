"""Files of a web server, with the faults that servers have."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

import pytest

from factory.errors import ConfigurationError
from factory.ingest.items import files_of, folders
from factory.ingest.state import listing, state
from spark_udfs.ingest.address import place_of
from spark_udfs.ingest.place import Place
from spark_udfs.ingest.remote.files import RemoteFiles, objects_at, resolve_branches_anew
from spark_udfs.ingest.remote.objects import RemoteFailure
from spark_udfs.ingest.rows import BadRecord, Origin
from tests.ingest.remote.web_server import WebServer, serving_files

CONTENT = random.Random(5).randbytes(700_000)


@pytest.fixture
def web() -> Iterator[WebServer]:
    objects_at.cache_clear()
    with serving_files({"a/b.bin": CONTENT, "café 1.txt": b"text"}) as server:
        yield server


def content_of(place: Place) -> bytes:
    with place.parent.open(place.name.encode()) as file:
        return file.read()


@pytest.mark.parametrize("fault", ["whole", "moved", "busy", "headless", "tagless", "cut", "rangeless"])
def test_a_file_is_read_whole_from_any_server(web: WebServer, fault: str) -> None:
    place = place_of(f"{web.address}/{fault}/a/b.bin")
    assert (place.kind(), place.name, place.parent.name) == ("file", "b.bin", "a")
    [(name, state_of_file)] = place.states()
    assert state_of_file is not None
    assert (name, state_of_file.n_bytes) == (b"", len(CONTENT))
    assert content_of(place) == CONTENT


def test_two_queries_of_one_address_are_two_files(web: WebServer) -> None:
    addresses = [f"{web.address}/whole/a/b.bin?id={number}" for number in (1, 2)]
    with pytest.raises(ConfigurationError, match=r"`.*id=1` and `.*id=2` both hold `b.bin`"):
        list(files_of("jsonl", addresses, Origin("")))
    with pytest.raises(ConfigurationError, match=r"id=1` is not a folder"):
        folders(addresses)
    assert len(list(files_of("jsonl", [addresses[0], addresses[0]], Origin("")))) == 1
    assert len(listing(addresses, 10).large) == 2


def test_a_server_that_wants_a_pause_gets_it(web: WebServer, monkeypatch: pytest.MonkeyPatch) -> None:
    pauses: list[float] = []
    monkeypatch.setattr("time.sleep", pauses.append)
    assert content_of(place_of(f"{web.address}/limited/a/b.bin")) == CONTENT
    assert pauses.count(7) == web.requests["/limited/a/b.bin"] / 2


def test_the_bytes_of_a_cut_answer_are_not_asked_for_again(web: WebServer) -> None:
    assert content_of(place_of(f"{web.address}/cut/a/b.bin")) == CONTENT
    assert web.bytes_sent == len(CONTENT)


@pytest.mark.parametrize(
    "fault, error, sentence",
    [
        ("endless", ConfigurationError, "does not tell the length"),
        ("circle", ConfigurationError, "redirects in a circle"),
        ("locked", ConfigurationError, r"refuses access to `.*` \(status 401\)\. Give the name and password"),
        ("short", RemoteFailure, "breaks off at byte 0 of 700,000"),
        ("changing", BadRecord, "The file changed while it was read"),
    ],
)
def test_a_server_that_fails_is_one_sentence(
    web: WebServer, fault: str, error: type[Exception], sentence: str
) -> None:
    place = place_of(f"{web.address}/{fault}/a/b.bin")
    web.requests[f"/{fault}/a/b.bin"] = 2  # the fault `changing` begins at the fourth
    with pytest.raises(error, match=sentence):
        content_of(place)


@pytest.mark.parametrize(
    "target", ["http://reader:hush-@a@127.0.0.1:hush/b", "http://reader:hush@[::hush/b", "ftp://me:hush@b/c"]
)
def test_a_redirect_to_no_server_is_one_sentence_without_its_password(
    web: WebServer, monkeypatch: pytest.MonkeyPatch, target: str
) -> None:
    web.redirect = target
    pauses: list[float] = []
    monkeypatch.setattr("time.sleep", pauses.append)
    with pytest.raises(ConfigurationError, match="leads to no web server") as refusal:
        place_of(f"{web.address}/redirected/a/b.bin").kind()
    assert "hush" not in str(refusal.value)
    assert not pauses


def test_a_run_keeps_what_it_knows_of_any_number_of_roots() -> None:
    first = objects_at("hf://datasets/owner/name")
    for number in range(200):
        objects_at(f"https://{number}.example")
    assert objects_at("hf://datasets/owner/name") is first
    resolve_branches_anew()
    assert objects_at("hf://datasets/owner/name") is not first


def test_a_file_that_is_not_there_is_nothing(web: WebServer) -> None:
    place = place_of(f"{web.address}/whole/gone.bin")
    assert place.kind() is None
    with pytest.raises(FileNotFoundError):
        content_of(place)


def test_a_server_that_is_away_is_one_sentence(web: WebServer) -> None:
    away = place_of(f"{web.address.rpartition(':')[0]}:9/a.bin")
    with pytest.raises(RemoteFailure, match=r"`http://127.0.0.1:9/a.bin` does not answer \(.*refused\)"):
        away.kind()


def test_a_folder_of_a_server_is_one_sentence(web: WebServer) -> None:
    with pytest.raises(ConfigurationError, match=r"lists no files\. Name each file"):
        list(place_of(f"{web.address}/whole/a").walk(lambda _: True))


def test_names_and_passwords_come_from_netrc(
    web: WebServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "netrc").write_text(f"machine 127.0.0.1 login reader password {web.password}\n")
    monkeypatch.setenv("NETRC", str(tmp_path / "netrc"))
    assert content_of(place_of(f"{web.address}/locked/a/b.bin")) == CONTENT


def test_a_query_belongs_to_the_address_and_not_to_the_name(web: WebServer) -> None:
    place = place_of(f"{web.address}/whole/café 1.txt?download=1")
    assert (place.name, content_of(place)) == ("café 1.txt", b"text")
    assert place.display().endswith("?download=1")


def test_another_content_is_another_state(web: WebServer) -> None:
    address = f"{web.address}/whole/a/b.bin"
    before = state([address])
    assert state([address]) == before
    web.files["a/b.bin"] = CONTENT[:-1] + b"!"
    assert state([address]) != before


SECRETS = {  # and the host that the refusal names
    "https://me:hush@a.example/b": "a.example",
    "https://hush@a.example/b": "a.example",
    "https://me:hu/sh@a.example/b@c": "a server",
    "https://me:hush@other@a.example:80/b": "a server",
    "https://user:12/34hush@host/x": "a server",
    "https://user:1?hush@host/f": "a server",
    "https://user:p@hush/ss@host/x": "a server",
    "s3://id:hush@a.example/b": "a.example",
    **{
        f"https://a.example/b?{query}": "a.example"
        for query in (
            *("X-Amz-Signature=hush", "part=1&sv=2&sig=hush", "passwd=hush", "auth=hush", "a=1;token=hush"),
            *("redirect=/f?token=hush", "a=sig%3Dx%26token%3Dhush", "a=x%2526token%253Dhush"),
            *("hdnts=exp=1~hmac=hush", "a=exp=1~hmac=hush", "%73ig=hush", "to%6ben=hush", "%2573ig=hush"),
            *("a=1#token=hush", "u=https://user:hush@inner/f", "u=https%3A%2F%2Fhush%40inner/f"),
            *("u=https://me:hu/sh@inner/f", "xauth=hush", "authn=hush", "oauth=hush", "oauth_token=hush"),
            *(
                "bearer=hush",
                "cred=hush",
                "apikey=hush",
                "api_key=hush",
                "apiKey=hush",
                "AWSAccessKeyId=hush",
            ),
            *("awsaccesskeyid=hush", "authtoken=hush", "access_token=hush", "sessionToken=hush", "Key=hush"),
            *("client-secret=hush", "x.password=hush", "auth_code=hush", "Authorization=hush", "sign=hush"),
            *("user[password]=hush", "jwt=hush", "pwd=hush", "Key-Pair-Id=hush", "x-goog-credential=hush"),
        )
    },
    "https://a.example/b#access_token=hush": "a.example",
    "https://a.example:80/b#x?sig=hush": "a.example:80",
    "s3://a.example/f?X-Amz-Signature=hush": "a.example",
    "gs://a.example/f?x=1&X-Goog-Signature=hush": "a.example",
    "az://a.example/f?sv=1&sig=hush": "a.example",
    "hf://datasets/a/b/f?token=hush": "datasets",
}


@pytest.mark.parametrize("address", SECRETS)
def test_an_address_with_a_secret_is_refused_without_it(address: str) -> None:
    with pytest.raises(ConfigurationError) as refusal:
        place_of(address)
    assert str(refusal.value).startswith(f"An address of {SECRETS[address]} in `paths` holds a password")
    assert "hu" not in str(refusal.value)


def test_an_address_that_may_have_a_password_behind_its_port_says_how_to_write_it() -> None:
    with pytest.raises(ConfigurationError, match="Write `%40` for an `@` that is part of a name"):
        place_of("https://a.example:8443/a@b")
    assert place_of("https://a.example:8443/a%40b").display() == "https://a.example:8443/a%40b"


@pytest.mark.parametrize(
    "address",
    [
        *(
            "http://[::1]:80/a",
            "https://a.example:8443/a:b",
            "https://a.example/a@b:c",
            "http://[::1]:80/a@b",
        ),
        "https://a.example:80/a?mail=me@b",
        *(
            f"https://a.example/a?{query}"
            for query in (
                *("q=token&author=me", "design=3", "keywords=a", "passage=3", "monkey=1", "max_tokens=3"),
                *("tokenizer=a", "u=https://inner/a@b", "author=a", "authority=b", "compass=1", "a=%2525"),
            )
        ),
        *("s3://bucket/key=1/a", "s3://bucket/a#b", "hf://datasets/owner/name@main/token=1/a"),
    ],
)
def test_an_address_without_a_secret_is_taken(address: str) -> None:
    assert place_of(address).display() == address


def test_a_pattern_of_folders_by_key_is_taken() -> None:
    RemoteFiles.parse("s3://bucket/part-?/key=1/*.parquet")
