"""The end of a namespace that was created without a number of lanes."""

from __future__ import annotations

import os

from blender.global_batches.errors import Fenced
from blender.global_batches.namespace import open_namespace
from blender.global_batches.protocol import checkpoints, log
from blender.global_batches.protocol.client import incarnation_of_process
from blender.global_batches.protocol.state import END
from blender.global_batches.store.namespace_store import PATIENCE_S, open_store
from factory.errors import ConfigurationError
from factory.settings import Settings


def end_namespace(
    uri: str | os.PathLike[str], *, settings: Settings | None = None, patience_s: float = PATIENCE_S
) -> None:
    """End a namespace without a number of lanes: no lane goes on, and readers come to the end of data.

    Batches that are not committed yet are lost to it. Once more does nothing. Raises ConfigurationError for a
    namespace that its lanes end.
    """
    store = open_store(uri, settings, patience_s=patience_s)
    namespace = open_namespace(store)
    if namespace.lanes is not None:
        finish = "Let its producers run to their end" if namespace.order == "assigned" else "Finish them"
        raise ConfigurationError(
            f"The namespace at {store.uri} has {namespace.order} order and ends when its {namespace.lanes} "
            f"lanes are finished. {finish}, and its readers come to the end of data."
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
