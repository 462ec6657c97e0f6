"""Values of a table by data file and row, local or in an S3-compatible store."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import pyarrow as pa
import pyarrow.compute as pc

from factory.lake.files.location import local_path
from factory.lake.files.parquet import open_parquet, reading
from factory.lake.files.registered import RegisteredTexts
from factory.lake.files.sequential import ForwardReader
from factory.lake.files.storage import opened
from factory.lake.schemas.ingest import TEXT_AT


class LocatedRows:
    """Reads columns file by file; rows in ascending order cost one pass over the columns."""

    def __init__(self, storage: Mapping[str, str], columns: Sequence[str]) -> None:
        """`storage` as `opened` has it."""
        self._storage, self._columns = storage, columns
        self._file = ""
        self._reader: ForwardReader | None = None

    def read(self, file: str, rows: Sequence[int]) -> Iterator[pa.RecordBatch]:
        """Yield the columns that `file` has, at ascending `rows`, in batches of bounded size.

        Raises DamagedFile for a page with changed bytes.
        """
        local = local_path(file)
        with reading(local or file, self._columns, lambda: opened(file, self._storage)):
            if self._reader is None or file != self._file:
                parquet = open_parquet(local or opened(file, self._storage), pre_buffer=False)
                names = self._present(parquet.schema_arrow.names)
                self._reader, self._file = ForwardReader(parquet, names), file
            yield from self._reader.take(rows)

    def _present(self, names: Sequence[str]) -> list[str]:
        """Return the columns to read of a file with columns `names`."""
        return [column for column in self._columns if column in names]


class _TextRows(LocatedRows):
    """Reads what `LocatedTexts` needs: of a file with registered texts also their locations and hashes."""

    def __init__(self, storage: Mapping[str, str]) -> None:
        super().__init__(storage, ["text", TEXT_AT.name, "content_hash"])

    def _present(self, names: Sequence[str]) -> list[str]:
        return super()._present(names if TEXT_AT.name in names else ["text"])


class LocatedTexts:
    """Reads texts file by file, from the lake's own files and from registered files."""

    def __init__(self, storage: Mapping[str, str]) -> None:
        """`storage` as `opened` has it."""
        self._rows = _TextRows(storage)
        self._registered = RegisteredTexts(storage)

    def read(self, file: str, rows: Sequence[int]) -> Iterator[pa.RecordBatch]:
        """Yield (text) at ascending `rows` of `file`, null for missing texts, in batches of bounded size.

        Texts of registered files are read there. Raises SourceChanged if such a file has changed, DamagedFile
        if a text has changed although size and time of its file are the same.
        """
        for batch in self._rows.read(file, rows):
            texts = batch["text"].cast(pa.string())
            if TEXT_AT.name not in batch.schema.names:
                yield _texts(texts)
                continue
            at = 0
            places = batch[TEXT_AT.name].to_pylist()
            for registered in self._registered.read(places, batch["content_hash"]):
                yield _texts(pc.coalesce(texts.slice(at, len(registered)), registered))
                at += len(registered)


def _texts(texts: pa.StringArray) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays([texts], names=["text"])
