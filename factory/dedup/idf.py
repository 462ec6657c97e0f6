"""The idf table of a group: built on the driver, and mapped by all workers of a machine from one file.

The table (`native/src/dedup/bags/idf.rs`) holds the document frequency of tokens of two documents or more.
While it builds the table the driver needs some 50 bytes per token; on disk a token takes eleven bytes, and
the workers of a machine share the pages of the file.
"""

from __future__ import annotations

import hashlib
import tempfile
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import pyarrow as pa
from pyspark import SparkFiles
from pyspark.sql import DataFrame, Row, SparkSession

from factory import _native
from factory.errors import MachineError
from spark_udfs.dedup import bags as udf


def idf_table(vocabulary: DataFrame) -> pa.UInt8Array:
    """The frozen idf of every token, for the kernels.

    Runs a job per partition, because every task that weighs tokens needs the whole table. Tokens of a single
    document, which are most, are skipped: they weigh as much as unknown tokens.
    """
    builder, n_documents = _native.IdfBuilder(), 0
    rows = vocabulary.where("document_frequency > 1").select("token", "document_frequency", "n_documents")
    packed = rows.mapInArrow(
        udf.pack_frequencies, "tokens binary, document_frequencies binary, n_documents long"
    )
    for part in packed.toLocalIterator(prefetchPartitions=True):
        builder.add(_numbers(part.tokens), _numbers(part.document_frequencies))
        n_documents = part.n_documents
    if not n_documents:
        n_documents = (vocabulary.first() or Row(n_documents=1)).n_documents
    return builder.finish(n_documents)


def digest(idf: pa.UInt8Array) -> str:
    """The hash of an idf table, part of a signature's version."""
    return hashlib.blake2b(memoryview(idf.buffers()[1]), digest_size=8).hexdigest()


def name_of(idf: pa.UInt8Array) -> str:
    """The file name of a table, which follows from its content."""
    return f"idf-{digest(idf)}"


@dataclass(frozen=True)
class SharedTable:
    """An idf table in a file that Spark copies to every machine, where all workers map it."""

    name: str

    @property
    def value(self) -> pa.UInt8Array:
        """The bytes of the table, mapped once per process."""
        return mapped(SparkFiles.get(self.name))


def share(spark: SparkSession, idf: pa.UInt8Array) -> SharedTable:
    """`idf` for the tasks of this session. The file goes with the session."""
    shared = SharedTable(name_of(idf))
    # Written to where Spark would copy it on this machine: Spark does not copy a file that exists.
    file = Path(SparkFiles.get(shared.name))
    if not file.exists():
        with tempfile.NamedTemporaryFile(dir=file.parent, delete=False) as part:
            part.write(memoryview(idf.buffers()[1]))
        Path(part.name).replace(file)
    spark.sparkContext.addFile(str(file))
    return shared


@lru_cache(maxsize=1)
def mapped(path: str) -> pa.UInt8Array:
    """The table in the file at `path`. Raises MachineError if its bytes do not match its name."""
    with pa.memory_map(path) as file:
        content = file.read_buffer()
    table = pa.UInt8Array.from_buffers(pa.uint8(), content.size, [None, content])
    if name_of(table) != Path(path).name:
        raise MachineError(
            f"The idf table {path} differs from what the driver wrote. "
            "Check the disk and the memory of this machine, then run again."
        )
    return table


def _numbers(packed: bytes) -> pa.Int64Array:
    return pa.Int64Array.from_buffers(pa.int64(), len(packed) // 8, [None, pa.py_buffer(packed)])
