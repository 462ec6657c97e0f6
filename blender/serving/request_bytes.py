"""The bytes of a request as a message, or the reason why they are malformed.

gRPC answers an exception of a deserializer with INTERNAL and no reason, although the caller is at fault. Our
deserializer therefore never raises: malformed bytes become a `Malformed`, which the service refuses with a
sentence.
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
    """Why bytes are not a request."""

    reason: str


def deserializer(message: Any) -> Callable[[bytes], Any]:
    """A function from bytes to a `message`, or to a Malformed."""
    name = message.DESCRIPTOR.name

    def read(data: bytes) -> Any:
        if len(data) > MAX_REQUEST_BYTES:
            return Malformed(
                f"The {name} has {len(data):,} bytes, and Blender reads at most {MAX_REQUEST_BYTES:,}. "
                "Send less."
            )
        try:
            return message.FromString(data)
        except DecodeError:
            return Malformed(
                f"The {len(data):,} bytes are not a valid {name}. Use code generated from this version's "
                "blender.proto."
            )

    return read


def require_wellformed(request: Any) -> Any:
    """The request; raises InvalidRequest for a Malformed."""
    if isinstance(request, Malformed):
        raise InvalidRequest(request.reason)
    return request
