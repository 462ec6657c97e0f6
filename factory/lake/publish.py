"""Write-audit-publish: rows reach main only after checks on an audit branch.

    main    ---o----------------------------o          (fast-forwarded, in one commit)
                \\                          /
    audit_<run>  o---------o--------------o             (dropped by the same commit)
                 start     rows written   sealed with lineage and content fingerprint

A writer starts a branch, an engine writes rows to it, checks read it, `seal` adds an empty snapshot with the
lineage, and `publish` moves main. That commit succeeds only if main has not moved since the branch began;
otherwise PublishConflict names both snapshots and nothing has changed. After a failed check `set_aside` keeps
the branch as `failed_<run>` for inspection.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc
from pyiceberg.exceptions import CommitFailedException

from factory.errors import ConfigurationError, PublishConflict
from factory.lake.files.scan import stored
from factory.lake.fingerprint import Fingerprint, fingerprint
from factory.lake.lineage import Lineage
from factory.lake.names import TableName
from factory.lake.schemas.base import TableSchema
from factory.lake.schemas.packing import (
    N_SHARDS,
    N_TOKENS,
    SEQUENCE_LENGTH,
    TOKEN_BYTES,
    TOKENIZER_ID,
    VOCABULARY_SIZE,
)
from factory.lake.tables import Lake, Published, as_published, said_of

if TYPE_CHECKING:
    from pyiceberg.table import Table
    from pyiceberg.table.update import TableUpdate

AUDIT, FAILED = "audit_", "failed_"
_APPEND_ATTEMPTS = 20
_OF_TOKENS = (TOKENIZER_ID, TOKEN_BYTES, SEQUENCE_LENGTH)  # equal for all rows of a table


@dataclass(frozen=True)
class Audit:
    """A write in progress: its branch and the snapshot of main it began from (None for an empty main)."""

    table: TableName
    branch: str
    began_at: int | None


def branch_name(run_id: str) -> str:
    """Return the name of a run's audit branch; letters and digits only, because others need quoting."""
    return AUDIT + run_id.replace("-", "")[:12]


def head(table: Table, branch: str) -> int | None:
    """Return the snapshot id of a branch, None if the branch does not exist."""
    reference = table.metadata.refs.get(branch)
    return reference.snapshot_id if reference else None


def seal(lake: Lake, audit: Audit, lineage: Lineage, properties: dict[str, str] | None = None) -> int:
    """Add an empty snapshot with `lineage` to the branch and return its id.

    `properties` are further facts about the rows, including the table properties that `publish` sets, which
    describe the newest rows only. Raises PublishConflict if another run has dropped the branch.
    """
    table = lake.table(audit.table)
    if head(table, audit.branch) is None:  # an append would recreate the branch without the rows
        raise PublishConflict(
            f"Branch {audit.branch} of {audit.table} is gone: another run took this one for dead, because "
            "its connection to Postgres was lost. Nothing was published; run the asset again."
        )
    said = lineage.to_properties() | (properties or {})
    with (
        table.transaction() as transaction,
        transaction.update_snapshot(said, branch=audit.branch).fast_append(),
    ):
        pass  # no files
    sealed = head(table.refresh(), audit.branch)
    assert sealed is not None
    return sealed


def publish(lake: Lake, audit: Audit, properties: dict[str, str] | None = None) -> Published:
    """Move main to the head of the audit branch, drop the branch and set table `properties`, in one commit.

    Raises PublishConflict if main has moved since the audit began.
    """
    from pyiceberg.table.refs import MAIN_BRANCH, SnapshotRefType
    from pyiceberg.table.update import RemoveSnapshotRefUpdate, SetPropertiesUpdate, SetSnapshotRefUpdate

    sealed = head(lake.table(audit.table), audit.branch)
    assert sealed is not None, f"{audit.branch} of {audit.table} was never written"
    updates: list[TableUpdate] = [
        SetSnapshotRefUpdate(ref_name=MAIN_BRANCH, type=SnapshotRefType.BRANCH, snapshot_id=sealed),
        RemoveSnapshotRefUpdate(ref_name=audit.branch),
    ]
    if properties:
        updates.append(SetPropertiesUpdate(updates=properties))
    _commit(lake, audit, *updates)
    return lake.published_at(audit.table, sealed)


def set_aside(lake: Lake, audit: Audit) -> str:
    """Rename the branch of a failed check to `failed_<run>` and drop earlier ones; return the name."""
    from pyiceberg.table.refs import SnapshotRefType
    from pyiceberg.table.update import RemoveSnapshotRefUpdate, SetSnapshotRefUpdate

    table = lake.table(audit.table)
    at = head(table, audit.branch)
    assert at is not None
    kept = FAILED + audit.branch.removeprefix(AUDIT)
    earlier = [name for name in table.metadata.refs if name.startswith(FAILED) and name != kept]
    updates: list[TableUpdate] = [RemoveSnapshotRefUpdate(ref_name=name) for name in (*earlier, audit.branch)]
    kept_update = SetSnapshotRefUpdate(ref_name=kept, type=SnapshotRefType.BRANCH, snapshot_id=at)
    lake.catalog.commit_table(table, (), (kept_update, *updates))
    return kept


