"""Manual ends: of a lane without a producer, and of a namespace with lanes that come and go."""

from __future__ import annotations

import os

from blender.errors import InvalidRequest
from blender.global_batches.errors import Fenced
from blender.global_batches.log import checkpoints, log
from blender.global_batches.log.client import incarnation_of_process
from blender.global_batches.log.state import END
from blender.global_batches.namespace import open_namespace
from blender.global_batches.store.namespace_store import PATIENCE_S, open_store
from blender.global_batches.writer import BatchWriter
from factory.counted import counted
from factory.errors import ConfigurationError
from factory.settings import Settings


def finish_lane(
    uri: str | os.PathLike[str],
    lane: str | int,
    *,
    settings: Settings | None = None,
    patience_s: float = PATIENCE_S,
) -> int:
    """Close a lane in place of its producer, which can commit no more; return the number of its batches.

    The producer's uncommitted batches are lost. A second call does nothing. Raises InvalidRequest for a lane
    that nobody has opened, UnevenLanes if steps of other lanes would never be read, and Fenced if its
    producer is started again at this moment.
    """
    store = open_store(uri, settings, patience_s=patience_s)
    client = open_namespace(store).client()
    state = store.run(log.load(client))
    state = store.run(checkpoints.recall(client, state, f"{lane}"))
    names = sorted({*state.lanes, *state.recalled_lanes} - {END})
    if f"{lane}" not in names:
        listing = ", ".join(f"`{name}`" for name in names)
        remedy = f"Give one of its lanes: {listing}." if names else "It has no lanes yet."
        raise InvalidRequest(f"Nobody has opened lane `{lane}` of {store.uri}. {remedy}")
    with BatchWriter(uri, lane, settings=settings, patience_s=patience_s) as writer:
        writer.finish()
    return writer.committed


def end_namespace(
    uri: str | os.PathLike[str], *, settings: Settings | None = None, patience_s: float = PATIENCE_S
) -> None:
    """End a namespace without a number of lanes: no lane continues, and readers reach the end of data.

    Uncommitted batches are lost. A second call does nothing. Raises ConfigurationError for a
    namespace that its lanes end.
    """
    store = open_store(uri, settings, patience_s=patience_s)
    namespace = open_namespace(store)
    if namespace.lanes is not None:
        finish = "Let its producers run to their end" if namespace.order == "assigned" else "Finish each"
        raise ConfigurationError(
            f"The namespace at {store.uri} has {namespace.order} order and "
            f"{counted(namespace.lanes, 'lane')}, and ends once these are finished. {finish} (`factory "
            "batches finish` does it for a producer that is gone), and its readers come to the end of data."
        )
    client = namespace.client()
    is_ended = False
    while not is_ended:
        try:
            claim, state = store.run(log.take(client, END, incarnation_of_process()))
            while claim is not None and not state.is_ended:
                state = store.run(log.attempt(client, claim, state, (), closed=True))
                store.run(checkpoints.maintain(client, state))
            is_ended = state.is_ended
        except Fenced:
            continue  # another process ends it too
