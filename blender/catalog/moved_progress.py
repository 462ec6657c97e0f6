"""The progress of live sources after their lake has moved: its records hold hashes of data files' paths."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import obstore

from blender.catalog.store import BlendStore
from blender.rows.live.live_progress import from_content, hash_of, to_content
from factory.lake.store import object_store
from factory.settings import Settings


def move_progress(settings: Settings, moved_files: Callable[[], Iterable[tuple[str, str]]]) -> None:
    """Replace the hashes of the old paths by the hashes of the new paths, in every record of progress.

    `moved_files` yields old and new paths, and is called only if there are records. A hash of another path
    stays, so that running again changes nothing.
    """
    store = object_store(settings)
    records = BlendStore(settings).progress_files()
    if not records:
        return
    new_hashes = {hash_of(old): hash_of(new) for old, new in moved_files()}
    for record in records:
        hashes = from_content(obstore.get(store, record).bytes().to_bytes())
        if hashes is not None:
            obstore.put(store, record, to_content(new_hashes.get(known, known) for known in hashes))
