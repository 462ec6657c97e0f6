"""The Dagster instance of a lake: its file follows the settings until somebody edits it, without secrets."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
import yaml

from factory.errors import ConfigurationError
from factory.orchestration.host.instance import open_instance, prepare_home
from factory.orchestration.host.launcher import LakeRunLauncher
from factory.settings import Settings

URI = "postgresql://u:hush@127.0.0.1:1/d"


@pytest.fixture(autouse=True)
def _environment_as_it_was(monkeypatch: pytest.MonkeyPatch) -> None:
    """Restore what opening an instance sets for the processes to come."""
    for name in ("DAGSTER_HOME", "FACTORY_DAGSTER_URI"):
        monkeypatch.setenv(name, "")


def written(settings: Settings) -> str:
    prepare_home(settings)
    return (settings.files.dagster_config).read_text()


def test_the_file_follows_the_settings_and_names_no_secret(tmp_path: Path) -> None:
    embedded = written(Settings(home=tmp_path))
    on_postgres = written(Settings(home=tmp_path, dagster_uri=URI))
    assert "storage" not in yaml.safe_load(embedded)
    storage = yaml.safe_load(on_postgres)["storage"]["custom"]
    assert storage["config"] == {"postgres_url": {"env": "FACTORY_DAGSTER_URI"}}
    assert os.environ["FACTORY_DAGSTER_URI"] == URI
    assert "hush" not in on_postgres
    assert written(Settings(home=tmp_path, dagster_uri=None)) == embedded


def test_an_edited_file_stays_as_it_is(tmp_path: Path) -> None:
    settings = Settings(home=tmp_path)
    edited = written(settings).replace("limit: 1", "limit: 3", 1)
    (settings.files.dagster_config).write_text(edited)
    assert written(settings) == edited


def test_an_edited_file_without_the_storage_of_the_settings_is_refused(tmp_path: Path) -> None:
    settings = Settings(home=tmp_path)
    edited = written(settings) + "# mine\n"
    (settings.files.dagster_config).write_text(edited)
    with pytest.raises(ConfigurationError, match="which was edited, does not name it"):
        prepare_home(Settings(home=tmp_path, dagster_uri=URI))
    assert (settings.files.dagster_config).read_text() == edited


def test_a_file_that_dagster_does_not_take_is_one_sentence(tmp_path: Path) -> None:
    settings = Settings(home=tmp_path)
    written(settings)
    (settings.files.dagster_config).write_text("no_such_key: 1\n")
    with pytest.raises(ConfigurationError, match=r"Dagster does not start with .*dagster\.yaml"):
        open_instance(settings)


def test_the_instance_has_the_launcher_that_asks_the_lake(tmp_path: Path) -> None:
    with open_instance(Settings(home=tmp_path)) as instance:
        assert isinstance(instance.run_launcher, LakeRunLauncher)
        assert instance.run_monitoring_enabled


@pytest.mark.parametrize(
    "content", [b"storage: [", b"\xff\xfe", b"a", bytes(40), b"storage:\n  nowhere: 1\n"]
)
def test_a_dagster_yaml_that_dagster_cannot_read_is_named(tmp_path: Path, content: bytes) -> None:
    settings = Settings(home=tmp_path)
    prepare_home(settings)
    (settings.files.dagster_config).write_bytes(content)
    with pytest.raises(ConfigurationError, match=r"dagster\.yaml"):
        open_instance(settings)
