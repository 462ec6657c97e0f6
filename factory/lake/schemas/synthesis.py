"""The table of a job: what became of each document of its source, and who worked on it."""

from __future__ import annotations

import pyarrow as pa

from factory.lake.schemas.base import DOC_ID, required, table

ITEMS = table(
    DOC_ID,
    required("position", pa.int64(), "place of the document in the order of the job, from 0"),
    required("n_records", pa.int64(), "records that the worker made of it"),
    required("n_refusals", pa.int64(), "results of it that are no documents"),
    required("attempt", pa.int32(), "attempt at its slice whose results count, from 1"),
    required("host", pa.string(), "machine that worked on it"),
    required("seconds", pa.float64(), "time that it took"),
    about="The documents of a job's source, and what a worker made of each.",
    chart="synthesis.records",
    figures="synthesis.items",
)

JOB = "factory.job"  # snapshot property: the id of the job whose results the rows describe
SIZE = "factory.job-size"  # snapshot property: how many documents of the source it took
