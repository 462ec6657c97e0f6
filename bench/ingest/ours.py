"""Our reader of one file, in a process with a new Spark.

    python -m bench.ingest.ours rows FORMAT TASKS CORES FOLDER BYTES     to persisted rows, rejected ones too
    python -m bench.ingest.ours texts FORMAT TASKS CORES FOLDER BYTES    the same without the other fields
    python -m bench.ingest.ours table FORMAT TASKS CORES FOLDER BYTES    to the published table `raw.all`

FORMAT is the ending of the file `all.<format>`; `rewritten` is Parquet that is not registered. Prints one
line of JSON: by span wall seconds, CPU seconds and peak memory, the number of documents and rejected records,
bytes and CRC-32 of the texts, and how many tasks made rows. `start` is the start of Spark, `one` the reading
of `one.<format>`, `read` that of all. All processes stay on CORES cores, with up to TASKS tasks at once.
"""

from __future__ import annotations

import json
import sys
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow.compute as pc
from pyspark.sql import SparkSession
from pyspark.sql import functions as F
from rich.console import Console

from bench.ingest.cost import stay_on
from bench.lakes import own_lake
from bench.processes import Meter
from factory.api import Ingested, Ingests, Lake, definitions, source
from factory.ingest.readers import Fields
from factory.lake import names
from factory.settings import Settings
from factory.spark.session import build_session

REWRITTEN = "rewritten"
FIELDS = Fields(key="id", columns={"license": "license"}, metadata=("url",))


def read(ingests: Ingests, form: str, folder: str, name: str, *, only_text: bool = False) -> Ingested:
    """Read the file of a format with all of its fields, or the text alone."""
    fields = Fields() if only_text else FIELDS
    if form == REWRITTEN:
        fields, form = replace(FIELDS, text="{text}"), "parquet"
    reader = ingests.parquet if form.endswith("parquet") else ingests.jsonl
    return reader(f"{folder}/{name}.{form}", fields)


def rows(
    spark: SparkSession, meter: Meter, form: str, folder: str, *, only_text: bool = False
) -> dict[str, Any]:
    """Read to persisted rows."""
    ingests = Ingests(spark)
    meter.begin("one")
    read(ingests, "parquet" if form.endswith("parquet") else "jsonl", folder, "one").scan.count()
    meter.begin("read")
    scan = read(ingests, form, folder, "all", only_text=only_text).scan
    scan.count()
    meter.begin("check")
    text = F.when(F.col("reason").isNull(), F.col("text"))
    totals = {
        "n_records": F.count(text),
        "n_bytes": F.sum(F.octet_length(text)),
        "crc": F.sum(F.crc32(text)),
        "n_rejected": F.count("reason"),
        "n_tasks": F.count_distinct("task"),
    }
    by_task = scan.withColumn("task", F.spark_partition_id())
    answer = by_task.select(*(total.alias(name) for name, total in totals.items())).first()
    ingests.release()
    assert answer is not None
    return dict(answer.asDict())


def table(own: Settings, form: str, folder: str) -> dict[str, Any]:
    """Publish the table of the documents, by Dagster as a user does."""
    from bench.pipeline.measure import run

    @source(name="all")
    def file(ingests: Ingests) -> Ingested:
        return read(ingests, form, folder, "all")

    location = definitions([file], own)
    keys = sorted(location.resolve_asset_graph().get_all_asset_keys())
    meter = run(location, own, keys, Console(stderr=True, highlight=False))
    sizes = Lake(own).read(names.raw("all"), ["n_bytes"])["n_bytes"]
    return {"n_records": len(sizes), "n_bytes": pc.sum(sizes).as_py()} | _spans(meter)


def _spans(meter: Meter) -> dict[str, Any]:
    return {"spans": {span.name: [span.wall_s, span.cpu_s.total, span.peak.total] for span in meter.spans}}


def main(target: str, form: str, tasks: str, cores: str, folder: str, n_bytes: str) -> None:
    stay_on(int(cores))
    with tempfile.TemporaryDirectory(prefix="bench-ingest-") as scratch:
        own = own_lake(Path(scratch), spark_master=f"local[{tasks}]")
        if target == "table":
            answer = table(own, form, folder)
        else:
            with Meter() as meter:
                spark = build_session(own, input_bytes=int(n_bytes))
                answer = rows(spark, meter, form, folder, only_text=target == "texts")
                spark.stop()
            answer |= _spans(meter)
        print(f"\n{json.dumps(answer)}")


if __name__ == "__main__":
    main(*sys.argv[1:])
