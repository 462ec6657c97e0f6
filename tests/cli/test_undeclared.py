"""Tables that the datasets file does not declare are marked where people meet them."""

from __future__ import annotations

import json
from pathlib import Path

import dagster as dg
import pytest

from factory.cli.undeclared import undeclared_tables
from factory.lake.names import TableName
from factory.settings import Settings
from tests.blender.lakes import make_lake
from tests.cli.command import process

DATASETS = "datasets: [{name: prose, kind: prose, format: files, paths: texts}]\n"
BLEND = "sources: [{table: packed.code, weight: 2}, {table: packed.prose, weight: 6}]\n"


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A lake with `packed.code` and `packed.prose`, a datasets file of the latter alone, and a blend file."""
    home = tmp_path_factory.mktemp("renamed")
    make_lake(home, code=40, prose=300)
    (home / "texts").mkdir()
    (home / "texts" / "a.txt").write_text("A text.")
    (home / "datasets.yaml").write_text(DATASETS)
    (home / "broken.yaml").write_text("datasets: [")
    (home / "blend.yaml").write_text(BLEND)
    return home


def lines_of(table: str, listing: str) -> list[str]:
    return [line for line in listing.splitlines() if line.split()[0] == table]


def test_a_listing_marks_them(home: Path) -> None:
    ended = process(home, "tables", "-f", str(home / "datasets.yaml"))
    assert [line.endswith("not declared") for line in lines_of("packed.code", ended.stdout)] == [True]
    assert [line.endswith("not declared") for line in lines_of("packed.prose", ended.stdout)] == [False]
    plain = json.loads(process(home, "tables", "-f", str(home / "datasets.yaml"), "--json").stdout)
    assert {it["table"]: it["undeclared"] for it in plain if it["table"].startswith("packed.")} == {
        "packed.code": True,
        "packed.prose": False,
    }


def test_rows_of_registered_files_are_declared_with_their_raw_table(home: Path) -> None:
    key = dg.AssetKey(["raw.prose"])
    definitions = dg.Definitions(assets=[dg.AssetSpec(key)])
    settings = Settings(home=home, datasets=home / "datasets.yaml")
    tables = [TableName(*name.split(".")) for name in ("raw.prose", "registered.prose", "registered.code")]
    assert list(map(str, undeclared_tables(settings, tables, definitions))) == ["registered.code"]


def test_without_a_file_that_can_be_read_nothing_is_marked(home: Path) -> None:
    assert "not declared" not in process(home, "tables").stdout
    ended = process(home, "tables", "-f", str(home / "broken.yaml"))
    assert (ended.returncode, "not declared" in ended.stdout) == (0, False)
    assert ended.stderr.startswith("Undeclared tables are not marked: ")
    assert lines_of("packed.code", ended.stdout)


def test_a_dry_run_and_a_blend_of_them_say_so(home: Path) -> None:
    file = str(home / "datasets.yaml")
    forecast = process(home, "materialize", "-f", file, "--changed", "--dry-run", "*").stdout
    assert f"packed.code, is not declared in {file}: no run makes it again" in forecast
    created = process(home, "--datasets", file, "blend", "create", str(home / "blend.yaml"))
    assert f"packed.code is not declared in {file}: the blend serves rows that no run" in created.stderr
    assert "packed.prose is not declared" not in created.stderr
    assert len(created.stdout.strip()) == 32
