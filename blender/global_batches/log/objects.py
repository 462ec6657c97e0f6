"""The objects of the log as bytes: deltas and floors as JSON, checkpoints and segments as Arrow.

Every record holds a checksum. Reading raises DamagedLog, with the name of the object, for anything else than
what its writer wrote.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from operator import attrgetter
from typing import Any, TypeVar

import pyarrow as pa

from blender.global_batches.errors import DamagedLog
from blender.global_batches.json_values import Json, compact_json
from blender.global_batches.log.state import Delta, Descriptor, Lane, LogState
from blender.rows.checksummed_json import verified_content, with_checksum

Record = TypeVar("Record")

_COMPRESSED_FROM = 4096  # bytes of JSON
_ZSTD = b"\x28\xb5\x2f\xfd"  # the first bytes of a frame
_CHECKSUM = 4  # bytes after an Arrow stream
_STATE = b"state"
_LANE_FIELDS = tuple(field.name for field in fields(Lane))
_DESCRIPTORS = pa.schema(
    [
        ("step", pa.uint64()),
        ("name", pa.string()),
        ("n_bytes", pa.uint64()),
        ("footer_offset", pa.uint64()),
        ("footer_length", pa.uint32()),
        ("footer_hash", pa.binary(16)),
    ]
)


_FIELDS = tuple(_DESCRIPTORS.names)
_values = attrgetter(*_FIELDS)  # of a descriptor; a tenth of the time of `astuple`, which copies them deeply


@dataclass(frozen=True, slots=True)
class Floor:
    """The limit of deletion: versions of the log up to `version`, and batches of the steps before `step`.

    `deleted`, `marks`, `runs` and `deleted_bytes` belong to deletion by checkpoints of training runs: the
    steps with deleted batches, the marks that this record includes, the open runs after these marks, and the
    bytes of the deleted batches.
    """

    version: int = 0
    step: int = 0
    deleted: int = 0
    marks: int = 0
    runs: Mapping[str, Json] | None = None
    deleted_bytes: int = 0


def delta_to_bytes(delta: Delta) -> bytes:
    """A version of the log."""
    content = {
        "namespace": delta.namespace,
        "version": delta.version,
        "first_step": delta.first_step,
        "lane": delta.lane,
        "progress": _lane_fields(delta.progress),
        "batches": [
            dict(zip(_FIELDS, _values(batch), strict=True)) | {"footer_hash": batch.footer_hash.hex()}
            for batch in delta.batches
        ],
    }
    return _json_to_bytes(content)


def delta_from_bytes(body: bytes, name: str) -> Delta:
    """The inverse of `delta_to_bytes`."""

    def parse() -> Delta:
        content = _json_from_bytes(body)
        return Delta(
            version=content["version"],
            first_step=content["first_step"],
            lane=content["lane"],
            progress=Lane(**content["progress"]),
            batches=tuple(
                Descriptor(**row | {"footer_hash": bytes.fromhex(row["footer_hash"])})
                for row in content["batches"]
            ),
            namespace=content["namespace"],
        )

    return _parse(parse, name)


def floor_to_bytes(floor: Floor) -> bytes:
    """A record of the chain of floors."""
    content = asdict(floor)
    if not floor.deleted_bytes:  # so that earlier versions read the floors of a log that nobody reclaims
        del content["deleted_bytes"]
    return _json_to_bytes(content)


def floor_from_bytes(body: bytes, name: str) -> Floor:
    """The inverse of `floor_to_bytes`."""
    return _parse(lambda: Floor(**_json_from_bytes(body)), name)


def checkpoint_to_bytes(state: LogState) -> bytes:
    """The state after a version: the same bytes from any writer that has the same release of Arrow."""
    lanes = {name: _lane_fields(state.lanes[name]) for name in sorted(state.lanes)}
    content = {
        "version": state.version,
        "steps": state.steps,
        "n_bytes": state.n_bytes,
        "content": f"{state.content:032x}",
        "segments": [f"{content:032x}" for content in state.segments],
    }
    if state.finished_lanes:  # under a name that earlier versions miss: they would write such a lane again
        content |= {"other_lanes": lanes, "finished_lanes": state.finished_lanes}
    else:
        content["lanes"] = lanes
    return _table_to_bytes([*state.tail, *state.waiting], {_STATE: compact_json(content)})


def checkpoint_from_bytes(body: bytes, name: str) -> LogState:
    """The inverse of `checkpoint_to_bytes`."""

    def parse() -> LogState:
        batches, metadata = _table_from_bytes(body)
        content = json.loads(metadata[_STATE])
        lanes = "other_lanes" if "finished_lanes" in content else "lanes"
        n_visible = sum(batch.step < content["steps"] for batch in batches)
        return LogState(
            version=content["version"],
            steps=content["steps"],
            content=int(content["content"], 16),
            lanes={name: Lane(**lane) for name, lane in content[lanes].items()},
            segments=tuple(int(segment, 16) for segment in content["segments"]),
            tail=batches[:n_visible],
            waiting=batches[n_visible:],
            n_bytes=content["n_bytes"],
            finished_lanes=content.get("finished_lanes", 0),
        )

    return _parse(parse, name)


def finished_lane_to_bytes(name: str, lane: Lane, namespace: str | None) -> bytes:
    """A finished lane that leaves the state: the same bytes from any writer."""
    fields = _lane_fields(replace(lane, report=None))
    return _json_to_bytes({"namespace": namespace, "lane": name, "progress": fields})


def finished_lane_from_bytes(body: bytes, name: str) -> tuple[Lane, str | None]:
    """The inverse of `finished_lane_to_bytes`: the lane, and the id of its namespace."""

    def parse() -> tuple[Lane, str | None]:
        content = _json_from_bytes(body)
        return Lane(**content["progress"]), content["namespace"]

    return _parse(parse, name)


def segment_to_bytes(batches: Sequence[Descriptor]) -> bytes:
    """The batches of a segment."""
    return _table_to_bytes(batches, {})


def segment_from_bytes(body: bytes, name: str) -> tuple[Descriptor, ...]:
    """The inverse of `segment_to_bytes`."""
    return _parse(lambda: _table_from_bytes(body)[0], name)


def _parse(parse: Callable[[], Record], name: str) -> Record:
    try:
        return parse()
    except (ValueError, KeyError, TypeError, OSError, RecursionError, pa.ArrowException) as error:
        raise DamagedLog(f"{name} is damaged ({error}). Restore it from a copy of the namespace.") from error


def _lane_fields(lane: Lane) -> dict[str, object]:
    """The fields as they are: an offset may be nested too deeply to be copied."""
    return {name: getattr(lane, name) for name in _LANE_FIELDS}


def _json_to_bytes(content: Mapping[str, object]) -> bytes:
    body = with_checksum(compact_json(content))
    if len(body) < _COMPRESSED_FROM:
        return body
    sink = pa.BufferOutputStream()
    with pa.CompressedOutputStream(sink, "zstd") as stream:
        stream.write(body)
    return bytes(sink.getvalue())


def _json_from_bytes(body: bytes) -> Any:
    if body.startswith(_ZSTD):
        with pa.CompressedInputStream(pa.BufferReader(body), "zstd") as stream:
            body = stream.read()
    return json.loads(verified_content(body))


def _table_to_bytes(batches: Iterable[Descriptor], metadata: Mapping[bytes, bytes]) -> bytes:
    columns = list(zip(*map(_values, batches), strict=True)) or [()] * len(_DESCRIPTORS)
    arrays = [pa.array(column, field.type) for column, field in zip(columns, _DESCRIPTORS, strict=True)]
    schema = _DESCRIPTORS.with_metadata(metadata)
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, schema, options=pa.ipc.IpcWriteOptions(compression="zstd")) as stream:
        stream.write_batch(pa.record_batch(arrays, schema=schema))
    body = bytes(sink.getvalue())
    return body + zlib.crc32(body).to_bytes(_CHECKSUM, "little")


def _table_from_bytes(body: bytes) -> tuple[tuple[Descriptor, ...], Mapping[bytes, bytes]]:
    stream, checksum = body[:-_CHECKSUM], body[-_CHECKSUM:]
    if zlib.crc32(stream).to_bytes(_CHECKSUM, "little") != checksum:
        raise ValueError("its checksum does not match")
    options = pa.ipc.IpcReadOptions(use_threads=False)  # handing a small table to threads takes longer
    table = pa.ipc.open_stream(stream, options=options).read_all()
    rows = zip(*(column.to_pylist() for column in table.columns), strict=True)
    return tuple(Descriptor(*row) for row in rows), table.schema.metadata or {}
