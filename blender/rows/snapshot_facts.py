"""The facts of a snapshot that reading its rows takes from a catalog, cached beside the page indexes.

Loading a table from a catalog costs milliseconds, and a blend may have hundreds of tables. A metadata file
never changes, and every commit to a table writes a new one. So the cache names the metadata file that its
facts come from, and a table is loaded again only after a commit. One query returns the metadata files of all
tables of a blend (`Lake.metadata_files`).
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass

import pyarrow as pa
from pyiceberg.table import Table
from pyiceberg.table.snapshots import Snapshot

from blender.rows.index_files import write_cache
from blender.rows.snapshot_files import snapshot_of
from factory.lake.schemas import N_TOKENS, SEQUENCE_LENGTH, TOKEN_BYTES, TOKENIZER_ID
from factory.lake.tables import said_of

_CONTENT, _UPSTREAM = "factory.content", "factory.upstream"
_MODELS = "models."
_TEXT = (
    "table",
    "uuid",
    "snapshot_id",
    "content",
    "token_bytes",
    "sequence_length",
    "tokenizer",
    "tokenizer_table",
    "n_tokens",
)
_FORMAT = "2"  # of the file; format 1 had no tokenizer
_SUM = 32  # bytes of the checksum in front


@dataclass(frozen=True)
class SnapshotFacts:
    """A snapshot as its table's metadata describes it."""

    table: str
    """Namespace and name."""
    uuid: str
    """The table's UUID; a table that is dropped and created again has another one."""
    snapshot_id: int
    content: str
    """Fingerprint of its rows; empty for a snapshot that the factory did not publish."""
    token_bytes: str | None
    sequence_length: str | None
    tokenizer: str | None
    """Identity of the tokenizer of all rows; None if the snapshot does not say."""
    tokenizer_table: str | None
    """The table of that tokenizer, for messages."""
    n_tokens: int | None
    """Tokens in all rows."""
    schema: pa.Schema

    @property
    def key(self) -> str:
        """A name that no other snapshot of any table has."""
        return f"{self.uuid}-{self.snapshot_id}"


def content_of(snapshot: Snapshot) -> str:
    """The fingerprint of a snapshot's rows; empty if it has none."""
    return str(snapshot.summary.additional_properties.get(_CONTENT, "")) if snapshot.summary else ""


def facts_of(table: Table, snapshot_id: int) -> SnapshotFacts:
    """The facts of a snapshot from the metadata of `table`; raises SourceGone if it has expired."""
    snapshot = snapshot_of(table, snapshot_id)
    schema = table.schema() if snapshot.schema_id is None else table.schemas()[snapshot.schema_id]
    # The table's own properties describe its newest rows, perhaps of another tokenizer.
    said = said_of(table, snapshot)
    n_tokens = said.get(N_TOKENS)
    return SnapshotFacts(
        table=".".join(table.name()),
        uuid=str(table.metadata.table_uuid),
        snapshot_id=snapshot_id,
        content=content_of(snapshot),
        token_bytes=said.get(TOKEN_BYTES, table.properties.get(TOKEN_BYTES)),
        sequence_length=said.get(SEQUENCE_LENGTH, table.properties.get(SEQUENCE_LENGTH)),
        tokenizer=said.get(TOKENIZER_ID),
        tokenizer_table=_tokenizer_table(said),
        n_tokens=int(n_tokens) if n_tokens is not None else None,
        schema=schema.as_arrow(),
    )


def _tokenizer_table(said: Mapping[str, str]) -> str | None:
    upstream = json.loads(said.get(_UPSTREAM) or "{}")
    return next((name for name in sorted(upstream) if name.startswith(_MODELS)), None)


def put_facts(path: str, facts: SnapshotFacts, metadata_file: str) -> None:
    """Store the facts from a metadata file behind their checksum."""
    said = {name: getattr(facts, name) for name in _TEXT}
    named = {name: str(it) for name, it in said.items() if it is not None}
    named |= {"metadata_file": metadata_file, "format": _FORMAT}
    content = facts.schema.with_metadata(named).serialize().to_pybytes()
    write_cache(path, hashlib.blake2b(content, digest_size=_SUM).digest() + content)


def read_facts(kept: bytes | memoryview | None, metadata_file: str) -> SnapshotFacts | None:
    """Stored facts; None if missing, damaged, or from another metadata file."""
    if kept is None or hashlib.blake2b(kept[_SUM:], digest_size=_SUM).digest() != kept[:_SUM]:
        return None
    schema = pa.ipc.read_schema(pa.py_buffer(kept[_SUM:]))
    named = {name.decode(): it.decode() for name, it in schema.metadata.items()}
    if named.get("metadata_file") != metadata_file or named.get("format") != _FORMAT:
        return None
    return SnapshotFacts(
        table=named["table"],
        uuid=named["uuid"],
        snapshot_id=int(named["snapshot_id"]),
        content=named["content"],
        token_bytes=named.get("token_bytes"),
        sequence_length=named.get("sequence_length"),
        tokenizer=named.get("tokenizer"),
        tokenizer_table=named.get("tokenizer_table"),
        n_tokens=int(named["n_tokens"]) if "n_tokens" in named else None,
        schema=schema.remove_metadata(),
    )
