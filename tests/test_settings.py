"""Settings of a process: misspelt names are refused, secrets hidden, and a child process gets the same."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from pydantic import ValidationError

from factory.errors import ConfigurationError
from factory.lake.names import raw
from factory.lake.schemas.ingest import RAW
from factory.lake.store import object_store
from factory.lake.tables import Lake
from factory.settings import Settings, settings, unknown_variables


@pytest.fixture(autouse=True)
def _read_anew() -> Iterator[None]:
    settings.cache_clear()
    yield
    settings.cache_clear()


def test_a_misspelt_variable_is_refused_with_the_nearest_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FACTORY_SPARK_MASTR", "spark://h:7077")
    error = r"Unknown setting FACTORY_SPARK_MASTR.*FACTORY_SPARK_MASTER\?"
    with pytest.raises(ConfigurationError, match=error):
        settings()


def test_a_variable_of_another_program_is_listed_and_ignored(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FACTORY_FLOOR", "2")
    assert isinstance(settings(), Settings)
    assert unknown_variables() == [("FACTORY_FLOOR", None)]


@pytest.mark.parametrize("size", ["4g", "512m", "1T", "2048k"])
def test_a_memory_size_of_the_jvm_is_valid(size: str) -> None:
    assert Settings(spark_driver_memory=size).spark_driver_memory == size.lower()


@pytest.mark.parametrize("size", ["4 gigs", "0g", "4.5g", "4", "", "-1g", "4gb"])
def test_another_memory_size_is_refused(size: str) -> None:
    with pytest.raises(ValidationError, match="not a memory size"):
        Settings(spark_executor_memory=size)


@pytest.mark.parametrize("folder", ["my lake", "läge", "100% mine", "50%"])
def test_the_warehouse_lies_in_the_folder_that_is_named(tmp_path: Path, folder: str) -> None:
    settings = Settings(home=tmp_path / folder)
    lake, name = Lake(settings), raw("web")
    lake.create(name, RAW)
    object_store(settings, "blends").put("a.json", b"{}")
    assert [path.name for path in tmp_path.iterdir()] == [folder]
    assert sorted(path.name for path in settings.files.warehouse.iterdir()) == [
        "blends",
        "claim.json",
        "raw",
    ]
    assert Settings(home=tmp_path, warehouse=f"{tmp_path}/{folder}/").warehouse_uri == (
        f"file://{tmp_path}/{folder}"
    )


@pytest.mark.parametrize("folder", ["a#b", "a?b", "a%20b", "a\udcff"])
def test_a_folder_whose_path_libraries_would_change_is_refused(folder: str) -> None:
    with pytest.raises(ValidationError, match="the path holds"):
        Settings(home=Path(folder))


@pytest.mark.parametrize("warehouse", ["gs://bucket/lake", "az://container/lake", "s3a://bucket/lake"])
def test_tables_lie_in_a_folder_or_at_s3(warehouse: str) -> None:
    with pytest.raises(ValidationError, match=f"tables cannot lie at {warehouse[:3]}.*name a folder or s3"):
        Settings(warehouse=warehouse)


@pytest.mark.parametrize("warehouse", ["s3:/bucket/lake", "file:/data/lake", "S3A:/bucket"])
def test_a_scheme_of_one_slash_is_not_a_folder(warehouse: str) -> None:
    with pytest.raises(ValidationError, match="looks like a scheme; write two slashes behind it"):
        Settings(warehouse=warehouse)


@pytest.mark.parametrize(
    "endpoint", ["127.0.0.1:8333", "store", "http://", "http://host:port", "ftp://host", "http://a b"]
)
def test_an_endpoint_is_the_address_of_a_server(endpoint: str) -> None:
    with pytest.raises(ValidationError, match=r"is not the address of a server; write it as http://127"):
        Settings(s3_endpoint=endpoint)


@pytest.mark.parametrize(
    "endpoint", ["http://127.0.0.1:8333", "https://store.example", "http://[::1]:9000", "https://a.b/path"]
)
def test_an_address_is_an_endpoint(endpoint: str) -> None:
    assert Settings(s3_endpoint=endpoint).s3_endpoint == endpoint


def test_a_wrong_setting_is_refused_without_showing_the_others() -> None:
    with pytest.raises(ValidationError) as refused:
        Settings(catalog="postgres", catalog_uri="mysql://u:hush@h/db", warehouse="/w")
    assert "begin FACTORY_CATALOG_URI with postgresql://" in str(refused.value)
    assert "hush" not in str(refused.value)


def test_an_empty_variable_counts_as_unset(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FACTORY_S3_ENDPOINT", "")
    monkeypatch.setenv("FACTORY_SPARK_DRIVER_MEMORY", "")
    assert Settings() == Settings(s3_endpoint=None, spark_driver_memory="4g")


@pytest.mark.parametrize("password", ["hu%sh", "hu@sh", "hu/sh", "hu?sh", "hu#sh"])
@pytest.mark.parametrize("setting", ["catalog_uri", "dagster_uri"])
def test_a_password_that_postgres_would_cut_and_show_is_refused(setting: str, password: str) -> None:
    with pytest.raises(ValidationError, match="holds one of") as refused:
        Settings.model_validate({setting: f"postgresql://u:{password}@h/db"})
    assert "sh@h" not in str(refused.value)


@pytest.mark.parametrize("setting", ["catalog_uri", "dagster_uri"])
@pytest.mark.parametrize("hosts", ["h:abc", "h:999999", "[::1", "[::1]x", "h:5432,g:port", "h:54:32"])
def test_a_port_that_is_no_number_is_refused_without_the_password(setting: str, hosts: str) -> None:
    with pytest.raises(ValidationError, match=r"` is no host with a port; write them as db:5432") as raised:
        Settings(**{setting: f"postgresql://u:hush@{hosts}/db"})
    assert "hush" not in str(raised.value)


@pytest.mark.parametrize(
    "hosts", ["h", "h:5432", "[::1]:5432", "10.0.0.1:5,db.example:6", "", "%2Fvar%2Frun"]
)
def test_hosts_with_and_without_ports_are_taken(hosts: str) -> None:
    uri = f"postgresql://u:p@{hosts}/db?sslmode=require"
    assert Settings(dagster_uri=uri).dagster_uri == uri


def test_another_process_gets_the_same_settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    given = Settings(
        home=tmp_path,
        catalog="postgres",
        catalog_uri="postgres://u:p@h/db",
        warehouse="s3://b/w",
        spark_driver_memory="1G",
        installation_share=0.05,
    )
    for name, value in given.environment().items():
        monkeypatch.setenv(name, value)
    assert Settings() == given
    assert given.catalog_uri == "postgresql://u:p@h/db"  # SQLAlchemy has forgotten the short scheme
