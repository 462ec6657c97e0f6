"""Open a blend in a process of its own.

Arguments: the folder of a lake, `index` or a step. `index` rebuilds all page indexes of its blend and prints
seconds, CPU seconds, pages and bytes of the indexes; a step prints the seconds from opening the lake to the
step's rows, and whether the rows are right.
"""

import json
import shutil
import sys
import time
from pathlib import Path

import sqlalchemy.dialects.sqlite  # noqa: F401 - the first query, which is timed, imports it

from bench.first_batch.data import expected
from bench.lakes import own_lake
from blender.catalog.blends import open_blends
from blender.opened.blend import Blend


def index(home: Path) -> dict[str, object]:
    """Open the blend with nothing on disk but its tables."""
    lake, blend = own_lake(home / "lake"), (home / "blend").read_text()
    shutil.rmtree(lake.files.page_index, ignore_errors=True)
    began, cpu = time.perf_counter(), time.process_time()
    opened = open_blends(lake).open(blend)
    for source in opened.sources:
        for leaf in source.reader.leaves(source.config.columns):
            source.reader.column(leaf)
    found: dict[str, object] = {"s": time.perf_counter() - began, "cpu_s": time.process_time() - cpu}
    for source in opened.sources:
        source.reader.prepare(source.config.columns)
    joined = [one for one in (lake.files.page_index / "snapshots").iterdir() if one.suffix == ".pages"]
    return found | {
        "checked_s": time.perf_counter() - began,
        "pages": _pages(opened),
        "bytes": sum(one.stat().st_size for one in joined),
    }


def _pages(blend: Blend) -> int:
    names = [("ordinal", *source.config.columns) for source in blend.sources]
    groups = [
        group
        for source, columns in zip(blend.sources, names, strict=True)
        for column in columns
        for group in source.reader.column(column).groups
    ]
    return sum(group.index.n_pages for group in groups)


def batch(home: Path, step: int) -> dict[str, object]:
    """Open the blend and read a step."""
    lake, blend = own_lake(home / "lake"), (home / "blend").read_text()
    began = time.perf_counter()
    rows = open_blends(lake).open(blend).step(step)
    taken = time.perf_counter() - began
    right = rows.column("tokens").to_pylist() == expected(rows.column("ordinal"))
    return {"s": taken, "rows": rows.num_rows, "right": right}


if __name__ == "__main__":
    folder, what = Path(sys.argv[1]), sys.argv[2]
    print(json.dumps(index(folder) if what == "index" else batch(folder, int(what))))
