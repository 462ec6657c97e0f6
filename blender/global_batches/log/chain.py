"""Chains of created names: prefix/1, prefix/2, ... without a gap, never deleted.

The last record is the current one, and no process can put an earlier one back: an object that is overwritten
would fall again when a repeated request arrives late.
"""

from __future__ import annotations

from collections.abc import Callable

from blender.global_batches.log.operations import Routine, get

Name = Callable[[int], str]


def head(name: Name, known: int) -> Routine[tuple[int, bytes | None]]:
    """The index and the record of the last one, from one that is known to exist (0: none is).

    The record is None if there is no record after the known one. Doubles the distance and halves it again:
    30 reads find the head of a million records.
    """
    low, record, distance = known, None, 1
    while True:
        body = yield from get(name(low + distance))
        if body is None:
            break
        low, record, distance = low + distance, body, 2 * distance
    while distance > 1:  # nothing has the name `low + distance`
        distance //= 2
        body = yield from get(name(low + distance))
        if body is not None:
            low, record = low + distance, body
    return low, record
