"""Records and messages convert by the names of their fields, so a new field needs no conversion code."""

from __future__ import annotations

from dataclasses import MISSING, fields
from pathlib import Path

import pytest

from blender.proto.blender.v1 import blender_pb2 as pb
from blender.records import (
    BlendRecord,
    DescribedPiece,
    DescribedSource,
    Description,
    ExplainedRow,
    Schedule,
    Segment,
    Source,
)
from blender.wire.messages import to_message, to_record

BLENDER = Path(__file__).parents[3] / "blender"

OTHER = {  # a value that is not the default
    "table": "packed.code",
    "weight": 3,
    "name": "code",
    "oversample": True,
    "shuffle": "page_window",
    "page_rows": 8,
    "window_pages": 4,
    "window_rows": 16,
    "validation": True,
    "live": True,
    "columns": ("n_tokens", "tokens"),
    "snapshot": 0,
    "branch": "",
    "tag": "v1",
    "content": "c0de-40",
}


@pytest.mark.parametrize("field", fields(Source), ids=lambda field: field.name)
def test_every_field_of_a_source_travels(field: object) -> None:
    name = field.name
    source = Source(**{"table": "packed.prose", name: OTHER[name]})
    assert getattr(source, name) != field.default or field.default is MISSING
    assert to_record(Source, to_message(pb.Source, source)) == source


def test_a_source_declares_what_its_message_declares() -> None:
    assert {field.name for field in fields(Source)} == set(pb.Source.DESCRIPTOR.fields_by_name)


def test_a_field_of_a_source_is_declared_in_two_files() -> None:
    """Others only read it off a source: the rules in `spec/source.py`, and those who act on it or name it."""
    named = {
        str(path.relative_to(BLENDER))
        for path in [*BLENDER.rglob("*.py"), *BLENDER.rglob("*.proto")]
        if "_pb2" not in path.name and "oversample" in path.read_text()
    }
    declared = {"records.py", "proto/blender/v1/blender.proto"}
    assert named == declared | {"spec/source.py", "spec/row_order.py", "opened/blend.py", "trainer/reader.py"}


def test_what_a_message_leaves_out_takes_the_default_of_the_record() -> None:
    assert to_record(Source, pb.Source(table="packed.code")) == Source("packed.code")


@pytest.mark.parametrize(
    "message, record",
    [
        (
            pb.Blend,
            BlendRecord(
                "4f1c",
                (Source("packed.code", 2), Source("packed.prose")),
                seed=2**64 - 1,
                parent="0a",
                offset=7,
                retired=True,
                schedule=Schedule(8, ((0, {"a": 1.0}), (9, {"a": 0.5, "b": 2.0})), "cosine"),
                pad=True,
            ),
        ),
        (
            pb.DescribeResponse,
            Description(
                "4f1c",
                (DescribedSource(Source("packed.code"), 40, tokens=0, padding=0.0),),
                (DescribedPiece(0, (), 8), DescribedPiece(5, (0, 3), 3)),
                padding=0.25,
            ),
        ),
        (
            pb.ExplainedRow,
            ExplainedRow(1, "code", "packed.code", 5, 2, (Segment("d", 0, 3), Segment("e", 9, 1))),
        ),
    ],
)
def test_nested_records_travel_whole(message: type, record: object) -> None:
    sent = message.FromString(to_message(message, record).SerializeToString())
    assert to_record(type(record), sent) == record
