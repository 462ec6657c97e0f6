"""Avro files with some values changed and all else kept: schema, header, codec, every other value."""

from __future__ import annotations

from collections.abc import Callable

from pyiceberg.avro.file import MAGIC, META_SCHEMA, AvroFile, AvroFileHeader, AvroOutputFile
from pyiceberg.avro.resolver import construct_writer
from pyiceberg.io import InputFile, OutputFile
from pyiceberg.schema import Schema
from pyiceberg.typedef import Record

_BLOCK_RECORDS = 1_000


class AvroRecord:
    """A stored record with fields to read and replace by name."""

    def __init__(self, record: Record, schema: Schema) -> None:
        self._record, self._fields = record, schema.fields

    def __contains__(self, name: str) -> bool:
        return any(field.name == name for field in self._fields)

    def __getitem__(self, name: str) -> object:
        return self._record[self._index(name)]

    def __setitem__(self, name: str, value: object) -> None:
        self._record[self._index(name)] = value

    def struct(self, name: str) -> AvroRecord:
        """Return the record in a field."""
        index = self._index(name)
        return AvroRecord(self._record[index], self._fields[index].field_type)

    def _index(self, name: str) -> int:
        return next(index for index, field in enumerate(self._fields) if field.name == name)


def rewrite_avro(source: InputFile, target: OutputFile, change: Callable[[AvroRecord], None]) -> None:
    """Write the records of `source`, each changed in place by `change`, to `target`."""
    with AvroFile[Record](source) as reader, _SameHeader(target, reader.header, reader.schema) as writer:
        block: list[Record] = []
        for record in reader:
            change(AvroRecord(record, reader.schema))
            block.append(record)
            if len(block) == _BLOCK_RECORDS:
                writer.write_block(block)
                block = []
        if block:
            writer.write_block(block)


class _SameHeader(AvroOutputFile[Record]):
    """A file with the header of another one; PyIceberg would write its own rendering of the schema."""

    def __init__(self, output: OutputFile, header: AvroFileHeader, schema: Schema) -> None:
        super().__init__(output, schema, "", metadata=header.meta)
        self.sync_bytes = header.sync

    def _write_header(self) -> None:
        header = AvroFileHeader(MAGIC, self.metadata, self.sync_bytes)
        construct_writer(META_SCHEMA).write(self.encoder, header)
