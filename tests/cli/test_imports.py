"""Commands answer at once, because each imports only the packages that it needs.

The modules are counted, not the seconds: a second depends on the machine, and a package that a new import
brings along does not.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from factory.lake.names import raw
from factory.lake.schemas.ingest import RAW
from factory.lake.tables import Lake
from factory.settings import Settings
from tests.explain.lakes import publish

HEAVY = {
    *("pyspark", "pandas", "dagster", "sqlalchemy", "torch", "grpc", "networkx", "scipy"),
    "pyiceberg.table",  # the root alone and its exceptions take no time
}
RUN = """
import json, runpy, sys
sys.argv[1:], output = json.loads(sys.argv[1]), sys.argv[2]
try:
    runpy.run_module("factory.cli.main", run_name="__main__", alter_sys=True)
finally:
    with open(output, "w") as file:
        json.dump(list(sys.modules), file)
"""
IMPORT = """
import json, sys
import jobs.definitions
with open(sys.argv[2], "w") as file:
    json.dump(list(sys.modules), file)
"""
DATASETS = "datasets: [{name: notes, kind: prose, format: files, paths: notes}]"


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A lake with a table."""
    folder = tmp_path_factory.mktemp("lake")
    document = {"doc_id": "0" * 32, "source": "book", "key": "page", "text": "A page.", "content_hash": "0"}
    publish(
        Lake(Settings(home=folder)), raw("book"), RAW, [document | {"n_bytes": 7, "media_type": "text/plain"}]
    )
    return folder


def modules(tmp_path: Path, home: Path, program: str, *words: str, **environment: str) -> list[str]:
    """The modules of a process after it ran a program, without those of Python itself."""
    output = tmp_path / "modules.json"
    subprocess.run(
        [sys.executable, "-c", program, json.dumps(words), str(output)],
        env=os.environ | {"FACTORY_HOME": str(home)} | environment,
        stdout=subprocess.DEVNULL,
        check=True,
        timeout=120,
    )
    names = json.loads(output.read_text())
    return [name for name in names if name.partition(".")[0] not in sys.stdlib_module_names]


@pytest.mark.process
@pytest.mark.parametrize(
    "words, needed, most",
    [
        ("--help", set(), 350),
        ("--version", set(), 250),
        ("tables", set(), 430),
        ("blend list", set(), 480),
        ("sample raw.book", {"pyiceberg.table", "sqlalchemy", "pandas"}, 1_100),
        ("trace document page", {"pyiceberg.table", "sqlalchemy", "pandas"}, 1_200),
    ],
)
def test_a_command_imports_no_package_that_it_does_not_need(
    tmp_path: Path, home: Path, words: str, needed: set[str], most: int
) -> None:
    names = modules(tmp_path, home, RUN, *words.split())
    assert HEAVY & set(names) <= needed
    assert len(names) <= most


@pytest.mark.process
def test_the_definitions_of_assets_open_no_table(tmp_path: Path, home: Path) -> None:
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "a.md").write_text("One note.")
    file = tmp_path / "datasets.yaml"
    file.write_text(DATASETS)
    names = modules(tmp_path, home, IMPORT, FACTORY_DATASETS=str(file))
    assert HEAVY & set(names) == {"pyspark", "dagster"}
    assert len(names) <= 1_440
