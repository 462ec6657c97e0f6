"""The namespaces of durable batches that this lake fills, so that a trace can follow documents into them.

    register_namespace(settings, namespace.id, "s3://bucket/run7", blend)
    registered_namespaces(settings)     # [RegisteredNamespace("0c5e...", "s3://bucket/run7", "4f1c...")]

Each is an object in the warehouse, `batches/<id of the namespace>.json`, written by its producers. It says
where the namespace was; whether it is still there shows at its address.
"""

from __future__ import annotations

import json
import logging
import os
from dataclasses import asdict, dataclass
from pathlib import Path

import obstore

from blender.catalog.refusals import naming_folder
from blender.rows.checksummed_json import verified_content, with_checksum
from factory.errors import first_line
from factory.lake.store import object_store
from factory.settings import Settings

_LOG = logging.getLogger(__name__)
_FOLDER, _SUFFIX = "batches", ".json"


@dataclass(frozen=True)
class RegisteredNamespace:
    """A namespace, and the blend that fills it."""

    id: str
    uri: str
    blend: str


def register_namespace(settings: Settings, namespace: str, uri: str | os.PathLike[str], blend: str) -> None:
    """Record that a blend of this lake fills a namespace; the record of its id is replaced.

    Raises MachineError if the warehouse cannot be written.
    """
    address = os.fspath(uri)
    if "://" not in address:
        address = str(Path(address).resolve())
    body = json.dumps(asdict(RegisteredNamespace(namespace, address, blend))).encode()
    with naming_folder(settings, f"{settings.warehouse_uri}/{_FOLDER}"):
        obstore.put(object_store(settings), f"{_FOLDER}/{namespace}{_SUFFIX}", with_checksum(body))


def registered_namespaces(settings: Settings) -> list[RegisteredNamespace]:
    """All records, by address; a damaged one is left out, with a warning."""
    store = object_store(settings)
    names = [entry["path"] for chunk in obstore.list(store, prefix=_FOLDER) for entry in chunk]
    records: list[RegisteredNamespace] = []
    for name in names:
        if not name.endswith(_SUFFIX):
            continue
        try:
            content = verified_content(obstore.get(store, name).bytes().to_bytes())
            records.append(RegisteredNamespace(**json.loads(content)))
        except (ValueError, TypeError) as error:
            fault = first_line(error)
            _LOG.warning("%s is damaged (%s) and left out. Start its producer again.", name, fault)
    return sorted(records, key=lambda record: (record.uri, record.id))
