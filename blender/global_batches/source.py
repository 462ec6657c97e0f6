"""What fills a namespace: the one source that all its producers read, recorded by the first of them.

    record_source(store, namespace, {"blend": "4f1c...", "chunking": "row"})
    read_source(store, namespace)                   # {"blend": "4f1c...", "chunking": "row"}

Producers that divide the steps of a sequence must read the same one, or a run would be a mixture of two. The
record is created once, so of two producers that start at the same time one is refused.
"""

from __future__ import annotations

import json
from collections.abc import Mapping

from blender.global_batches.errors import DamagedLog, NamespaceDiffers
from blender.global_batches.json_values import Json, compact_json
from blender.global_batches.log import names
from blender.global_batches.log.operations import ensure, get
from blender.global_batches.namespace import Namespace
from blender.global_batches.store.namespace_store import NamespaceStore
from blender.rows.checksummed_json import verified_content, with_checksum


def record_source(store: NamespaceStore, namespace: Namespace, source: Mapping[str, Json]) -> None:
    """Record what fills a namespace. Raises NamespaceDiffers if it is filled from another source."""
    body = with_checksum(compact_json({"namespace": namespace.id, "source": dict(source)}))
    store.run(ensure(names.SOURCE, body))
    recorded = read_source(store, namespace) or {}
    if recorded != source:
        raise NamespaceDiffers(
            f"The namespace at {store.uri} is filled from {_listed(recorded)}, and this producer reads "
            f"{_listed(source)}. Produce from the former, or create a namespace for the latter."
        )


def read_source(store: NamespaceStore, namespace: Namespace) -> dict[str, Json] | None:
    """The source of a namespace; None if no producer has recorded one."""
    body = store.run(get(names.SOURCE))
    if body is None:
        return None
    try:
        content = json.loads(verified_content(body))
        recorded_for, source = content["namespace"], dict(content["source"])
    except (ValueError, KeyError, TypeError) as error:
        raise DamagedLog(
            f"{names.SOURCE} of {store.uri} is damaged ({error}). Restore it from a copy."
        ) from error
    if recorded_for != namespace.id:
        raise NamespaceDiffers(
            f"{names.SOURCE} of {store.uri} was written for a namespace that was deleted. Create a namespace "
            "at an address of its own."
        )
    return source


def _listed(source: Mapping[str, Json]) -> str:
    return ", ".join(f"{name} {value}" for name, value in sorted(source.items()))
