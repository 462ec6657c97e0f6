"""datatrove's readers of one file; run in its environment.

Arguments: `jsonl` or `parquet`, the folder and the name of the file, the number of tasks and workers, and
`none` or a folder to which its writer of Parquet writes. Without tasks it prints the number of texts, their
bytes and the sum of their CRC-32.
"""

from __future__ import annotations

import json
import sys
import tempfile
import zlib

from datatrove.executor import LocalPipelineExecutor
from datatrove.pipeline.base import PipelineStep
from datatrove.pipeline.readers import JsonlReader, ParquetReader
from datatrove.pipeline.writers import ParquetWriter


def main(form: str, folder: str, name: str, tasks: str, target: str) -> None:
    kind = JsonlReader if form == "jsonl" else ParquetReader
    reader = kind(folder, glob_pattern=name)
    if tasks == "0":
        n_records = n_bytes = crc = 0
        for document in reader.run(None, 0, 1):
            text = document.text.encode()
            n_records, n_bytes, crc = n_records + 1, n_bytes + len(text), crc + zlib.crc32(text)
        print(json.dumps({"n_records": n_records, "n_bytes": n_bytes, "crc": crc}))
        return
    steps: list[PipelineStep] = [reader]
    if target != "none":
        steps.append(ParquetWriter(target, compression="zstd"))
    with tempfile.TemporaryDirectory(prefix="bench-datatrove-") as logs:
        n = int(tasks)  # forked workers are reaped by this process, so their time is counted
        LocalPipelineExecutor(steps, tasks=n, workers=n, logging_dir=logs, start_method="fork").run()


if __name__ == "__main__":
    main(*sys.argv[1:])
