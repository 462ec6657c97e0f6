"""What a table's metadata says of one of its snapshots: all that reading its rows takes from a catalog.

Loading a table from a catalog costs milliseconds, and a blend may have hundreds. A metadata file never
changes, though, and every commit to a table writes another. So what the last one said of a snapshot is kept
beside the page indexes, with the name of the file, and a table is loaded again only once it was committed to.
The catalog is asked for the files of all tables of a blend at once (`Lake.metadata_files`).
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

import pyarrow as pa
from pyiceberg.table import Table
from pyiceberg.table.snapshots import Snapshot

from blender.index_files import keep
from blender.snapshot_files import snapshot_of
from factory.lake.schemas import SEQUENCE_LENGTH, TOKEN_BYTES

_CONTENT = "factory.content"
_TEXT = ("table", "uuid", "snapshot_id", "content", "token_bytes", "sequence_length")
_SUM = 32  # bytes of the checksum in front


@dataclass(frozen=True)
class SnapshotFacts:
    """A snapshot of a table as its metadata describes it."""

    table: str
    """Namespace and name."""
    uuid: str
    """The table's: one that is dropped and made anew has another."""
    snapshot_id: int
    content: str
    """Fingerprint of its rows; empty where it was published by nobody we know."""
    token_bytes: str | None
    sequence_length: str | None
    schema: pa.Schema

    @property
    def key(self) -> str:
        """A name no other snapshot of any table has."""
        return f"{self.uuid}-{self.snapshot_id}"


def content_of(snapshot: Snapshot) -> str:
    """The fingerprint of a snapshot's rows; empty where it has none."""
    return str(snapshot.summary.additional_properties.get(_CONTENT, "")) if snapshot.summary else ""


def facts_of(table: Table, snapshot_id: int) -> SnapshotFacts:
    """What the metadata of `table` says of a snapshot; raises SourceGone where it has expired."""
    snapshot = snapshot_of(table, snapshot_id)
    schema = table.schema() if snapshot.schema_id is None else table.schemas()[snapshot.schema_id]
    # The table's own properties are those of its newest rows, perhaps of another tokenizer.
    said = snapshot.summary.additional_properties if snapshot.summary else {}
    return SnapshotFacts(
        table=".".join(table.name()),
        uuid=str(table.metadata.table_uuid),
        snapshot_id=snapshot_id,
        content=content_of(snapshot),
        token_bytes=said.get(TOKEN_BYTES, table.properties.get(TOKEN_BYTES)),
        sequence_length=said.get(SEQUENCE_LENGTH, table.properties.get(SEQUENCE_LENGTH)),
        schema=schema.as_arrow(),
    )


def put_facts(path: str, facts: SnapshotFacts, metadata_file: str) -> None:
    """Keep what a metadata file says, behind the sum that `read_facts` holds it against."""
    said = {name: getattr(facts, name) for name in _TEXT}
    named = {name: str(it) for name, it in said.items() if it is not None}
    named["metadata_file"] = metadata_file
    content = facts.schema.with_metadata(named).serialize().to_pybytes()
    keep(path, hashlib.blake2b(content, digest_size=_SUM).digest() + content)


def read_facts(kept: bytes | memoryview | None, metadata_file: str) -> SnapshotFacts | None:
    """Facts as they were put; None where there are no whole ones, or those of another metadata file."""
    if kept is None or hashlib.blake2b(kept[_SUM:], digest_size=_SUM).digest() != kept[:_SUM]:
        return None
    schema = pa.ipc.read_schema(pa.py_buffer(kept[_SUM:]))
    named = {name.decode(): it.decode() for name, it in schema.metadata.items()}
    if named.get("metadata_file") != metadata_file:
        return None
    return SnapshotFacts(
        table=named["table"],
        uuid=named["uuid"],
        snapshot_id=int(named["snapshot_id"]),
        content=named["content"],
        token_bytes=named.get("token_bytes"),
        sequence_length=named.get("sequence_length"),
        schema=schema.remove_metadata(),
    )
