"""The rows of a result file: the outcomes of a slice of a job, as workers write them and Spark reads them.

A file has the rows of whole items: the records and refusals of an item, then a row of outcome `item` with its
measured values.
"""

from __future__ import annotations

import pyarrow as pa

RECORD, REFUSAL, ITEM = "record", "refusal", "item"

RESULT = pa.schema(
    [
        pa.field("outcome", pa.string(), nullable=False),  # `record`, `refusal` or `item`
        pa.field("position", pa.int64(), nullable=False),  # of the item in the order of the job, from 0
        pa.field("number", pa.int32(), nullable=False),  # of the outcome in its item, from 0; -1 of an item
        pa.field("doc_id", pa.string(), nullable=False),  # of the source document, as the next two
        pa.field("source", pa.string(), nullable=False),
        pa.field("item_key", pa.string(), nullable=False),
        pa.field("key", pa.string()),  # of a record or refusal
        pa.field("text", pa.string()),  # of a record, as the next one
        pa.field("values", pa.map_(pa.string(), pa.string())),
        pa.field("reason", pa.string()),  # of a refusal, as the next two
        pa.field("detail", pa.string()),
        pa.field("sample", pa.binary()),
        pa.field("seconds", pa.float64()),  # of an item, as the next three
        pa.field("attempt", pa.int32()),  # from 1
        pa.field("worker", pa.string()),
        pa.field("host", pa.string()),
    ]
)
