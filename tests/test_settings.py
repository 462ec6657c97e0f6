"""Settings as a process reads them: misspelt names told, secrets hidden, the same for another process."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from pydantic import ValidationError

from factory.errors import ConfigurationError
from factory.settings import Settings, settings, unknown_variables


@pytest.fixture(autouse=True)
def _read_anew() -> Iterator[None]:
    settings.cache_clear()
    yield
    settings.cache_clear()


def test_a_misspelt_variable_is_told_with_the_one_it_is_near(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FACTORY_SPARK_MASTR", "spark://h:7077")
    with pytest.raises(
        ConfigurationError, match=r"Unknown setting FACTORY_SPARK_MASTR.*FACTORY_SPARK_MASTER\?"
    ):
        settings()


def test_a_variable_of_somebody_else_is_listed_and_in_nobodys_way(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FACTORY_FLOOR", "2")
    assert isinstance(settings(), Settings)
    assert unknown_variables() == [("FACTORY_FLOOR", None)]


@pytest.mark.parametrize("size", ["4g", "512m", "1T", "2048k"])
def test_a_size_of_memory_is_one_the_jvm_knows(size: str) -> None:
    assert Settings(spark_driver_memory=size).spark_driver_memory == size.lower()


@pytest.mark.parametrize("size", ["4 gigs", "0g", "4.5g", "4", "", "-1g", "4gb"])
def test_another_size_is_refused(size: str) -> None:
    with pytest.raises(ValidationError, match="not a memory size"):
        Settings(spark_executor_memory=size)


def test_a_wrong_setting_is_refused_without_showing_the_others() -> None:
    with pytest.raises(ValidationError) as refused:
        Settings(catalog="postgres", catalog_uri="mysql://u:hush@h/db", warehouse="/w")
    assert "begin FACTORY_CATALOG_URI with postgresql://" in str(refused.value)
    assert "hush" not in str(refused.value)


def test_an_empty_variable_is_as_good_as_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FACTORY_S3_ENDPOINT", "")
    monkeypatch.setenv("FACTORY_SPARK_DRIVER_MEMORY", "")
    assert Settings() == Settings(s3_endpoint=None, spark_driver_memory="4g")


@pytest.mark.parametrize("password", ["hu%sh", "hu@sh", "hu/sh", "hu?sh", "hu#sh"])
@pytest.mark.parametrize("setting", ["catalog_uri", "dagster_uri"])
def test_a_password_that_postgres_would_cut_and_show_is_refused(setting: str, password: str) -> None:
    with pytest.raises(ValidationError, match="holds one of") as refused:
        Settings.model_validate({setting: f"postgresql://u:{password}@h/db"})
    assert "sh@h" not in str(refused.value)


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
