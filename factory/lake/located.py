"""Values of a table by the data file and row in which each lies, local or in an S3-compatible store."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyarrow import fs

from factory.lake.forward import ForwardReader
from factory.lake.registered import Texts
from factory.lake.schemas import TEXT_AT

S3_ENDPOINT, S3_REGION = "s3.endpoint", "client.region"
S3_KEY_ID, S3_SECRET = "s3.access-key-id", "s3.secret-access-key"
STORAGE = (S3_ENDPOINT, S3_REGION, S3_KEY_ID, S3_SECRET)
"""Properties of Spark's catalog by which files that are not local are opened."""


class LocatedRows:
    """Reads columns file by file; rows in ascending order cost one pass over the columns."""

    def __init__(self, storage: Mapping[str, str], columns: Sequence[str]) -> None:
        """`storage` has the `STORAGE` that the lake has; none for one on local disk."""
        self._storage, self._columns = storage, columns
        self._file = ""
        self._reader: ForwardReader | None = None

    def read(self, file: str, rows: Sequence[int]) -> Iterator[pa.RecordBatch]:
        """Those of the columns that `file` has, of its ascending `rows`, in batches of bounded size."""
        if self._reader is None or file != self._file:
            parquet = self._open(file)
            names = [name for name in self._columns if name in parquet.schema_arrow.names]
            self._reader, self._file = ForwardReader(parquet, names), file
        yield from self._reader.take(rows)

    def _open(self, file: str) -> pq.ParquetFile:
        scheme, _, path = file.partition(":")
        if scheme == "file":
            return pq.ParquetFile("/" + path.lstrip("/"), pre_buffer=False)
        store = fs.S3FileSystem(
            endpoint_override=self._storage.get(S3_ENDPOINT),
            region=self._storage.get(S3_REGION),
            access_key=self._storage.get(S3_KEY_ID),
            secret_key=self._storage.get(S3_SECRET),
        )
        return pq.ParquetFile(store.open_input_file(path.lstrip("/")))


class LocatedTexts:
    """Reads texts file by file, in the lake's own files and in those that are registered."""

    def __init__(self, storage: Mapping[str, str]) -> None:
        """`storage` as `LocatedRows` has it."""
        self._rows = LocatedRows(storage, ["text", TEXT_AT.name])
        self._registered = Texts()

    def read(self, file: str, rows: Sequence[int]) -> Iterator[pa.RecordBatch]:
        """(text) of ascending `rows` of `file`, null where there is none, in batches of bounded size.

        A text that the file has in a registered file is read there. Raises SourceChanged where that one
        is not as it was.
        """
        for batch in self._rows.read(file, rows):
            texts = batch["text"].cast(pa.string())
            if TEXT_AT.name not in batch.schema.names:
                yield _texts(texts)
                continue
            at = 0
            for registered in self._registered.read(batch[TEXT_AT.name].to_pylist()):
                yield _texts(pc.coalesce(texts.slice(at, len(registered)), registered))
                at += len(registered)


def _texts(texts: pa.StringArray) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays([texts], names=["text"])
