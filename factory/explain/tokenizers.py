"""The tokenizers of a lake: the newest of a name, or the one that made the tokens of a blend.

A tokenizer that is trained again keeps its table and changes its tokens. The packed tables of a blend record
the identity of a snapshot; only this snapshot decodes their tokens correctly.
"""

from __future__ import annotations

from dataclasses import dataclass

from blender.rows.snapshot_facts import facts_of
from blender.trainer.local import LocalBlender
from factory.errors import ConfigurationError, NotFound, TableNotFound
from factory.lake import names
from factory.lake.identity import tokenizer_id
from factory.lake.names import TableName
from factory.lake.tables import Lake, unknown_table
from factory.settings import Settings


@dataclass(frozen=True)
class StoredTokenizer:
    """A tokenizer of the lake; `content` is its Hugging Face `tokenizer.json`."""

    table: TableName
    snapshot_id: int
    n_tokens: int
    content: str

    @property
    def id(self) -> str:
        """The identity that packed tables record."""
        return tokenizer_id(self.content)


def newest_tokenizer(lake: Lake, name: str | None) -> StoredTokenizer:
    """Return the newest tokenizer `name`, or the only tokenizer of the lake.

    Raises TableNotFound for an unknown name or an empty table, NotFound for a lake without tokenizers,
    ConfigurationError if the lake has several and none is named.
    """
    table = _only(lake) if name is None else names.model(name)
    if table not in lake.names_in_file():
        raise unknown_table(table)
    found = _read(lake, table, lake.published(table).snapshot_id)
    if found is None:
        raise TableNotFound(f"Table {table} is empty. Make it again: factory materialize {table}.")
    return found


def tokenizer_of_blend(settings: Settings, blend: str) -> StoredTokenizer:
    """Return the tokenizer that made the tokens of a blend.

    Raises BlendNotFound, and NotFound if the blend does not record its tokenizer or the snapshot has expired.
    """
    lake = Lake(settings)
    sources = LocalBlender(settings).describe(blend).sources
    made_by = next((source for source in sources if source.tokenizer and source.tokenizer_table), None)
    if made_by is None or made_by.tokenizer_table is None:
        raise NotFound(
            f"Blend {blend} does not record which tokenizer made its tokens. "
            "Name the tokenizer: factory tokenizer export FILE --name tokenizer."
        )
    assert made_by.tokenizer is not None
    table = TableName.parse(made_by.tokenizer_table)
    tokenizer = _of_identity(lake, table, made_by.tokenizer)
    if tokenizer is None:
        raise NotFound(
            f"No snapshot of {table} holds tokenizer {made_by.tokenizer}, which made the tokens of {blend}. "
            "It has expired: pack the sources again, then create the blend again."
        )
    return tokenizer


def tokenizer_of_packed(lake: Lake, table: TableName, snapshot_id: int) -> StoredTokenizer | None:
    """Return the tokenizer that made the tokens of a packed snapshot; None if the lake does not have it."""
    facts = facts_of(lake.table(table), snapshot_id)
    if facts.tokenizer is None or facts.tokenizer_table is None:
        return None
    tokenizer_table = TableName.parse(facts.tokenizer_table)
    return _of_identity(lake, tokenizer_table, facts.tokenizer) if lake.exists(tokenizer_table) else None


def _of_identity(lake: Lake, table: TableName, identity: str) -> StoredTokenizer | None:
    for snapshot in reversed(lake.table(table).snapshots()):
        tokenizer = _read(lake, table, snapshot.snapshot_id)
        if tokenizer is not None and tokenizer.id == identity:
            return tokenizer
    return None


def _only(lake: Lake) -> TableName:
    tables = [table for table in lake.names_in_file() if table.namespace == "models"]
    if not tables:
        raise NotFound("The lake has no tokenizer. Make one: factory materialize '*models.tokenizer'.")
    if len(tables) > 1:
        raise ConfigurationError(
            f"The lake has the tokenizers {', '.join(it.name for it in tables)}. Choose one with --name."
        )
    return tables[0]


def _read(lake: Lake, table: TableName, snapshot_id: int) -> StoredTokenizer | None:
    """Return the tokenizer of a snapshot; None for a snapshot between deleting a row and writing the next."""
    rows = lake.read(table, ["n_tokens", "tokenizer"], snapshot_id=snapshot_id).to_pylist()
    return StoredTokenizer(table, snapshot_id, rows[0]["n_tokens"], rows[0]["tokenizer"]) if rows else None
