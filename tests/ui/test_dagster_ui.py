"""The real Dagster UI in a real browser: the graph opens, an asset is materialized, its check and chart show.

`make pictures` runs these tests and keeps what they saw as the pictures of the docs.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import quote

import pytest
from playwright.sync_api import Page, expect, sync_playwright

from tests.orchestration.large_lake import fill
from tests.ports import free_ports

SEED_TEXT = (
    "The town library keeps a record of every book that readers have borrowed since it opened. "
    "On page {n} of volume {n} the clerk wrote that the roof leaked and that the shelves were moved. "
    "Nobody knows who moved them back, but the ledger of the following spring has them in their old place. "
)
STAGES = ("raw", "signals", "filtered")
EXPANDED = ",".join(f"global@global:{group}" for group in ("notes", "packed"))
GRAPH_VIEWPORT = {"width": 1400, "height": 1500}  # at this size the UI draws the graph's names in full size
GRAPH_PANE = {"x": 545, "y": 112, "width": 805, "height": 1290}  # without menus, so that a page shows 1:1
GROUPS_VIEWPORT = {"width": 1800, "height": 1500}
GROUPS_PANE = {"x": 560, "y": 230, "width": 1200, "height": 1080}
WAY = ("wiki", "models", "web_2", "dedup", "tokenizers", "packed", "blends")  # from left to right
WAIT_MS = 300_000  # a run starts a JVM first
BROWSER_FLAGS = [
    "--no-sandbox",  # the tests may run as root
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
]


@pytest.fixture
def address(tmp_path: Path) -> Iterator[str]:
    """A Dagster UI on a lake of one dataset, `notes`."""
    rows = [{"id": f"n{n}", "text": SEED_TEXT.format(n=n) * (1 + n % 24)} for n in range(60)]
    (tmp_path / "notes.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows) + "no json\n")
    (tmp_path / "datasets.yaml").write_text(
        "datasets:\n  - {name: notes, kind: prose, format: jsonl, key: id, paths: notes.jsonl}\n"
    )
    with _serving(tmp_path, tmp_path / "datasets.yaml") as address:
        yield address


@contextmanager
def _serving(folder: Path, datasets: Path) -> Iterator[str]:
    """A Dagster UI on the lake of a datasets file."""
    (port,) = free_ports(1)
    log = (folder / "ui.log").open("wb")
    settings = {
        "FACTORY_HOME": str(folder / "lake"),
        "FACTORY_DATASETS": str(datasets),
        "FACTORY_SPARK_DRIVER_MEMORY": "1g",
    }
    server = subprocess.Popen(
        [sys.executable, "-m", "factory.cli.main", "ui", "--port", str(port)],
        env=os.environ | settings,
        stdout=log,
        stderr=log,
    )
    try:
        _wait_for(f"http://127.0.0.1:{port}/server_info", server, folder / "ui.log")
        yield f"http://127.0.0.1:{port}"
    finally:
        server.terminate()
        server.wait(60)


def _wait_for(url: str, server: subprocess.Popen[bytes], log: Path) -> None:
    deadline = time.monotonic() + WAIT_MS / 1000
    while True:
        try:
            with urllib.request.urlopen(url, timeout=60):
                return
        except OSError:
            assert server.poll() is None, log.read_text()
            assert time.monotonic() < deadline, log.read_text()
            time.sleep(0.5)


@pytest.fixture
def page(tmp_path: Path) -> Iterator[Page]:
    """A page of the system's Chromium, headless."""
    chromium = shutil.which("chromium")
    assert chromium, "There is no Chromium. Install it: make system-packages."
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=BROWSER_FLAGS)
        page = browser.new_page(viewport={"width": 1600, "height": 900})
        page.set_default_timeout(WAIT_MS)
        expect.set_options(timeout=WAIT_MS)
        yield page
        browser.close()


@pytest.mark.slow
@pytest.mark.long
@pytest.mark.process
@pytest.mark.timeout(1_800)
def test_a_person_materializes_an_asset_and_sees_its_check_and_its_chart(
    address: str, page: Page, pictures: Path | None
) -> None:
    page.goto(f"{address}/asset-groups")
    page.locator("[data-tooltip=notes]").dblclick()  # the node of the graph, not of the list
    for name in ("diagnostics", "dedup", "tokenizers", "packed", "blends"):
        expect(page.locator(f"[data-tooltip={name}]")).to_be_visible()

    page.goto(f"{address}/assets/raw.notes")
    expect(page.get_by_text("Never materialized").first).to_be_visible()
    page.get_by_text("Materialize", exact=True).first.click()
    page.get_by_role("button", name="Confirm").click()  # its table of bad records is made with it
    expect(page.get_by_role("img", name="run_success").first).to_be_visible()

    page.get_by_role("tab", name="Checks").click()
    expect(page.get_by_text("unique_doc_id").first).to_be_visible()
    expect(page.get_by_text("No two rows have the same").first).to_be_visible()
    expect(page.get_by_text("Passed").first).to_be_visible()

    page.goto(f"{address}/assets/raw.notes")
    expect(page.get_by_text("documents by bytes").first).to_be_visible()  # as text, without a click
    page.get_by_text("[Show Markdown]").first.click()
    chart = page.locator("img[alt='documents by bytes']")
    expect(chart).to_be_visible()
    assert chart.evaluate("image => image.naturalWidth") > 300
    if pictures:
        page.wait_for_timeout(1_000)  # the dialog fades in
        page.screenshot(path=pictures / "ui-chart.png")
        page.set_viewport_size(GRAPH_VIEWPORT)
        page.evaluate("localStorage.setItem('asset-graph-direction', JSON.stringify('vertical'))")
        page.goto(f"{address}/asset-groups?expanded={quote(EXPANDED)}")
        for stage in STAGES:
            expect(page.get_by_text(f"{stage}.notes", exact=True)).to_be_visible()
        _settle(page)
        page.screenshot(path=pictures / "ui-graph.png", clip=GRAPH_PANE)


@pytest.mark.slow
@pytest.mark.process
@pytest.mark.timeout(600)
def test_the_closed_graph_of_a_large_lake_reads_from_left_to_right(
    tmp_path: Path, page: Page, pictures: Path | None
) -> None:
    page.set_viewport_size(GROUPS_VIEWPORT)
    with _serving(tmp_path, fill(tmp_path / "data")) as address:
        page.goto(f"{address}/asset-groups")
        expect(page.locator("[data-tooltip=blends]")).to_be_visible()
        _settle(page)
        boxes = [page.locator(f"[data-tooltip={name}]").bounding_box() for name in WAY]
        places = [box["x"] for box in boxes if box is not None]
        assert len(places) == len(WAY)
        assert places == sorted(set(places))
        if pictures:
            page.screenshot(path=pictures / "ui-groups.png", clip=GROUPS_PANE)


def _settle(page: Page) -> None:
    for waiting in ("Loading...", "fetching statuses"):
        expect(page.get_by_text(waiting)).to_have_count(0)
    page.wait_for_timeout(5_000)  # the graph glides into place, and then draws its edges
