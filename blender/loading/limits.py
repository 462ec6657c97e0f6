"""The refusals of rows and pictures that no microbatch can hold below its limit."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from blender.errors import InvalidRequest
from blender.loading.costs import Costs


def require_smaller(memory: Costs | None, limit: int | None, name_of: Callable[[int], str]) -> None:
    """Raise InvalidRequest for an item that alone is above the limit, and for a limit without memory."""
    if limit is None:
        return
    if memory is None:
        raise InvalidRequest("A limit bounds memory, and no memory was given. Pass `memory=` to `cost`.")
    largest = int(memory.argmax()) if len(memory) else 0
    if len(memory) and int(memory[largest]) > limit:
        raise InvalidRequest(
            f"{name_of(largest)} takes {memory[largest]:,}, and a microbatch may hold {limit:,}. Raise the "
            "limit, or pack into shorter rows."
        )


def without_room(row: str, memory: np.uint64, limit: int, *, equal_counts: bool) -> InvalidRequest:
    """The refusal of an item for which no microbatch of its group has room."""
    other_remedy = ", or allow different numbers of rows (`equal_counts=False`, `--ragged`)"
    return InvalidRequest(
        f"{row} takes {memory:,}, and no microbatch of its group has room for it below the limit of "
        f"{limit:,}. Raise `limit`, plan more `microbatches`{other_remedy if equal_counts else ''}."
    )
