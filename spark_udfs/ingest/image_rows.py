"""Documents from the rows of a Parquet file with a column of pictures and one of captions.

A picture is bytes, or a struct of `bytes` and `path` as the Hugging Face Hub writes it; a cell may hold a
list of them. Rows are read in batches of bounded size, and damage is recorded as of any Parquet file. The
pictures of a cell are counted and measured before one is copied, and a bad value rejects its own row.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any

import pyarrow as pa

from spark_udfs.ingest.files import Input, decode_utf8, opened
from spark_udfs.ingest.image_document import (
    ImageOptions,
    SourcePicture,
    caption_of,
    image_documents,
    refuse_large,
    with_placeholders,
)
from spark_udfs.ingest.parquet import rows_of_table
from spark_udfs.ingest.parquet_columns import PathColumn, column_at, is_list, is_text
from spark_udfs.ingest.place import size_of
from spark_udfs.ingest.records import Fields, as_text, record_key
from spark_udfs.ingest.rows import BadRecord, Row, rejection


def image_rows(source: Input, options: ImageOptions) -> Iterator[Row]:
    """Yield one row per row of the file, and one more for a damaged file or for each damaged row group."""
    n_bytes = 0
    try:
        with opened(source) as file:
            n_bytes = size_of(file)
            columns_of = partial(_columns, options=options)
            yield from rows_of_table(source, file, columns_of, partial(_documents, source, options))
    except BadRecord as bad:
        yield rejection(source.origin, source.fault_key, bad, n_bytes)


def _columns(schema: pa.Schema, options: ImageOptions) -> list[PathColumn]:
    """Return the columns of pictures, captions, keys and metadata; raises BadRecord without the first two."""
    image, caption = column_at(schema, options.image), column_at(schema, options.caption)
    names = ", ".join(schema.names)
    if image is None:
        raise BadRecord("no_picture", f"The file has no column `{options.image}`, only {names}.")
    kind = image.type.value_type if is_list(image.type) else image.type
    bytes_kind = _field_type(kind, "bytes") if pa.types.is_struct(kind) else kind
    if bytes_kind is None or not is_text(bytes_kind):
        raise BadRecord("not_a_picture", f"Column `{options.image}` holds {image.type}, not pictures.")
    if caption is None and options.captions == "required":
        raise BadRecord("no_caption", f"The file has no column `{options.caption}`, only {names}.")
    if caption is not None and not is_text(caption.type):
        raise BadRecord("text_not_a_string", f"Column `{options.caption}` holds {caption.type}, not text.")
    further = (
        column_at(schema, path) for path in ([options.key] if options.key else []) + [*options.metadata]
    )
    every_column = {column.path: column for column in (image, caption, *further) if column is not None}
    return list(every_column.values())


def _documents(
    source: Input, options: ImageOptions, number: int, scalars: Mapping[str, Any]
) -> Iterator[Row]:
    """Yield the document of a row, or why it is rejected, and the pictures that are left out."""
    key, location = f"{source.key}:{number}", f"row {number}"
    place = {"file": source.key, "row": number, "location": location}
    try:
        values = {path: _value(path, scalar) for path, scalar in scalars.items() if path != options.image}
        pictures = _pictures(scalars[options.image], location)
        if not pictures:
            raise BadRecord("no_picture", f"Column `{options.image}` holds no picture.")
        caption = caption_of(values.get(options.caption) or "", options)
        text = with_placeholders(caption, len(pictures), options)
        facts = {name: as_text(values[name]) for name in options.metadata if values.get(name) is not None}
        own_key = record_key(Fields(key=options.key), values) or key
        for row in image_documents(source.origin, own_key, text, pictures, options, metadata=facts):
            yield {**row, **({"file": source.key} if "reason" in row else place)}
    except BadRecord as bad:
        yield rejection(source.origin, key, BadRecord(bad.reason, bad.detail, location), 0)


def _value(name: str, scalar: Any) -> Any:
    try:
        cell = scalar.as_py()
    except (ValueError, OverflowError, ArithmeticError) as error:
        raise BadRecord("bad_value", f"Column `{name}` holds a value that cannot be read: {error}.") from None
    return decode_utf8(cell) if isinstance(cell, bytes) else cell


def _pictures(scalar: Any, location: str) -> list[SourcePicture]:
    """Return the pictures of a cell; raises BadRecord `too_many_pictures` and `too_large` without a copy."""
    if not scalar.is_valid:
        return []
    cells = scalar.values if is_list(scalar.type) else [scalar]
    refuse_large(len(cells), 0)
    contents = [_buffer(_part(cell, "bytes") if pa.types.is_struct(cell.type) else cell) for cell in cells]
    refuse_large(len(cells), sum(content.size for content in contents if content is not None))
    return [
        _picture(cell, content, f"{location}, {number}")
        for number, (cell, content) in enumerate(zip(cells, contents, strict=True))
    ]


def _picture(cell: Any, content: pa.Buffer | None, name: str) -> SourcePicture:
    """Return a picture of a cell; its path is its name."""
    path_kind = _field_type(cell.type, "path") if pa.types.is_struct(cell.type) else None
    path = _buffer(_part(cell, "path")) if path_kind is not None and is_text(path_kind) else None
    try:
        label = decode_utf8(path.to_pybytes()) if path else name
    except BadRecord as bad:
        return SourcePicture(name, trouble=BadRecord(bad.reason, f"Of its path: {bad.detail}"))
    if content is None:
        return SourcePicture(
            label, trouble=BadRecord("missing_picture", "The row has no bytes of the picture.")
        )
    return SourcePicture(label, content.to_pybytes())


def _field_type(struct: pa.StructType, name: str) -> pa.DataType | None:
    """Return the type of the field of a name, None without one or with several."""
    index = struct.get_field_index(name)
    return None if index < 0 else struct.field(index).type


def _part(cell: Any, name: str) -> Any:
    """Return the field of a struct, None of a null struct."""
    return cell[name] if cell.is_valid else None


def _buffer(scalar: Any) -> pa.Buffer | None:
    """Return the bytes of a text, or None, without a copy; pyarrow does not check texts for UTF-8."""
    if isinstance(scalar, pa.DictionaryScalar):
        scalar = scalar.value
    return scalar.as_buffer() if scalar is not None and scalar.is_valid else None
