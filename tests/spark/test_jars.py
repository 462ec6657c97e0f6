"""Spark's jars are fetched whole or not at all, and a failed fetch is one sentence."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from factory.errors import MachineError
from factory.settings import Settings
from factory.spark.jars import ALL_JARS, coordinates, jar_file, missing_jars
from factory.spark.session import _require_jars


def test_a_jar_that_is_not_fetched_is_missing(tmp_path: Path) -> None:
    settings = Settings(home=tmp_path, cache=tmp_path / "cache")
    first, second = (jar_file(settings, name) for name in coordinates(settings))
    first.parent.mkdir(parents=True)
    first.touch()
    assert missing_jars(settings, coordinates(settings)) == [coordinates(settings)[1]]
    second.touch()
    assert missing_jars(settings, coordinates(settings)) == []
    assert len(missing_jars(settings, ALL_JARS)) == 2


@pytest.mark.process
def test_a_failed_fetch_leaves_nothing_and_is_one_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("JAVA_HOME", raising=False)
    cache = tmp_path / "cache"
    (cache / ".making-1" / "jars").mkdir(parents=True)  # of a process that was killed
    command = [sys.executable, "-m", "factory.spark"]
    environment = os.environ | {"FACTORY_CACHE": str(cache)}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == MachineError.exit_code
    assert done.stderr.startswith("No Java was found")
    assert len(done.stderr.splitlines()) == 1
    assert sorted(path.name for path in cache.iterdir()) == ["making.lock"]
    with pytest.raises(MachineError, match="No Java was found"):
        _require_jars(Settings(home=tmp_path, cache=cache))
