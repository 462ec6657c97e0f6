"""Reclaim the batches that no open run can ask for.

    reclaim_batches("s3://bucket/run7")                 # Reclaimed(step=120, batches=40, ...)
    reclaim_batches("s3://bucket/run7", dry=True)       # counts, and deletes nothing

Any process may do so, at any time, also several at once; one that is stopped leaves nothing that the next one
does not find.
"""

from __future__ import annotations

import os

from blender.global_batches.log import marks
from blender.global_batches.log.reclaim import Reclaimed, reclaim
from blender.global_batches.namespace import open_namespace
from blender.global_batches.store.namespace_store import PATIENCE_S, open_store
from factory.errors import ConfigurationError
from factory.settings import Settings


def reclaim_batches(
    uri: str | os.PathLike[str],
    *,
    without_runs: bool = False,
    dry: bool = False,
    settings: Settings | None = None,
    patience_s: float = PATIENCE_S,
) -> Reclaimed:
    """Delete batches before the oldest live checkpoint of all open runs, and objects that no version names.

    Without an open run only orphans are deleted, or, `without_runs`, every visible batch. A `dry` call
    deletes nothing. Raises ConfigurationError for `without_runs` while runs are open, NamespaceNotFound,
    DamagedLog and StoreUnavailable.
    """
    store = open_store(uri, settings, patience_s=patience_s)
    client = open_namespace(store).client()
    if without_runs and (runs := store.run(marks.current(client)).open):
        names = ", ".join(f"`{name}`" for name in sorted(runs))
        raise ConfigurationError(
            f"Open runs hold batches of {store.uri}: {names}. Close those without a process (`factory "
            "batches close`), or reclaim without `--all`."
        )
    return store.run(reclaim(client, without_runs=without_runs, dry=dry))
