"""Documents cut to rows in a worker: no token and no picture is lost, and each picture has its token."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from factory.errors import ConfigurationError
from factory.lake.schemas.images import PACKED_IMAGES
from spark_udfs.packing.samples import FACTS, SampleRows, image_rows, text_rows
from tests.packing.pictures import picture

IMAGE = 7
CONTENT = pa.list_(pa.struct([pa.field("content", pa.binary(), nullable=False)]))
tokens_of_documents = st.lists(
    st.lists(st.sampled_from([IMAGE, 1, 2, 3]), min_size=1, max_size=9), max_size=6
)


def documents_of(tokens: list[list[int]], sequence_length: int) -> pa.RecordBatch:
    """The documents as `_in_order` gives them, each picture named after its document and number."""
    rows, ordinal = [], 100
    for number, ids in enumerate(tokens):
        names = [f"{number}.{place}" for place in range(ids.count(IMAGE))]
        of_facts = {fact: [picture(name)[fact] for name in names] for fact in FACTS}
        rows.append(
            {
                "doc_id": f"d{number}",
                "shard": 3,
                "ordinal": ordinal,
                "tokens": np.array(ids, "<u2").tobytes(),
                "partition": None,
                "file": "f",
                "row": number,
                **(of_facts if names or number % 2 else dict.fromkeys(FACTS)),
            }
        )
        ordinal += -(-len(ids) // sequence_length)
    kinds = {field.name: pa.list_(field.type) for field in PACKED_IMAGES.type.value_type}
    schema = pa.schema(
        [
            *(("doc_id", pa.string()), ("shard", pa.int64()), ("ordinal", pa.int64())),
            *(("tokens", pa.binary()), ("partition", pa.string())),
            *(("file", pa.string()), ("row", pa.int64())),
            *((fact, kinds[fact]) for fact in FACTS),
        ]
    )
    return pa.RecordBatch.from_pylist(rows, schema=schema)


def read(rows: pa.RecordBatch) -> pa.Array:
    """The pictures of documents, as a raw table has them."""
    lists = [
        [{"content": picture(name)["content"]} for name in names or ()] for names in rows["name"].to_pylist()
    ]
    return pa.array(lists, CONTENT)


def rows_by_hand(tokens: list[list[int]], sequence_length: int) -> list[dict[str, Any]]:
    rows = []
    for number, ids in enumerate(tokens):
        n_before = 0
        for offset in range(0, len(ids), sequence_length):
            part = ids[offset : offset + sequence_length]
            places = [place for place, token in enumerate(part) if token == IMAGE]
            pictures = [
                {"position": place, **picture(f"{number}.{n_before + n}")} for n, place in enumerate(places)
            ]
            n_before += len(places)
            rows.append({"doc_id": f"d{number}", "offset": offset, "tokens": part, "images": pictures})
    return rows


def plain(row: dict[str, Any]) -> dict[str, Any]:
    ((segment,), ids) = row["segments"], np.frombuffer(row["tokens"], "<u2").tolist()
    assert segment["length"] == row["n_tokens"] == len(ids)
    columns = {"doc_id": segment["doc_id"], "offset": segment["doc_offset"], "tokens": ids}
    return columns | ({"images": row["images"]} if "images" in row else {})


@given(tokens_of_documents, st.integers(1, 5), st.integers(1, 4))
def test_every_picture_is_in_the_row_of_its_token(tokens: list[list[int]], length: int, size: int) -> None:
    documents = documents_of(tokens, length)
    batches = [
        documents.slice(first, size) for first in range(0, len(tokens), size)
    ]  # offsets of slices differ
    cut_rows = [
        row
        for batch in image_rows(batches, read, SampleRows(length, 2, 1, IMAGE))
        for row in batch.to_pylist()
    ]
    assert [plain(row) for row in cut_rows] == rows_by_hand(tokens, length)
    assert [row["ordinal"] for row in cut_rows] == list(range(100, 100 + len(cut_rows)))
    assert all((row["append"], row["shard"], row["chunk"]) == (1, 3, 0) for row in cut_rows)


@given(tokens_of_documents, st.integers(1, 5))
def test_rows_of_text_are_the_tokens_of_their_documents(tokens: list[list[int]], length: int) -> None:
    (cut_rows,) = text_rows([documents_of(tokens, length)], SampleRows(length, 2))
    without = [{name: row[name] for name in row if name != "images"} for row in rows_by_hand(tokens, length)]
    assert [plain(row) for row in cut_rows.to_pylist()] == without


def test_a_document_with_another_number_of_pictures_is_refused_by_name() -> None:
    documents = documents_of([[1], [IMAGE, 1, IMAGE]], 8)
    names = documents.schema.get_field_index("name")
    fewer = documents.set_column(names, "name", pa.array([None, ["1.0"]], pa.list_(pa.string())))
    with pytest.raises(
        ConfigurationError, match="Document d1 has 2 tokens of pictures, and its raw table has 1"
    ):
        list(image_rows([fewer], read, SampleRows(8, 2, 0, IMAGE)))
