"""Documents from pictures and their captions, in one of four layouts.

    captions     cat.png and cat.txt next to it; the driver lists captions without a picture, too
    webdataset   the members 0001.jpg, 0001.txt and 0001.json of a tar archive
    parquet      a column of pictures and one of captions
    pages        a page of HTML and the figures that it shows, in their places

Each input yields a document or a rejected record, and nothing decodes a pixel.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import PurePosixPath

from spark_udfs.ingest.bounds import MAX_PICTURE_BYTES
from spark_udfs.ingest.files import Input, decode_utf8, opened
from spark_udfs.ingest.image_document import (
    ImageOptions,
    SourcePicture,
    caption_of,
    image_documents,
    with_placeholders,
)
from spark_udfs.ingest.image_rows import image_rows
from spark_udfs.ingest.image_shards import shard_rows
from spark_udfs.ingest.place import size_of
from spark_udfs.ingest.rows import BadRecord, Row, rejection


def images_file(source: Input, options: ImageOptions) -> Iterator[Row]:
    """Yield the documents and rejected records of a file in the layout of `options`."""
    match options.layout:
        case "captions":
            yield from _captioned(source, options)
        case "webdataset":
            yield from shard_rows(source, options)
        case "parquet":
            yield from image_rows(source, options)
        case "pages":
            from spark_udfs.ingest.image_pages import page_rows  # needs an extra

            yield from page_rows(source, options)


def _captioned(source: Input, options: ImageOptions) -> Iterator[Row]:
    """Yield one row: a picture with the caption next to it, or why there is none."""
    n_bytes, content = 0, b""
    try:
        with opened(source) as file:
            n_bytes = size_of(file)
            content = file.read(MAX_PICTURE_BYTES + 1)
        if source.name.endswith(options.caption_ending.encode()):
            raise BadRecord("no_picture", "No picture of this name is beside the caption.")
        caption = _caption_beside(source, options)
        text = with_placeholders(caption, 1, options)
        picture = SourcePicture(PurePosixPath(source.key).name, content)
        yield from image_documents(source.origin, source.key, text, [picture], options, path=source.shown)
    except BadRecord as bad:
        yield rejection(source.origin, source.key, bad, n_bytes, content)


def stem_of(name: bytes) -> bytes:
    """Return the path of a file without the ending of its name."""
    folder, slash, base = name.rpartition(b"/")
    stem, dot, _ = base.rpartition(b".")
    return folder + slash + (stem if dot else base)


def _caption_beside(source: Input, options: ImageOptions) -> str:
    """Return the caption in the file next to a picture, empty without one; raises BadRecord."""
    beside = replace(source, name=stem_of(source.name) + options.caption_ending.encode())
    try:
        with opened(beside) as file:
            content = file.read(options.max_bytes + 1)
    except BadRecord as bad:
        if bad.reason == "vanished":
            return ""
        raise BadRecord(bad.reason, f"Of its caption: {bad.detail}", bad.location) from None
    if len(content) > options.max_bytes:
        raise BadRecord("too_long", f"The caption is longer than {options.max_bytes:,} bytes.")
    try:
        return caption_of(decode_utf8(content), options)
    except BadRecord as bad:
        raise BadRecord(bad.reason, f"Of its caption: {bad.detail}", bad.location) from None
