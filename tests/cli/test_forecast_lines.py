"""What a dry run prints of a corpus of more than 66 tables, one limit of which changes."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import dagster as dg
import pyarrow as pa
import pytest
from rich.text import Text

from factory.cli.forecast_lines import dataset_lines, forecast_json, table_lines
from factory.lake.lineage import Lineage
from factory.lake.names import TableName
from factory.lake.schemas.dedup import COMPONENTS
from factory.lake.tables import Lake
from factory.orchestration.datasets.assets import corpus
from factory.orchestration.host.partitions import batches
from factory.orchestration.table.forecast import Forecast, forecast
from factory.orchestration.table.reuse import listings_of
from factory.orchestration.table.table_asset import declaration_of
from factory.settings import Settings

DATASETS = """\
datasets:
  - name: notes
    kind: prose
    format: files
    paths: notes
    limits: {word_count: [50, 100000]}
    variants:
      long: {limits: {word_count: [150, 100000]}}
  - {name: letters, kind: prose, format: files, paths: letters}
  - {name: essays, kind: prose, format: files, paths: essays, group: essays}
  - {name: code, kind: code, format: files, paths: code, repository: code}
"""
MOST_LINES = 20


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr("factory.ingest.state.SETTLED_NS", -(10**9))  # as if the files were old
    for name in ("notes", "letters", "essays", "code"):
        file = tmp_path / name / "a.txt"
        file.parent.mkdir()
        file.write_text("text")
    (tmp_path / "datasets.yaml").write_text(DATASETS)
    return tmp_path


@pytest.fixture
def lake(folder: Path) -> Lake:
    """A lake with every table of the datasets, as a run leaves it."""
    lake = Lake(Settings(home=folder / "lake"))
    for asset in in_order(folder):
        declaration = declaration_of(asset)
        for output in declaration.outputs:
            rows = pa.Table.from_pylist([{"doc_id": "a", "component": "a"}], schema=COMPONENTS.columns)
            lineage = Lineage(
                asset=str(declaration.table),
                run_id="run",
                code_version=declaration.code_version,
                config=declaration.config,
                values=dict(declaration.values),
                listings={
                    key or "": files.to_text() for key, files in listings_of(declaration, [None]).items()
                },
                upstream={
                    str(table): lake.published(table).snapshot_id for table in declaration.upstream.values()
                },
                content=str(output.table),
            )
            table = lake.create(output.table, COMPONENTS)
            table.append(rows, snapshot_properties=lineage.to_properties())
    return lake


def in_order(folder: Path) -> Iterator[dg.AssetsDefinition]:
    """The assets of the datasets, each after those it reads."""
    waiting = list(corpus(folder / "datasets.yaml").assets)
    written: set[dg.AssetKey] = set()
    while waiting:
        ready = [asset for asset in waiting if set(asset.keys_by_input_name.values()) <= written]
        yield from ready
        written |= {key for asset in ready for key in asset.keys}
        waiting = [asset for asset in waiting if asset not in ready]


def forecasts(folder: Path, lake: Lake, *, reuse: bool = True) -> list[Forecast]:
    assets = list(in_order(folder))
    instance = dg.DagsterInstance.ephemeral()
    keys = [key for asset in assets for key in asset.keys]
    return forecast(lake, assets, batches(assets, keys, instance, None), instance, reuse=reuse)


def lines(found: list[Forecast]) -> list[str]:
    return [" ".join(Text.from_markup(line).plain.split()) for line in dataset_lines(found)]


def test_nothing_changed_is_one_line(folder: Path, lake: Lake) -> None:
    found = forecasts(folder, lake)
    assert len(found) >= 66
    [line] = lines(found)
    assert line.startswith(f"keep {len(found)} tables: ")


def test_one_changed_limit_is_named_and_what_depends_on_it_collapsed(folder: Path, lake: Lake) -> None:
    (folder / "datasets.yaml").write_text(DATASETS.replace("[50, ", "[100, "))
    found = forecasts(folder, lake)
    verdicts = {str(it.table): it.verdict for it in found}
    printed = lines(found)
    assert printed[0] == "make filtered.notes because word_count 50 -> 100"
    assert len(printed) <= MOST_LINES
    conditions = {line.partition(" if ")[2] for line in printed if line.startswith("maybe")}
    conditions = {re.sub(r" \([\d,]+ now\)", "", condition) for condition in conditions}
    assert conditions <= {"filtered.notes changes", "dedup.prose_signatures has 20,000 distinct texts"}
    assert [line for line in printed if line.startswith("maybe") and "of dedup prose" in line]
    # What no path leads to from the changed table stays: other groups, other variants, what was measured.
    for table in ("raw.notes", "signals.notes", "filtered.notes__long", "packed.code", "dedup.essays_edges"):
        assert verdicts[table] == "keep"
    for table in ("deduplicated.notes", "deduplicated.letters", "packed.notes", "dedup.prose_decisions"):
        assert verdicts[table] == "maybe"
    assert len(list(table_lines(found))) == len(found)
    assert {load["table"]: load["verdict"] for load in json.loads(forecast_json(found))} == verdicts


def test_a_new_file_is_named(folder: Path, lake: Lake) -> None:
    (folder / "essays" / "new.txt").write_text("new")
    printed = lines(forecasts(folder, lake))
    assert printed[0] == "make raw.essays because +1 new.txt"
    assert any(line.endswith("if raw.essays changes") for line in printed)


def test_a_plain_run_makes_everything_in_few_lines(folder: Path, lake: Lake) -> None:
    printed = lines(forecasts(folder, lake, reuse=False))
    assert len(printed) <= MOST_LINES
    assert any("because it was selected" in line for line in printed)


def test_one_reason_of_many_datasets_is_one_line() -> None:
    root = TableName("filtered", "d00")
    found = [
        Forecast(TableName(stage, f"d{n:02}"), f"d{n:02}", "maybe", "", (root,))
        for n in range(30)
        for stage in ("deduplicated", "tokenized", "packed")
    ]
    shown = ", ".join(f"3 of d{n:02}" for n in range(9))
    assert lines(found) == [f"maybe 90 tables: {shown}, 63 of 21 others if filtered.d00 changes"]
    kept = [Forecast(it.table, it.group, "keep", "") for it in found]
    assert lines(kept) == [f"keep 90 tables: {shown}, 63 of 21 others"]
    left_out = [Forecast(it.table, it.group, "leave", f"there are {n}") for n, it in enumerate(found)]
    assert lines(left_out) == [f"leave 90 tables that only people read: {shown}, 63 of 21 others"]


def test_a_condition_names_few_of_many_tables() -> None:
    def line(n_roots: int) -> str:
        roots = tuple(TableName("raw", f"d{n}") for n in range(n_roots))
        [text] = lines([Forecast(TableName("dedup", "bags"), "dedup/prose", "maybe", "", roots)])
        return text

    assert line(2) == "maybe dedup.bags if raw.d0 or raw.d1 changes"
    assert line(9) == "maybe dedup.bags if raw.d0 or raw.d1 or raw.d2 or one of 6 others changes"
