"""Columns split into the leaves that Parquet stores, and assembled from them again.

    segments: list<struct<doc_id, doc_offset, length>>
        segments.list.element.doc_id          each leaf is read alone, as the column with just this leaf
        segments.list.element.doc_offset
        segments.list.element.length

Names below a column follow Iceberg's writers. Maps are refused: Arrow has no type for one leaf of a map.
"""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc

from blender.errors import InvalidBlend


def leaves(name: str, kind: pa.DataType) -> list[str]:
    """The leaves of a column by their paths in Parquet; raises InvalidBlend for a map."""
    if pa.types.is_list(kind):
        return leaves(f"{name}.list.element", kind.value_type)
    if pa.types.is_struct(kind):
        return [leaf for field in kind for leaf in leaves(f"{name}.{field.name}", field.type)]
    if pa.types.is_map(kind):
        raise InvalidBlend(
            f"Column `{name}` holds maps, which Blender does not read. Leave it out of `columns`."
        )
    return [name]


def joined(kind: pa.DataType, parts: Sequence[pa.Array]) -> pa.Array:
    """The column assembled from its leaves; each of `parts` carries the lists and structs above its leaf."""
    if pa.types.is_list(kind):
        first = parts[0]
        values = joined(kind.value_type, [_values(part) for part in parts])
        offsets = pc.subtract(first.offsets, first.offsets[0])
        mask = first.is_null() if first.null_count else None
        return pa.ListArray.from_arrays(offsets.cast(pa.int32()), values, type=kind, mask=mask)
    if pa.types.is_struct(kind):
        children, rest = [], list(parts)
        for field in kind:
            n = len(leaves("", field.type))
            children.append(joined(field.type, [part.field(0) for part in rest[:n]]))
            rest = rest[n:]
        first = parts[0]
        mask = first.is_null() if first.null_count else None
        return pa.StructArray.from_arrays(children, fields=list(kind), mask=mask)
    (part,) = parts
    return part if part.type == kind else part.cast(kind)


def _values(part: pa.Array) -> pa.Array:
    first, last = part.offsets[0].as_py(), part.offsets[-1].as_py()
    return part.values.slice(first, last - first)
