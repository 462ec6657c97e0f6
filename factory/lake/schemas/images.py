"""The pictures of documents: a nested column of raw and packed tables, and a table with a row a picture.

A text holds `PLACEHOLDER` once for each of its pictures, in their order. The sizes are leaves of their own,
so that a plan reads them and no pixel.

    raw.stamps       text "\ufffcA purple flower."     images [{name, media_type, width, ..., content}]
    packed.stamps    tokens [7, 310, 92, 551, 0]       images [{position: 0, ..., content}]
"""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa

from factory.lake.schemas.base import DOC_ID, TableSchema, column, list_of, required, table

PLACEHOLDER = "\ufffc"  # stands for a picture in a text: Unicode's object replacement character

PATCH = 14  # pixels a side of the patches that tables count

IMAGES = "images"  # the nested column

_IMAGE = [
    pa.field("name", pa.string(), nullable=False),  # its path in the source, such as a file or a member
    pa.field("media_type", pa.string(), nullable=False),
    pa.field("width", pa.int32(), nullable=False),  # pixels as shown: an EXIF rotation is applied
    pa.field("height", pa.int32(), nullable=False),
    pa.field("patches", pa.int64(), nullable=False),  # of PATCH pixels a side, cut ones included
    pa.field("content_hash", pa.string(), nullable=False),  # hash of its bytes
    pa.field("content", pa.binary(), nullable=False),  # its bytes, as the source has them
]

RAW_IMAGES = pa.field(IMAGES, list_of(pa.struct(_IMAGE), nullable=False))

PACKED_IMAGES = pa.field(
    IMAGES,
    list_of(
        pa.struct([pa.field("position", pa.int32(), nullable=False), *_IMAGE]),  # its token in the row
        nullable=False,
    ),
)

IMAGE_FACTS = table(
    DOC_ID,
    required("number", pa.int32(), "place of the picture among those of its document, from 0"),
    required("name", pa.string(), "its path in the source"),
    required("media_type", pa.string(), "media type, such as image/png"),
    required("width", pa.int32(), "pixels a line, as the picture is shown"),
    required("height", pa.int32(), "lines of pixels, as the picture is shown"),
    required("patches", pa.int64(), "squares of 14 pixels a side, cut ones included"),
    required("n_bytes", pa.int64(), "length of the file in bytes"),
    column("mode", pa.string(), "how pixels are stored, as Pillow names it: RGB, P, LA; null if unreadable"),
    required("is_readable", pa.bool_(), "whether the whole picture decodes"),
    column("problem", pa.string(), "why it does not decode"),
    key=("doc_id", "number"),
    about="The pictures of documents, measured and decoded once.",
    chart="images.facts",
)

# A page holds the pictures of one row, so that a row read alone costs its own bytes.
_A_PAGE_A_ROW = {
    "write.parquet.page-row-limit": "1",
    "write.parquet.row-group-check-min-record-count": "1",
}

IMAGE_TOKEN = "factory.image-token"  # table property of packed tables: the token of a placeholder


def with_images(schema: TableSchema, field: pa.Field = RAW_IMAGES) -> TableSchema:
    """`schema` with the column `images`, in pages of one row.

    Its rows stay in the order in which they are written: a sort would move the pictures once more.
    """
    return replace(
        schema,
        columns=schema.columns.append(field),
        sort_by=(),
        properties=schema.properties | _A_PAGE_A_ROW,
    )
