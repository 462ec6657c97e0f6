"""The page on clusters: its commands run as they stand, in order, and print what it shows."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from factory.lake.names import TableName
from factory.lake.tables import Lake
from factory.settings import Settings
from tests.page_runs import ROOT, check_page
from tests.pages import Command, commands, fenced

PAGE = ROOT / "docs" / "clusters.md"
CELL = "2"  # of the mails, on the page; another machine may number the cells in another way


@pytest.mark.process
@pytest.mark.timeout(1_800)
def test_the_page_leads_from_cells_to_a_verdict_that_is_overruled(tmp_path: Path) -> None:
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    file = next(block for block in fenced(PAGE, "yaml") if "datasets.yaml" in block)
    (tmp_path / "datasets.yaml").write_text(file)
    walk = commands(PAGE)
    [n_before, *_] = [number for number, command in enumerate(walk) if f"--cell {CELL}" in command.text]
    check(tmp_path, walk[:n_before])
    cell = cell_of_mails(Lake(Settings(home=tmp_path / "lake")))
    check(tmp_path, [Command(in_cell(command.text, cell), command.shown) for command in walk[n_before:]])


def in_cell(text: str, cell: int) -> str:
    """Return a command of the page with the number that the cell of the mails has here."""
    return text.replace(f"--cell {CELL}", f"--cell {cell}").replace(f"{{{CELL}: keep}}", f"{{{cell}: keep}}")


def cell_of_mails(lake: Lake) -> int:
    """The largest cell with a word of the mails."""
    rows = lake.read(TableName.parse("clusters.web_coarse"), ["cell", "terms", "n_documents"]).to_pylist()
    of_mails = [row for row in rows if "order" in row["terms"]]
    return int(max(of_mails, key=lambda row: row["n_documents"])["cell"])


def check(folder: Path, walk: Sequence[Command]) -> None:
    """Run commands of the page on the lake of the test."""
    environment = {
        "FACTORY_HOME": str(folder / "lake"),
        "FACTORY_CACHE": str(Settings().cache),
        "FACTORY_DATASETS": "datasets.yaml",
        "COLUMNS": "120",
    }
    check_page(folder, walk, environment, within_s=900)
