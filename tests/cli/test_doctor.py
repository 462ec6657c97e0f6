"""What `factory doctor` says of a machine and of settings that do not fit it."""

from __future__ import annotations

import io
import subprocess
import sys
from pathlib import Path

import psutil
import pytest
from rich.console import Console

from factory.cli.doctor import GIB, Finding, examine, report
from factory.errors import MachineError
from factory.settings import Settings


def finding(settings: Settings, name: str) -> Finding:
    (found,) = (it for it in examine(settings) if it.name == name)
    return found


def on_servers(home: Path) -> Settings:
    """A lake whose servers do not answer."""
    uri = "postgresql://u:hush@127.0.0.1:1/d"
    return Settings(
        home=home,
        cache=home,
        catalog="postgres",
        catalog_uri=uri,
        dagster_uri=uri,
        warehouse="s3://b/w",
        s3_endpoint="http://127.0.0.1:1",
        s3_access_key_id="k",
        s3_secret_access_key="hush",
    )


def test_an_embedded_lake_is_asked_about_no_server(tmp_path: Path) -> None:
    names = [it.name for it in examine(Settings(home=tmp_path))]
    assert names[-2:] == ["Spark's jars", "lake"]


def test_a_heap_the_machine_cannot_give_is_told_with_the_one_it_can(tmp_path: Path) -> None:
    total = psutil.virtual_memory().total // GIB
    too_much = finding(Settings(home=tmp_path, spark_driver_memory=f"{total}g"), "driver's memory")
    assert too_much.remedy == f"Set FACTORY_SPARK_DRIVER_MEMORY to at most {total // 2}g."
    assert finding(Settings(home=tmp_path, spark_driver_memory="512m"), "driver's memory").good


def test_an_unknown_variable_is_listed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert finding(Settings(home=tmp_path), "settings").good
    monkeypatch.setenv("FACTORY_FLOOR", "2")
    found = finding(Settings(home=tmp_path), "settings")
    assert (found.good, found.found) == (False, "unknown: FACTORY_FLOOR")


def test_a_file_of_datasets_is_read_and_its_faults_are_named(tmp_path: Path) -> None:
    file = tmp_path / "my.yaml"
    entry = "{name: notes, kind: prose, format: files, paths: .}"
    file.write_text(f"datasets:\n- {entry}\n")
    found = finding(Settings(home=tmp_path, datasets=file), "datasets")
    assert (found.good, found.found) == (True, "the datasets of my.yaml (notes)")
    file.write_text(f"datasets:\n- {entry.replace('paths', 'pahts')}\n")
    found = finding(Settings(home=tmp_path, datasets=file), "datasets")
    assert found.found == f"{file} is wrong"
    assert found.remedy.splitlines() == [
        "my.yaml, line 2, datasets[0].pahts: Unknown field `pahts`. Did you mean `paths`?",
    ]
    gone = finding(Settings(home=tmp_path, datasets=tmp_path / "none.yaml"), "datasets")
    assert "cannot be read (No such file or directory). Name a file." in gone.remedy
    assert finding(Settings(home=tmp_path), "datasets").found.endswith("of this Python installation")


WITHOUT_KERNELS = """
import sys
from pathlib import Path
sys.modules["factory._native"] = None
from factory.cli.doctor import examine
from factory.settings import Settings
found = examine(Settings(home=Path(sys.argv[1])))
print([it.name for it in found if it.remedy == "Install the package again; in a clone, run make setup."])
"""


def test_without_the_native_kernels_the_other_checks_are_made(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT_KERNELS, str(tmp_path)],
        capture_output=True,
        text=True,
        check=False,
        timeout=600,
    )
    assert (done.stdout, done.stderr) == ("['native kernels', 'datasets', 'lake']\n", "")


def test_a_machine_without_rust_is_in_order(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    found = finding(Settings(home=tmp_path), "Rust")
    assert (found.good, found.found.partition(",")[0]) == (True, "none")


def test_jars_that_were_not_fetched_are_counted_for_the_engines_named(tmp_path: Path) -> None:
    found = finding(on_servers(tmp_path), "Spark's jars")
    assert (found.good, found.found) == (False, f"0 of 3 in {tmp_path}")
    assert found.remedy == f"Fetch them: {sys.executable} -m factory.spark"


@pytest.mark.parametrize("name", ["Iceberg catalog", "Dagster's records", "object store", "conditional puts"])
def test_a_server_that_is_away_is_a_finding_with_its_remedy(tmp_path: Path, name: str) -> None:
    found = finding(on_servers(tmp_path), name)
    assert "Connection refused" in found.found
    assert found.remedy.startswith("Start it, or correct FACTORY_")
    assert "hush" not in f"{found}"


def test_what_is_found_is_shown_to_the_letter(tmp_path: Path) -> None:
    said = io.StringIO()
    with pytest.raises(MachineError):
        report(Settings(home=tmp_path / "a[b]", cache=tmp_path / "c[/d]"), Console(file=said, width=1_000))
    shown = said.getvalue()
    assert str(tmp_path / "a[b]") in shown
    assert str(tmp_path / "c[/d]") in shown
