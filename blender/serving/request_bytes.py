"""The bytes of a request as a message, or why they are none.

gRPC answers what a deserializer raises with INTERNAL and no reason, although the fault is the caller's. So
ours never raises: what is no request becomes a `Malformed`, which the service refuses with a sentence.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from google.protobuf.message import DecodeError

from blender.errors import InvalidRequest

MAX_REQUEST_BYTES = 4 << 20


@dataclass(frozen=True)
class Malformed:
    """Bytes that are no request, and why."""

    reason: str


def reader_of(message: Any) -> Callable[[bytes], Any]:
    """What makes a `message`, or a Malformed, of bytes."""
    name = message.DESCRIPTOR.name

    def read(data: bytes) -> Any:
        if len(data) > MAX_REQUEST_BYTES:
            return Malformed(
                f"A {name} of {len(data):,} bytes was sent, and at most {MAX_REQUEST_BYTES:,} are read. "
                "Send less."
            )
        try:
            return message.FromString(data)
        except DecodeError:
            return Malformed(
                f"The {len(data):,} bytes sent are no {name}. Make them with code generated from "
                "blender.proto of this version."
            )

    return read


def require_wellformed(request: Any) -> Any:
    """The request; raises InvalidRequest for a Malformed."""
    if isinstance(request, Malformed):
        raise InvalidRequest(request.reason)
    return request