def drop_branches(lake: Lake, name: TableName, prefix: str) -> list[str]:
    """Drop every branch of a table with a name that starts with `prefix`; return the names."""
    from pyiceberg.table.update import RemoveSnapshotRefUpdate

    table = lake.table(name)
    found = sorted(branch for branch in table.metadata.refs if branch.startswith(prefix))
    if found:
        lake.catalog.commit_table(
            table, (), tuple(RemoveSnapshotRefUpdate(ref_name=branch) for branch in found)
        )
    return found


def append(
    lake: Lake,
    name: TableName,
    schema: TableSchema,
    rows: pa.Table,
    lineage: Lineage,
    properties: Mapping[str, str] | None = None,
) -> Published:
    """Append `rows` to main through PyIceberg, adding their fingerprint to the table's.

    One commit holds the rows and the new fingerprint, so an append that conflicts with another is retried on
    the newest main. `properties` name the tokenizer of rows with tokens. Raises PublishConflict if main kept
    moving, ConfigurationError for rows that PyIceberg would change and for tokens of another tokenizer than
    the table's.
    """
    from pyiceberg.table import TableProperties

    _require_lists(rows)
    added = fingerprint(rows.to_batches(), schema.fingerprinted)
    for _ in range(_APPEND_ATTEMPTS):
        table = lake.table(name)
        sealed = lineage.with_content(str(_content(lake, name, schema) + added))
        said = sealed.to_properties() | _said_of_all(table, name, rows, properties or {})
        # PyIceberg's own retry would commit a fingerprint that the other append has made stale.
        table.metadata.properties[TableProperties.COMMIT_NUM_RETRIES] = "0"
        try:
            table.append(rows, snapshot_properties=said)
        except CommitFailedException:
            continue
        return lake.published(name)
    raise PublishConflict(
        f"Main of {name} moved during each of {_APPEND_ATTEMPTS} attempts to append. "
        "Append again, with fewer writers at once."
    )


def _said_of_all(
    table: Table, name: TableName, rows: pa.Table, properties: Mapping[str, str]
) -> dict[str, str]:
    """Return the properties of all rows of main after appending `rows` with `properties`."""
    snapshot = table.current_snapshot()
    if snapshot is None or snapshot.summary is None or snapshot.summary.get("total-records") == "0":
        before: Mapping[str, str] = {N_TOKENS: "0"}
    else:
        before = said_of(table, snapshot)
        _require_alike(name, before, properties)
    kept = (TOKEN_BYTES, SEQUENCE_LENGTH, N_SHARDS, VOCABULARY_SIZE)
    said = {of: before[of] for of in kept if of in before}
    if {"tokens", "n_tokens"} <= set(rows.column_names) and N_TOKENS in before:
        said[N_TOKENS] = str(int(before[N_TOKENS]) + (pc.sum(rows["n_tokens"]).as_py() or 0))
    return said | dict(properties)


def _require_alike(name: TableName, before: Mapping[str, str], properties: Mapping[str, str]) -> None:
    """Raise ConfigurationError if another tokenizer than the table's made the appended rows."""
    for of in _OF_TOKENS:
        must_be_said = of == TOKENIZER_ID
        if before.get(of) != properties.get(of) and (must_be_said or of in properties):
            raise ConfigurationError(
                f"The rows of table {name} have `{of}` {before.get(of) or 'unknown'}, the rows to append "
                f"{properties.get(of) or 'unknown'}. Make them with the table's tokenizer and give that in "
                "`properties`, or write another table."
            )


def _content(lake: Lake, name: TableName, schema: TableSchema) -> Fingerprint:
    """Return the fingerprint of main, computed from its rows if another writer recorded none."""
    table = lake.table(name)
    snapshot = table.current_snapshot()
    if snapshot is None:
        return Fingerprint()
    recorded = as_published(name, table, snapshot).lineage.content
    if recorded:
        return Fingerprint.parse(recorded)
    columns = pa.schema([schema.columns.field(column) for column in schema.fingerprinted])
    rows = stored(table, snapshot.snapshot_id, columns)
    return fingerprint(lake.read(name).to_batches() if rows is None else rows, schema.fingerprinted)


def _require_lists(rows: pa.Table) -> None:
    """Raise ConfigurationError for a null list of structs, which PyIceberg would write as an empty list."""
    for column in rows.schema:
        kind = column.type
        of_structs = isinstance(kind, pa.ListType | pa.LargeListType) and pa.types.is_struct(kind.value_type)
        nulls = rows[column.name].null_count
        if of_structs and nulls:
            raise ConfigurationError(
                f"Column `{column.name}` is null in {nulls:,} of {rows.num_rows:,} rows, and an append would "
                "make these empty lists. Give empty lists, or write the table through Spark."
            )


def _commit(lake: Lake, audit: Audit, *updates: TableUpdate) -> None:
    """Commit `updates` if main has not moved; retry a commit that conflicts with another."""
    from pyiceberg.table.refs import MAIN_BRANCH
    from pyiceberg.table.update import AssertRefSnapshotId

    requirement = AssertRefSnapshotId(ref=MAIN_BRANCH, snapshot_id=audit.began_at)
    while True:
        table = lake.table(audit.table)
        now = head(table, MAIN_BRANCH)
        if now != audit.began_at:
            raise PublishConflict(
                f"Main of {audit.table} moved from snapshot {audit.began_at} to {now} while it was written "
                f"on {audit.branch}; nothing was published. Run the asset again on the new main."
            )
        try:
            lake.catalog.commit_table(table, (requirement,), updates)
        except CommitFailedException:
            continue
        return
