"""Both engines get the same catalog and warehouse from one settings object."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from pydantic import ValidationError
from sqlalchemy.engine import make_url
from sqlalchemy.exc import OperationalError

from factory.cli.error_boundary import translate
from factory.errors import DamagedFile, MachineError
from factory.lake import catalog
from factory.lake.catalog import (
    asking_catalog,
    open_catalog,
    pyiceberg_properties,
    spark_properties,
    spark_secrets,
)
from factory.lake.tables import Lake
from factory.settings import Settings
from factory.spark.session import spark_conf

S3 = {"s3_endpoint": "http://127.0.0.1:9000", "s3_access_key_id": "k", "s3_secret_access_key": "s"}


def spark_value(settings: Settings, key: str) -> str | None:
    return spark_properties(settings).get(f"spark.sql.catalog.lake.{key}")


def test_both_engines_open_one_sqlite_file(tmp_path: Path) -> None:
    settings = Settings(home=tmp_path)
    database = str(tmp_path / "catalog.db")
    assert database in pyiceberg_properties(settings)["uri"]
    assert database in str(spark_value(settings, "uri"))
    assert spark_value(settings, "warehouse") == pyiceberg_properties(settings)["warehouse"]


@pytest.mark.parametrize(
    "options",
    [
        {"catalog": "rest", "catalog_uri": "http://h:8181", "warehouse": "s3://b/w", **S3},
        {"catalog": "postgres", "catalog_uri": "postgresql://u:p@h:5433/db", "warehouse": "s3://b/w", **S3},
        {"catalog": "postgres", "catalog_uri": "postgresql://u:p@h/db", "warehouse": "/shared/warehouse"},
    ],
)
def test_both_engines_get_the_same_servers(options: dict[str, str], tmp_path: Path) -> None:
    settings = Settings(home=tmp_path, **options)  # type: ignore[arg-type]
    python, uri = pyiceberg_properties(settings), str(spark_value(settings, "uri"))
    assert spark_value(settings, "warehouse") == python["warehouse"]
    assert spark_value(settings, "s3.endpoint") == python.get("s3.endpoint")
    if settings.catalog == "rest":
        assert uri == python["uri"]
    else:
        assert uri.removeprefix("jdbc:") == options["catalog_uri"].replace("u:p@", "")
        assert spark_secrets(settings)["spark.sql.catalog.lake.jdbc.user"] == "u"
        assert python["uri"].startswith("postgresql+psycopg2://u:p@h")


def test_password_and_options_of_a_uri_reach_both_engines(tmp_path: Path) -> None:
    uri = "postgresql://u%40team:p%2Fw%25@[::1]:5433/db?sslmode=require"
    settings = Settings(home=tmp_path, catalog="postgres", catalog_uri=uri, warehouse="/w")
    assert spark_secrets(settings) == {
        "spark.sql.catalog.lake.jdbc.user": "u@team",
        "spark.sql.catalog.lake.jdbc.password": "p/w%",
    }
    assert spark_value(settings, "uri") == "jdbc:postgresql://[::1]:5433/db?sslmode=require"
    engine = make_url(pyiceberg_properties(settings)["uri"])
    assert (engine.username, engine.password, engine.host) == ("u@team", "p/w%", "::1")
    assert engine.query["sslmode"] == "require"


def test_no_secret_is_shown_or_passed_on_a_command_line(tmp_path: Path) -> None:
    settings = Settings(
        home=tmp_path,
        catalog="postgres",
        catalog_uri="postgresql://u:hush1@h/db",
        dagster_uri="postgresql://u:hush2@h/db",
        warehouse="s3://b/w",
        s3_access_key_id="k",
        s3_secret_access_key="hush3",
    )
    assert "hush" not in f"{settings!r} {settings} {spark_conf(settings)}"
    assert settings.environment()["FACTORY_S3_SECRET_ACCESS_KEY"] == "hush3"


def test_a_server_catalog_without_its_address_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValidationError, match="FACTORY_CATALOG_URI"):
        Settings(home=tmp_path, catalog="rest", warehouse="s3://b/w")


def test_an_unreachable_catalog_is_named_without_its_password(tmp_path: Path) -> None:
    uri = "http://me:hush@127.0.0.1:1/lake"
    settings = Settings(home=tmp_path, catalog="rest", catalog_uri=uri, warehouse="/w")
    with pytest.raises(MachineError) as raised:
        open_catalog(settings)
    assert str(raised.value).startswith(
        "The catalog http://127.0.0.1:1/lake does not answer (connection refused). Start it"
    )
    assert translate(raised.value) is raised.value  # and not taken for a JVM that died


def test_a_misspelt_setting_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValidationError, match="wharehouse"):
        Settings(home=tmp_path, wharehouse="x")  # type: ignore[call-arg]


def test_a_catalog_that_is_not_a_database_is_one_sentence(tmp_path: Path) -> None:
    settings = Settings(home=tmp_path)
    settings.files.catalog_database.write_bytes(b"no database at all, but long enough to look at" * 100)
    with pytest.raises(DamagedFile, match=r"catalog\.db cannot be read"):
        Lake(settings).names()


def test_a_locked_catalog_is_not_called_damaged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    settings = Settings(home=tmp_path)
    lake = Lake(settings)
    lake.names()
    with closing(sqlite3.connect(settings.files.catalog_database)) as other:
        other.execute("BEGIN EXCLUSIVE")
        lake.catalog.engine.dispose()  # type: ignore[attr-defined]
        monkeypatch.setattr(catalog, "_LOCK_WAIT_S", 0)
        with pytest.raises(MachineError, match=r"catalog\.db stays locked by another process"):
            Lake(settings).names()


def test_a_folder_in_place_of_the_catalog_is_not_called_damaged(tmp_path: Path) -> None:
    settings = Settings(home=tmp_path)
    settings.files.catalog_database.mkdir()
    with pytest.raises(MachineError, match=r"catalog\.db cannot be used .unable to open"):
        Lake(settings).names()


def test_an_error_of_a_catalog_server_is_not_translated(tmp_path: Path) -> None:
    settings = Settings(home=tmp_path, catalog="postgres", catalog_uri="postgresql://h/db", warehouse="/w")
    error = OperationalError("SELECT 1", {}, Exception("the server closed the connection"))
    with pytest.raises(OperationalError) as raised, asking_catalog(settings):
        raise error
    assert (raised.value, raised.value.__cause__) == (error, None)


def test_a_lake_in_a_file_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(MachineError, match="cannot be written"):
        open_catalog(Settings(home=tmp_path / "file" / "lake"))
