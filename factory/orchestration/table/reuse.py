"""Which tables and partitions a run writes again, each with the reason; it may keep the others.

A source is read again if the names, sizes or times of its files differ from those it was read from, or if it
does not declare them. A partition is compared by the snapshot
that last replaced it, and with the same partition of upstream tables that share its partitions. A table with
a `growth` above one is frozen until the rows of its upstream tables have grown or shrunk by that factor. A
`lasting` table, such as a trained tokenizer, is written again if its configuration changed, or by a run that
selects it without any of its upstream tables, or if an upstream table that it lasts `until` changed.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Container, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from types import MappingProxyType

import dagster as dg

from factory.counted import conjunction
from factory.errors import DamagedFile, TableNotFound
from factory.ingest.state import Listing, differences, listing
from factory.lake.lineage import Lineage
from factory.lake.names import TableName
from factory.lake.tables import Lake, Partitions, Published
from factory.orchestration.keys import key_of
from factory.orchestration.table import code_parts
from factory.orchestration.table.configuration import difference
from factory.orchestration.table.declaration import Declaration, OnDemand, PartitionSelection

NEW = "it is new"
DAMAGED = "it is damaged"
SELECTED = "it was selected"
READ_EVERY_TIME = "sources are read every time"

Reasons = Mapping[str | None, str]
"""The reason to write each partition of a table, by key (None for a whole table)."""

NONE_ABSENT: Mapping[str, str] = MappingProxyType({})

Listings = Mapping[str | None, Listing]
"""The files of each partition of a source, by key; none of a source that does not declare them."""


@dataclass(frozen=True)
class Request:
    """How a run asks for a table.

    With `reuse` the run keeps unchanged tables. `by_itself` means that the selection has none of the table's
    upstream tables; a run then writes a lasting table again. `by_name` means that somebody wrote its name.
    """

    reuse: bool
    by_itself: bool
    by_name: bool = False

    @classmethod
    def of(
        cls,
        declared: Declaration,
        selected: Iterable[dg.AssetKey],
        *,
        reuse: bool,
        named_tables: Container[TableName] = (),
        readers: Container[TableName] = (),
    ) -> Request:
        """Return the request of a run of the `selected` assets; the user named `named_tables`.

        `readers` read tables of earlier runs of the same selection.
        """
        read = {key_of(table) for table in declared.upstream.values()}
        by_itself = read.isdisjoint(selected) and declared.table not in readers
        return cls(reuse, by_itself, declared.table in named_tables)


@dataclass(frozen=True)
class Omission:
    """The counted table of a table made on demand has only `rows` rows."""

    demand: OnDemand
    rows: int

    @property
    def reason(self) -> str:
        """When the table is made, and the rows that there are, as a phrase."""
        return f"{self.demand.condition}, and there {'is' if self.rows == 1 else 'are'} {self.rows:,}"


def listings_of(source: Declaration, keys: Iterable[str | None]) -> Listings:
    """List the files that a source reads, of each partition in `keys`."""
    return {key: listing(source.files(key)) for key in keys} if source.files is not None else {}


def reasons(
    lake: Lake,
    declared: Declaration,
    upstream: Mapping[str, Published],
    parts: PartitionSelection,
    request: Request,
    listings: Listings,
    pending: Container[TableName] = (),
    absent: Mapping[str, str] = NONE_ABSENT,
) -> Reasons:
    """Return why the run writes each key of `parts`; it keeps a key without a reason.

    `upstream` has the pinned snapshots by table, `listings` the present files of a source. The content of
    `pending` tables is no reason, because the run makes them first. It makes the `absent` tables first, too;
    rows made from one have its phrase as reason: it `is new`, or it `is damaged`.
    """
    compared = _Comparison(lake, declared, upstream, parts.copartitioned, listings, pending, absent)
    lasts = declared.lasting and (request.reuse or not request.by_itself)
    found: dict[str | None, str] = {}
    for key in parts.keys:
        why = compared.reason(key, lasts=lasts)
        if why is None and not request.reuse and not lasts:
            why = SELECTED
        if why is not None:
            found[key] = why
    return found


def differing_tables(
    lake: Lake,
    declaration: Declaration,
    upstream: Mapping[str, Published],
    parts: PartitionSelection,
    request: Request,
) -> set[TableName]:
    """Return the upstream tables with other content than when the rows of any key of `parts` were written."""
    comparison = _Comparison(lake, declaration, upstream, parts.copartitioned, {})
    lasts = declaration.lasting and (request.reuse or not request.by_itself)
    return {
        TableName.parse(table)
        for key in parts.keys
        for table in comparison.tables_that_differ(key, lasts=lasts)
    }


def omission(lake: Lake, declaration: Declaration, request: Request) -> Omission | None:
    """Return why a run leaves out a table made on demand, None if it does not.

    Raises TableNotFound if the counted table was never published.
    """
    demand = declaration.on_demand
    if demand is None or request.by_itself or request.by_name:
        return None
    rows = lake.published(demand.counted_table).rows
    return Omission(demand, rows) if rows < demand.rows else None


def stale_lasting(
    lake: Lake,
    declared: Declaration,
    upstream: Mapping[str, Published],
    absent: Mapping[str, str] = NONE_ABSENT,
) -> str:
    """Return the changes since a lasting table, or one made on demand, was written, and the remedy.

    Empty for other tables and if nothing changed. For `upstream` and `absent` see `reasons`.
    """
    if not declared.lasting and declared.on_demand is None:
        return ""
    listings = listings_of(declared, [None])
    comparison = _Comparison(lake, declared, upstream, frozenset(), listings, absent=absent)
    why = comparison.reason(None, lasts=False)
    table = declared.table
    if why and declared.on_demand is not None:
        read, snapshot = next(iter(lake.published(table).lineage.upstream.items()))
        why += f", and it shows snapshot {snapshot} of {read}"
    return f"{why}; `factory materialize {table}` makes it again" if why else ""


def phrase(found: Reasons) -> str:
    """Return the distinct reasons in one phrase; a new table needs none."""
    return "; ".join(dict.fromkeys(why for why in found.values() if why != NEW))


class _Comparison:
    """A table as it was written, compared with its present declaration and upstream tables."""

    def __init__(
        self,
        lake: Lake,
        declared: Declaration,
        upstream: Mapping[str, Published],
        copartitioned: frozenset[TableName],
        listings: Listings,
        pending: Container[TableName] = (),
        absent: Mapping[str, str] = NONE_ABSENT,
    ) -> None:
        self.lake, self.declared, self.upstream, self.listings = lake, declared, upstream, listings
        self.copartitioned, self.pending, self.absent = copartitioned, pending, absent
        self.partitions = lru_cache(maxsize=None)(lake.partitions)

    def reason(self, key: str | None, *, lasts: bool) -> str | None:
        """Return why the rows of `key` are outdated; rows that last depend on neither code nor upstream."""
        try:
            lineages = self._lineages(key)
        except TableNotFound:
            return NEW
        except DamagedFile:
            return DAMAGED
        if len(lineages) < len(self.declared.outputs):
            return NEW if key is None else f"partition {key} is new"
        return next(filter(None, (self._reason(lineage, key, lasts) for lineage in lineages)), None)

    def tables_that_differ(self, key: str | None, *, lasts: bool) -> Iterator[str]:
        """Yield the upstream tables that differ from the ones behind the rows of `key`."""
        for lineage in self._lineages(key):
            for table, _ in self._differences(lineage, key, self.declared.until if lasts else None):
                yield table

    def _lineages(self, key: str | None) -> list[Lineage]:
        """The lineages of the outputs, or of their partition `key`, as far as they were written."""
        outputs = (output.table for output in self.declared.outputs)
        lineages = (_lineage(self.lake, table, key, self.partitions) for table in outputs)
        return [lineage for lineage in lineages if lineage is not None]

    def _reason(self, lineage: Lineage, key: str | None, lasts: bool) -> str | None:
        if lineage.config != self.declared.config:
            return _changed_configuration(lineage, self.declared)
        if lasts and not self.declared.until:
            return None
        if not lasts and lineage.code_version != self.declared.code_version:
            return code_parts.difference(lineage.code, self.declared.code) or "its code changed"
        if self.declared.files is not None:
            if changed_files := _changed_files(lineage, key, self.listings[key]):
                return changed_files
        elif not self.declared.upstream:
            return READ_EVERY_TIME
        try:
            why = _joined(self._differences(lineage, key, self.declared.until if lasts else None))
            if why and self._is_frozen(lineage):
                return None
        except TableNotFound:
            return "a snapshot that it was made from has expired"
        except DamagedFile:
            return "a table that it was made from was damaged"
        return why

    def _differences(
        self, lineage: Lineage, key: str | None, among: Container[TableName] | None
    ) -> Iterator[tuple[str, str]]:
        """Yield the upstream tables (`among` some) that changed since the rows were written, and how."""
        now, before = (
            {table for table in tables if among is None or TableName.parse(table) in among}
            for tables in ({**self.upstream, **self.absent}, lineage.upstream)
        )
        for table in sorted(now - before):
            yield table, "is read now"
        for table in sorted(before - now):
            yield table, "is not read any more"
        for table in sorted(now & before):
            if table in self.absent:
                yield table, self.absent[table]
            elif not self._same(table, lineage.upstream[table], key):
                yield table, "changed"

    def _is_frozen(self, lineage: Lineage) -> bool:
        """Whether the rows upstream have grown too little; assumed of tables that are pending."""
        if self.declared.growth == 1:
            return False
        pending = any(TableName.parse(table) in self.pending for table in self.upstream)
        return (
            bool(self.absent) or pending or _frozen(self.lake, lineage, self.upstream, self.declared.growth)
        )

    def _same(self, table: str, snapshot_id: int, key: str | None) -> bool:
        name, now = TableName.parse(table), self.upstream[table]
        if snapshot_id == now.snapshot_id:
            return True
        before = self.lake.published_at(name, snapshot_id)
        if name in self.pending:
            return True
        if key is not None and name in self.copartitioned:
            of_key = [self.partitions(name, of.snapshot_id).content(key) for of in (before, now)]
            return of_key[0] is not None and of_key[0] == of_key[1]
        # A snapshot of another writer has no fingerprint to compare.
        return bool(now.lineage.content) and before.lineage.content == now.lineage.content


def _changed_configuration(lineage: Lineage, declaration: Declaration) -> str:
    """Return the values that changed; a table of an older version has none on record."""
    has_values = bool(lineage.values) or not lineage.config
    return (has_values and difference(lineage.values, declaration.values)) or "its configuration changed"


def _changed_files(lineage: Lineage, key: str | None, now: Listing) -> str | None:
    """Return which files changed since the rows were read, None if none did."""
    listing_text = lineage.listings.get(key or "")
    if listing_text is None:
        return READ_EVERY_TIME
    before = Listing.from_text(listing_text)
    if before.state != now.state:
        return ", ".join(differences(before, now)) or "its files changed"
    return None if before.is_settled else "its files were new when they were read, and may have changed since"


def _joined(differing: Iterable[tuple[str, str]]) -> str | None:
    """Return one phrase: tables of the same difference together, None without any."""
    tables: dict[str, list[str]] = {}
    for table, how in differing:
        tables.setdefault(how, []).append(table)
    phrases = (
        f"{conjunction(names)} {re.sub('^is ', 'are ', how) if len(names) > 1 else how}"
        for how, names in tables.items()
    )
    return ", ".join(phrases) or None


def made_alike(lake: Lake, declared: Declaration) -> Published | None:
    """Return the main table if the code and configuration of `declared` wrote all of it, else None.

    Its upstream tables may have changed since; the caller must know which of its rows still hold.
    """
    try:
        published = lake.published(declared.table)
    except (TableNotFound, DamagedFile):
        return None
    version = (published.lineage.code_version, published.lineage.config)
    return published if version == (declared.code_version, declared.config) else None


def _frozen(lake: Lake, lineage: Lineage, upstream: Mapping[str, Published], growth: float) -> bool:
    """Whether the upstream rows have changed by less than the factor `growth`, within the same tables."""
    before = sum(
        lake.published_at(TableName.parse(table), snapshot_id).rows
        for table, snapshot_id in lineage.upstream.items()
    )
    now = sum(published.rows for published in upstream.values())
    in_old = sum(published.rows for table, published in upstream.items() if table in lineage.upstream)
    return before < growth * in_old and now < growth * min(before, in_old)


def _lineage(
    lake: Lake, table: TableName, key: str | None, partitions: Callable[[TableName], Partitions]
) -> Lineage | None:
    """Return the lineage of a table or of its partition `key`; None if it was never written."""
    return lake.published(table).lineage if key is None else partitions(table).lineage.get(key)
