"""A local run starts from the jars that it can use, and these refer to no class of the others."""

from __future__ import annotations

import os
import struct
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pyspark
import pytest
from pyspark.sql import SparkSession

from factory.settings import Settings
from factory.spark.home import UNUSED, is_own, is_unused, require_home, spark_jars, started_from_home

INSTALLED = Path(pyspark.__file__).resolve().parent
JARS = sorted((INSTALLED / "jars").glob("*.jar"))
_CLASS = 7
# Bytes of an entry in the constant pool of a class file behind its tag (JVM specification, table 4.4-A).
_LENGTHS = dict.fromkeys((3, 4, 9, 10, 11, 12, 17, 18), 4) | dict.fromkeys((7, 8, 16, 19, 20), 2) | {15: 3}


@pytest.mark.spark
def test_the_session_starts_from_the_home(spark: SparkSession, lake_settings: Settings) -> None:
    jvm = spark._jvm
    assert jvm is not None
    places = jvm.java.lang.System.getProperty("java.class.path").split(os.pathsep)
    names = {Path(place).name for place in places}
    assert {jar.name for jar in spark_jars(lake_settings)} <= names
    assert not [name for name in names if is_unused(Path(name))]


def test_every_name_of_an_unused_part_is_that_of_a_jar() -> None:
    for part, names in UNUSED.items():
        for name in names.split():
            assert any(jar.name.startswith(name) for jar in JARS), f"{part}: no jar begins with {name}"


def test_the_home_has_the_other_jars_and_is_made_once(tmp_path: Path) -> None:
    settings = Settings(home=tmp_path / "lake", cache=tmp_path / "my cache")
    settings.cache.mkdir()
    assert spark_jars(settings) == JARS
    require_home(settings)
    jars = spark_jars(settings)
    assert [jar.resolve() for jar in jars] == [jar for jar in JARS if not is_unused(jar)]
    home = jars[0].parents[1]
    assert (home / "bin" / "spark-submit").samefile(INSTALLED / "bin" / "spark-submit")
    before = home.stat().st_mtime_ns
    require_home(settings)
    assert home.stat().st_mtime_ns == before
    with started_from_home(settings):
        assert os.environ["SPARK_HOME"] == str(home)
    assert "SPARK_HOME" not in os.environ


def test_a_home_of_the_users_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SPARK_HOME", str(INSTALLED))
    settings = Settings(home=tmp_path / "lake", cache=tmp_path)
    require_home(settings)
    assert not is_own(settings)
    assert list(tmp_path.iterdir()) == []
    with started_from_home(settings):
        assert os.environ["SPARK_HOME"] == str(INSTALLED)
    assert os.environ["SPARK_HOME"] == str(INSTALLED)


@pytest.mark.parametrize("master", ["spark://host:7077", "yarn"])
def test_a_cluster_starts_from_all_jars(tmp_path: Path, master: str) -> None:
    settings = Settings(home=tmp_path / "lake", cache=tmp_path, spark_master=master)
    require_home(settings)
    assert spark_jars(settings) == JARS


def test_a_cache_that_cannot_be_written_gets_none(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    settings = Settings(home=tmp_path / "lake", cache=tmp_path)
    (tmp_path / "spark").touch()  # no folder, so nothing can be made in it
    require_home(settings)
    assert "Spark starts with all of its jars" in caplog.text
    assert spark_jars(settings) == JARS


def test_no_class_that_stays_refers_to_one_that_goes() -> None:
    jars = [jar for jar in JARS if not is_unused(jar)]
    stay = {name for jar in jars for name in _classes(jar)}
    missing = {name.encode() for jar in JARS for name in _classes(jar) if name not in stay}
    assert len(missing) > 10_000
    for jar in jars:
        with zipfile.ZipFile(jar) as archive:
            for name in _classes(jar):
                needs = _references(archive.read(f"{name}.class")) & missing
                assert not needs, f"{name} of {jar.name} needs {needs}"


def _classes(jar: Path) -> list[str]:
    with zipfile.ZipFile(jar) as archive:
        names = [name.removesuffix(".class") for name in archive.namelist() if name.endswith(".class")]
    return [name for name in names if not name.startswith("META-INF/")]


def _references(content: bytes) -> set[bytes]:
    """Return the names of the classes in the constant pool of a class file."""
    texts = {}
    places = []
    for number, tag, entry in _constants(content):
        if tag == 1:
            texts[number] = entry
        elif tag == _CLASS:
            places.append(struct.unpack(">H", entry)[0])
    return {texts[place] for place in places}


def _constants(content: bytes) -> Iterator[tuple[int, int, bytes]]:
    """Yield number, tag and bytes of the constants in a class file that are no long or double numbers."""
    (end,) = struct.unpack_from(">H", content, 8)
    at, number = 10, 1
    while number < end:
        tag = content[at]
        if tag == 1:
            (length,) = struct.unpack_from(">H", content, at + 1)
            yield number, tag, content[at + 3 : at + 3 + length]
            at += 3 + length
        elif tag in (5, 6):  # of eight bytes, which take two numbers
            at += 9
            number += 1
        else:
            yield number, tag, content[at + 1 : at + 1 + _LENGTHS[tag]]
            at += 1 + _LENGTHS[tag]
        number += 1
