"""The facts from the catalog that reading a snapshot needs, cached with the page indexes.

Loading a table from a catalog costs milliseconds, and a blend may have hundreds of tables. A metadata file
never changes, and every commit to a table writes a new one. So the cache names the metadata file that its
facts come from, and a table is loaded again only after a commit. One query returns the metadata files of all
tables of a blend (`Lake.metadata_files`).
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from blender.rows.snapshot_files import snapshot_of
from blender.rows.summed import summed, verified
from factory.lake.schemas.images import IMAGE_TOKEN
from factory.lake.schemas.packing import N_TOKENS, SEQUENCE_LENGTH, TOKEN_BYTES, TOKENIZER_ID, VOCABULARY_SIZE
from factory.lake.tables import said_of

if TYPE_CHECKING:
    from pyiceberg.table import Table
    from pyiceberg.table.snapshots import Snapshot

_CONTENT, _UPSTREAM = "factory.content", "factory.upstream"
_MODELS = "models."
_FORMAT = "4"  # of the file; format 1 had no tokenizer, format 2 no vocabulary, format 3 no image token


@dataclass(frozen=True, kw_only=True)
class SnapshotFacts:
    """A snapshot as its table's metadata describes it."""

    table: str
    """Namespace and name."""
    uuid: str
    """The table's UUID; a table that is dropped and created again has another one."""
    snapshot_id: int
    content: str
    """Fingerprint of its rows; empty for a snapshot that the factory did not publish."""
    token_bytes: str | None = None
    sequence_length: str | None = None
    tokenizer: str | None = None
    """Identity of the tokenizer of all rows; None if the snapshot does not say."""
    tokenizer_table: str | None = None
    """The table of that tokenizer, for messages."""
    vocabulary: int | None = None
    """Size of that tokenizer's vocabulary."""
    n_tokens: int | None = None
    """Tokens in all rows."""
    image_token: int | None = None
    """The token that stands for a picture; None for a table without pictures."""
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
    properties = said_of(table, snapshot)
    return SnapshotFacts(
        table=".".join(table.name()),
        uuid=str(table.metadata.table_uuid),
        snapshot_id=snapshot_id,
        content=content_of(snapshot),
        token_bytes=properties.get(TOKEN_BYTES, table.properties.get(TOKEN_BYTES)),
        sequence_length=properties.get(SEQUENCE_LENGTH, table.properties.get(SEQUENCE_LENGTH)),
        tokenizer=properties.get(TOKENIZER_ID),
        tokenizer_table=_tokenizer_table(properties),
        vocabulary=_number(properties.get(VOCABULARY_SIZE)),
        n_tokens=_number(properties.get(N_TOKENS)),
        image_token=_number(properties.get(IMAGE_TOKEN, table.properties.get(IMAGE_TOKEN))),
        schema=schema.as_arrow(),
    )


def _number(value: str | None) -> int | None:
    return None if value is None else int(value)


def _tokenizer_table(properties: Mapping[str, str]) -> str | None:
    upstream = json.loads(properties.get(_UPSTREAM) or "{}")
    return next((name for name in sorted(upstream) if name.startswith(_MODELS)), None)


def pack_facts(facts: SnapshotFacts, metadata_file: str) -> bytes:
    """The facts from a metadata file behind their checksum, as `read_facts` takes them."""
    values = {name: value for name, value in vars(facts).items() if name != "schema" and value is not None}
    named = {name: str(value) for name, value in values.items()}
    named |= {"metadata_file": metadata_file, "format": _FORMAT}
    return summed(facts.schema.with_metadata(named).serialize().to_pybytes())


def read_facts(kept: bytes | memoryview | None, metadata_file: str) -> SnapshotFacts | None:
    """Stored facts; None if missing, damaged, or from another metadata file."""
    content = verified(kept)
    if content is None:
        return None
    schema = pa.ipc.read_schema(pa.py_buffer(content))
    named: dict[str, Any] = {name.decode(): value.decode() for name, value in schema.metadata.items()}
    if (named.pop("metadata_file", None), named.pop("format", None)) != (metadata_file, _FORMAT):
        return None
    numbers = ("snapshot_id", "vocabulary", "n_tokens", "image_token")
    named |= {name: int(named[name]) for name in numbers if name in named}
    return SnapshotFacts(**named, schema=schema.remove_metadata())
