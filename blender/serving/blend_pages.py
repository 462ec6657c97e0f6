"""The pages of `List`: its answer is bounded, because most gRPC clients refuse a message over 4 MiB.

A blend takes some 90 bytes per source, so 120 updates of a blend of 400 sources would not fit. A page ends
at `page_size` blends or MAX_PAGE_BYTES, with at least one blend. Its token names the last blend, so blends
that are created or retired between two pages move no other blend to another page.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Sequence
from typing import Any

from blender.catalog.blends import StoredBlend
from blender.errors import InvalidRequest
from blender.proto.blender.v1 import blender_pb2 as pb

MAX_PAGE_BYTES = 2 << 20
_LONGEST_TOKEN = 1_000  # characters; deeper JSON than these can spell exhausts a parser's stack


def page_of_blends(
    blends: Sequence[StoredBlend], page_size: int, token: str, message_of: Callable[[StoredBlend], Any]
) -> Any:
    """Return the `ListResponse` after `token` (empty: the first page) of `blends`, oldest first.

    `message_of` makes the message of a blend. Raises InvalidRequest for a negative size and a foreign token.
    """
    if page_size < 0:
        raise InvalidRequest(
            f"page_size is {page_size}. Use a positive number, or 0 for as many as fit a message."
        )
    last_place = _place_of(token) if token else ("", "")
    page = pb.ListResponse()
    n_bytes = 0
    for blend in blends:
        if (place := _place(blend)) <= last_place:
            continue
        message = message_of(blend)
        n_bytes += message.ByteSize()
        is_full = n_bytes > MAX_PAGE_BYTES or len(page.blends) == page_size > 0
        if is_full and page.blends:
            page.next_page_token = _token_of(last_place)
            break
        page.blends.append(message)
        last_place = place
    return page


def _place(blend: StoredBlend) -> tuple[str, str]:
    """The order of the list: by time, then by id."""
    return blend.pins.created_at, blend.id


def _token_of(place: tuple[str, str]) -> str:
    return base64.urlsafe_b64encode(json.dumps(place).encode()).decode()


def _place_of(token: str) -> tuple[str, str]:
    try:
        place = json.loads(base64.b64decode(token[:_LONGEST_TOKEN], b"-_", validate=True))
    except ValueError:
        place = None
    match place:
        case [str(created_at), str(blend)]:
            return created_at, blend
    raise InvalidRequest(
        f"`{token[:80]}` is not a page token. Pass the next_page_token of the page before, or none."
    )
