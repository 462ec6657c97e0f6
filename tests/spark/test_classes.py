"""A JVM maps the archive of its classes, which is made once for each set of jars."""

from __future__ import annotations

import os
import shutil
import zipfile
from pathlib import Path

import psutil
import pytest
from pyspark import SparkContext
from pyspark.sql import SparkSession

from factory.settings import Settings
from factory.spark.classes import archive_file, require_archive
from factory.spark.jars import EMBEDDED_JARS, copy_unsigned, jar_file, signed_jars, unsigned_copy
from factory.spark.session import spark_conf


def _own_jars(cache: Path) -> None:
    """Copy the jars to a cache of their own."""
    copies = [jar_file(Settings(cache=cache), name) for name in EMBEDDED_JARS]
    copies[0].parent.mkdir(parents=True)
    for name, copy in zip(EMBEDDED_JARS, copies, strict=True):
        shutil.copy2(jar_file(Settings(), name), copy)


@pytest.mark.spark
def test_the_jvm_maps_the_archive(spark: SparkSession, lake_settings: Settings) -> None:
    assert spark.range(1).count() == 1
    jvm = psutil.Process(SparkContext._gateway.proc.pid)
    assert str(archive_file(lake_settings).resolve()) in {memory_map.path for memory_map in jvm.memory_maps()}


@pytest.mark.spark
def test_classes_of_iceberg_come_from_the_class_path(spark: SparkSession) -> None:
    jvm = spark._jvm
    assert jvm is not None
    catalog = jvm.java.lang.Class.forName("org.apache.iceberg.spark.SparkCatalog")
    assert catalog.getClassLoader().equals(jvm.java.lang.ClassLoader.getSystemClassLoader())


@pytest.mark.spark
def test_the_compiler_of_generated_code_comes_from_an_unsigned_copy(
    spark: SparkSession, lake_settings: Settings
) -> None:
    jvm = spark._jvm
    assert jvm is not None
    source = jvm.java.lang.Class.forName("org.codehaus.janino.Java").getProtectionDomain().getCodeSource()
    copies = {unsigned_copy(lake_settings, jar).as_uri() for jar in signed_jars()}
    assert source.getLocation().toURI().toString().replace("file:/", "file:///") in copies
    assert source.getCertificates() is None


def test_a_copy_has_every_class_of_a_signed_jar_and_its_time(tmp_path: Path) -> None:
    jars = signed_jars()
    assert jars
    for jar in jars:
        copy_unsigned(jar, tmp_path / jar.name)
        with zipfile.ZipFile(jar) as signed, zipfile.ZipFile(tmp_path / jar.name) as copy:
            classes = [name for name in signed.namelist() if name.endswith(".class")]
            assert any(name.endswith(".SF") for name in signed.namelist())
            assert not any(name.endswith(".SF") for name in copy.namelist())
            assert {name: copy.read(name) for name in classes} == {
                name: signed.read(name) for name in classes
            }
        assert int((tmp_path / jar.name).stat().st_mtime) == int(jar.stat().st_mtime)


@pytest.mark.slow
@pytest.mark.process
def test_an_archive_is_made_in_a_cache_without_one(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    settings = Settings(home=tmp_path / "lake", cache=tmp_path / "my cache")
    _own_jars(settings.cache)
    require_archive(settings)
    archive = archive_file(settings)
    assert [path.name for path in archive.parent.iterdir() if path.name != "making.lock"] == [archive.name]
    assert capfd.readouterr().out.count("Archiving") == 1
    _assert_archive_serves_its_jars_alone(settings)
    assert capfd.readouterr().out.count("Archiving") == 0


def test_an_archive_that_exists_is_mapped_and_not_made_again(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    settings = Settings(home=tmp_path / "lake", cache=tmp_path / "my cache")
    _own_jars(settings.cache)
    archive = archive_file(settings)
    archive.parent.mkdir()
    archive.touch()
    _assert_archive_serves_its_jars_alone(settings)
    assert capfd.readouterr().out.count("Archiving") == 0


def _assert_archive_serves_its_jars_alone(settings: Settings) -> None:
    """Check that the next JVM maps the archive of `settings`, until a jar has another time."""
    archive = archive_file(settings)
    require_archive(settings)
    assert f"-XX:SharedArchiveFile={archive}" in spark_conf(settings)["spark.driver.extraJavaOptions"]
    os.utime(jar_file(settings, EMBEDDED_JARS[0]), (0, 0))
    assert archive_file(settings) != archive
    assert "SharedArchiveFile" not in spark_conf(settings)["spark.driver.extraJavaOptions"]


def test_a_jvm_that_writes_no_archive_is_asked_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("JAVA_HOME", raising=False)
    settings = Settings(home=tmp_path / "lake", cache=tmp_path)
    require_archive(settings)
    require_archive(settings)
    assert capfd.readouterr().out.count("Archiving") == 1
    (log,) = archive_file(settings).parent.glob("*.log")
    assert "No Java was found" in log.read_text()


def test_no_archive_is_made_where_no_cache_is(tmp_path: Path) -> None:
    settings = Settings(home=tmp_path / "lake", cache=tmp_path / "absent")
    require_archive(settings)
    assert not settings.cache.exists()


def test_a_lake_on_servers_keeps_its_jars_for_executors(tmp_path: Path) -> None:
    conf = spark_conf(Settings(home=tmp_path, spark_master="spark://host:7077"))
    assert "iceberg" in conf["spark.jars"]
    assert "spark.driver.extraClassPath" not in conf
