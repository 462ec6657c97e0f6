"""A lake with a history, its copy, and what both hold."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np

from blender.catalog.blends import open_blends
from blender.catalog.moved_progress import move_progress
from blender.records import Source
from blender.trainer.local import open_blend
from factory.lake.fingerprint import fingerprint
from factory.lake.relocation.relocate import Relocated, relocate
from factory.lake.schemas.packing import PACKED
from factory.lake.tables import Lake
from factory.settings import Settings
from tests.blender.lakes import CODE, PROSE, append_rows, load_table, make_lake, packed_rows


def make_history(home: Path) -> Settings:
    """A lake of two tables and two blends: replaced rows, an older snapshot under a tag, a branch."""
    lake = make_lake(home, code=24, prose=10)
    blends = open_blends(lake)
    blends.create([Source(CODE, weight=2), Source(PROSE, weight=1)])
    replace_rows(lake, 20)
    blends.create([Source(CODE, weight=1)], seed=3)
    with load_table(lake, PROSE).manage_snapshots() as changes:
        snapshot = load_table(lake, PROSE).current_snapshot()
        changes.create_branch(snapshot.snapshot_id, "audit_0123456789ab")
    append_rows(lake, PROSE, 10, 12)  # without a fingerprint
    return lake


def replace_rows(lake: Settings, n: int) -> None:
    """Replace the rows of `packed.code` by `n` rows in two files."""
    rows, table = packed_rows("code", n), load_table(lake, CODE)
    content = str(fingerprint(rows.to_batches(), PACKED.fingerprinted))
    table.delete("ordinal >= 0")
    table.append(rows.slice(0, n // 2))
    table.append(rows.slice(n // 2), snapshot_properties={"factory.content": content})


def contents(lake: Settings) -> dict[str, object]:
    """Every table's references and the rows of each of its snapshots."""
    tables = Lake(lake)
    rows_by_snapshot: dict[str, object] = {}
    for name in tables.names():
        table = tables.table(name)
        rows_by_snapshot[f"{name} references"] = {of: ref.snapshot_id for of, ref in table.refs().items()}
        for snapshot in table.snapshots():
            rows = tables.read(name, snapshot_id=snapshot.snapshot_id).sort_by("ordinal")
            rows_by_snapshot[f"{name} at {snapshot.snapshot_id}"] = rows.to_pylist()
    return rows_by_snapshot


def served(lake: Settings) -> dict[str, list[int]]:
    """The tokens of the first steps of every blend."""
    stored = open_blends(lake).list()
    return {
        blend.id: np.concatenate(
            [batch.tokens for batch in open_blend(blend.id, lake).fetch(offset=0, steps=3)]
        ).tolist()
        for blend in stored
    }


def files(folder: Path) -> dict[str, tuple[str, int]]:
    """Hash and time of every file below a folder."""
    return {
        str(file.relative_to(folder)): (
            hashlib.sha256(file.read_bytes()).hexdigest(),
            file.stat().st_mtime_ns,
        )
        for file in sorted(folder.rglob("*"))
        if file.is_file()
    }


def copy_of(lake: Settings, home: Path) -> Settings:
    """A fresh copy of a lake at another place."""
    shutil.rmtree(home, ignore_errors=True)
    shutil.copytree(lake.home, home, symlinks=True)
    return lake.model_copy(update={"home": home})


def relocated(lake: Settings, *, take: bool = False) -> Relocated:
    """Relocate the lake in this process."""
    return relocate(
        lake,
        take=take,
        settle=lambda moved_files: move_progress(lake, moved_files),
        observe=lambda step, done, steps: None,
    )


def relocation(lake: Settings, *arguments: str) -> subprocess.CompletedProcess[str]:
    """`factory relocate` in a process of its own, which may be killed (`tests.lake.relocation.killed`)."""
    return subprocess.run(
        [sys.executable, "-m", "tests.lake.relocation.killed", *arguments],
        env=os.environ | lake.environment(),
        capture_output=True,
        text=True,
        check=False,
    )
