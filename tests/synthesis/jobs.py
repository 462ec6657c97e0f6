"""Small sources and jobs of the tests, and kinds in a user's file."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from factory.lake import names
from factory.lake.identity import content_hash
from factory.lake.schemas.ingest import RAW
from factory.lake.tables import Lake
from factory.settings import Settings
from factory.synthesis.collect import results_of
from factory.synthesis.job import Job
from factory.synthesis.queue import Queue
from factory.synthesis.results import ITEM, MEASURED, RESULT, result_batches
from tests.explain.lakes import publish

KINDS = """
import os, signal, time
import pyarrow as pa
from factory.synthesis.kind import NewRecord, Refusal

class Upper:
    version = "1"
    schema = pa.schema([pa.field("n_words", pa.int64(), False), pa.field("note", pa.string())])

    def __init__(self, options):
        self.wait_s = options.get("wait_s", 0.0)
        self.killer = options.get("killer")
        self.endless = options.get("endless")
        self.print_mib = options.get("print_mib", 0)

    def __call__(self, item):
        time.sleep(self.wait_s)
        for _ in range(self.print_mib):
            print("x" * (1 << 20))
        if self.killer is not None and item.key == self.killer:
            os.kill(os.getpid(), signal.SIGKILL)
        if self.endless is not None and item.key == self.endless:
            sum(range(1 << 60))  # holds the interpreter: no other thread runs
        if item.text.startswith("raise"):
            raise ValueError(f"no {item.key}")
        if item.text.startswith("refuse"):
            yield Refusal("", "refused", "It says so.", item.text.encode())
            return
        yield NewRecord("upper", item.text.upper(), {"n_words": len(item.text.split())})
        text = f"{item.seed} of {item.repository} with {sorted(item.neighbors())}"
        yield NewRecord("seed", text, {"n_words": 1})
"""


def document(number: int, text: str | None = None, **fields: Any) -> dict[str, Any]:
    """A document of the source; every fourth belongs to no repository."""
    text = f"text of document {number}" if text is None else text
    repository = None if number % 4 == 0 else f"repository {number // 10}"
    return {
        "doc_id": f"{number:032x}",
        "source": "web",
        "key": f"page {number}",
        "text": text,
        "content_hash": content_hash(text),
        "n_bytes": len(text.encode()),
        "media_type": "text/plain",
        "language": "Python",
        "repository": repository,
        "path": repository and f"src/file_{number}.py",
        "metadata": [("number", str(number))],
    } | fields


def source(settings: Settings, rows: Sequence[dict[str, Any]], dataset: str = "web") -> int:
    """Publish raw.<dataset>; return the snapshot."""
    return publish(Lake(settings), names.raw(dataset), RAW, rows)


def kind_file(folder: Path) -> Path:
    """Write the kinds of the tests into a folder; return the folder."""
    (folder / "kinds.py").write_text(KINDS)
    return folder


def job(settings: Settings, size: int, **fields: Any) -> Job:
    """A job of `Upper` over raw.web as it is published."""
    publication = Lake(settings).published(names.raw("web"))
    return Job(
        **{
            "dataset": "loud",
            "source": "raw.web",
            "snapshot": publication.snapshot_id,
            "content": str(publication.lineage.content),
            "kind": "kinds.py:Upper",
            "version": "1",
            "size": size,
            "slice_items": 4,
        }
        | fields
    )


def rows(queue: Queue, size: int | None = None) -> list[dict[str, Any]]:
    """The records and refusals that a finished queue has, without what was measured."""
    batches = [
        batch
        for file in results_of(queue, size).files
        for batch in result_batches(file, storage(queue.settings))
    ]
    table = pa.Table.from_batches(batches, RESULT).drop_columns(list(MEASURED))
    return [row for row in table.to_pylist() if row["outcome"] != ITEM]


def storage(settings: Settings) -> dict[str, str]:
    """The options by which the files of a lake are opened."""
    table = Lake(settings).table(names.raw("web"))
    return {name: str(option) for name, option in table.io.properties.items()}
