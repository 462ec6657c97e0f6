"""The bench of readers: the same records in every format, counted requests, figures beyond a start."""

from __future__ import annotations

import gzip
import json
import os
import sys
import threading
from contextlib import closing
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.request import urlopen

import pyarrow.parquet as pq
import pytest
import zstandard
from pyspark.sql import SparkSession

from bench.harness import Report, table
from bench.ingest import corpus
from bench.ingest.counter import Counter
from bench.ingest.measure import Cost, Reading, _add_reading
from bench.ingest.ours import rows
from bench.peers import PeerFailed, answer
from bench.processes import Meter

FORMATS = ("jsonl", "parquet", *corpus.MORE_FORMATS)


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The corpus of an installation of two files, which are taken three times."""
    sources = [tmp_path / "one.py", tmp_path / "two.md", tmp_path / "short.md", tmp_path / "page.md"]
    for path, text in zip(sources, ["x = 'é'\n" * 50, "A rain.\n" * 40, "Short.", "<p>" * 300], strict=True):
        path.write_text(text)
    monkeypatch.setattr(corpus, "installed_files", lambda: iter(sources))
    folder = tmp_path / "corpus"
    folder.mkdir()
    corpus.write(folder, 2_000)
    corpus.write_more_formats(folder)
    return folder


def texts(folder: Path) -> dict[str, int]:
    facts: dict[str, int] = json.loads((folder / "texts").read_text())
    return facts


def test_every_format_has_the_same_records(files: Path) -> None:
    plain = (files / "all.jsonl").read_bytes()
    records = [json.loads(line) for line in plain.splitlines()]
    assert len({record["id"] for record in records}) == len(records) == texts(files)["n_records"] == 6
    assert sum(len(record["text"].encode()) for record in records) == texts(files)["n_bytes"] >= 2_000
    assert gzip.decompress((files / "all.jsonl.gz").read_bytes()) == plain
    with (files / "all.jsonl.zst").open("rb") as file:
        assert zstandard.ZstdDecompressor().stream_reader(file).read() == plain
    for name in ("all.parquet", "all.one_group.parquet"):
        assert pq.read_table(files / name).to_pylist() == records
    assert pq.read_table(files / "one.parquet").to_pylist() == records[:1]


@pytest.mark.spark
@pytest.mark.parametrize("form", FORMATS)
def test_our_reader_reads_every_text_in_spans_of_their_own(
    spark: SparkSession, files: Path, form: str
) -> None:
    with Meter() as meter:
        counts = rows(spark, meter, form, str(files))
    assert counts == texts(files) | {"n_rejected": 0, "n_tasks": counts["n_tasks"]}
    assert counts["n_tasks"] >= 1
    assert [span.name for span in meter.spans] == ["start", "one", "read", "check"]


def test_requests_for_the_file_and_all_bytes_are_counted(files: Path) -> None:
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(SimpleHTTPRequestHandler, directory=str(files)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    with closing(Counter(f"http://127.0.0.1:{server.server_port}")) as counter:
        for name in ("all.jsonl", "all.parquet", "one.jsonl"):
            with urlopen(f"{counter.endpoint}/{name}") as reply:
                assert reply.read() == (files / name).read_bytes()
    server.shutdown()
    server.server_close()
    assert counter.n_requests == 2
    n_bytes = sum((files / name).stat().st_size for name in ("all.jsonl", "all.parquet", "one.jsonl"))
    assert n_bytes < counter.n_bytes < n_bytes + 2_000


def test_speed_is_of_the_seconds_beyond_a_start() -> None:
    report, costs = Report([], ""), table("Costs", "reader, cores | a | b | c | d | e | f | g | h")
    reading = Reading(Cost(3.0, 4.0, 1e9), Cost(10.0, 20.0, 2e9), n_tasks=8)
    _add_reading(report, costs, "ingest.jsonl.folder.ours.2", reading, 1_000_000_000)
    numbers = {row.name.removeprefix("ingest.jsonl.folder.ours.2."): row.value for row in report.rows}
    assert numbers == {"wall": 10.0, "speed": 50.0, "start": 4.0, "peak_memory": 2_000, "tasks": 8}
    assert [next(iter(column.cells)) for column in costs.columns][0::5] == ["ours 2", "50.0"]


def test_the_cost_of_a_command_is_of_all_its_processes() -> None:
    burn = "import time\nwhile time.process_time() < 0.4: pass"
    child = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {burn!r}])"
    cost = Cost(*answer("bench.ingest.cost", 2, sys.executable, "-c", child))
    assert cost.cpu_s >= 0.4
    with pytest.raises(PeerFailed, match="failed"):
        answer("bench.ingest.cost", 1, sys.executable, "-c", "raise SystemExit('no')")


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="this system pins no process to a core")
def test_a_command_on_one_core_and_its_children_have_no_other() -> None:
    count = "import os; raise SystemExit(len(os.sched_getaffinity(0)) - 1)"
    child = (
        f"import subprocess as s, sys; raise SystemExit(s.run([sys.executable, '-c', {count!r}]).returncode)"
    )
    assert answer("bench.ingest.cost", 1, sys.executable, "-c", child)
