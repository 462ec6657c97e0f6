"""Split a selection of assets into runs: one per partitions definition, upstream first.

A Dagster run materializes partitions of one definition. A selection that mixes tables of different
partitions, or without partitions, is split into batches that depend on earlier batches only.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import dagster as dg

from factory.errors import ConfigurationError
from factory.orchestration.host.partition_span import Span

RANGE_FIRST, RANGE_LAST = "dagster/asset_partition_range_start", "dagster/asset_partition_range_end"
READERS_TAG = "factory/readers"  # on a run: tables that read earlier runs of the selection, between blanks
_SHOWN = 3  # partitions named by an error from each end of the list


@dataclass(frozen=True)
class RunBatch:
    """The assets of one run and its range of partitions, None for assets without partitions.

    `readers` are the assets that read tables of earlier runs of the same selection, and none of this run.
    """

    keys: tuple[dg.AssetKey, ...]
    span: Span | None = None
    readers: tuple[dg.AssetKey, ...] = ()

    @property
    def tags(self) -> Mapping[str, str]:
        """The Dagster tags of the run."""
        span = {} if self.span is None else dict(zip((RANGE_FIRST, RANGE_LAST), self.span, strict=True))
        names = " ".join(key.to_user_string() for key in self.readers)
        return span | ({READERS_TAG: names} if names else {})


def spans(keys: Iterable[str], order: Sequence[str]) -> list[Span]:
    """Return the fewest ranges of `order` that hold the given keys and no other."""
    positions = {key: position for position, key in enumerate(order)}
    ranges: list[list[int]] = []
    for position in sorted(positions[key] for key in keys):
        if ranges and position == ranges[-1][1] + 1:
            ranges[-1][1] = position
        else:
            ranges.append([position, position])
    return [(order[first], order[last]) for first, last in ranges]


def batches(
    assets: Iterable[dg.AssetsDefinition],
    keys: Iterable[dg.AssetKey],
    instance: dg.DagsterInstance,
    span: Span | None = None,
) -> list[RunBatch]:
    """Return the runs that materialize `keys`, with the partitions of `span`, or all partitions.

    External assets, which no run makes, are left out. A single dynamic partition that `span` names is
    created. Raises ConfigurationError if `span` names an
    unknown partition, if no table has partitions, or if a partitioned table has none yet.
    """
    chosen = set(keys)
    nodes = {key: asset for asset in assets if asset.is_executable for key in sorted(asset.keys & chosen)}
    if span is not None and not any(asset.partitions_def for asset in nodes.values()):
        raise ConfigurationError(
            f"None of {_named(sorted(nodes))} has partitions. Leave out --partition and --partitions."
        )
    spans = {
        asset.partitions_def: _span(key, asset.partitions_def, instance, span)
        for key, asset in sorted(nodes.items())
        if asset.partitions_def is not None
    }
    found: list[RunBatch] = []
    waiting = sorted(nodes)
    while waiting:
        # Tables without partitions wait as long as possible, so that one run writes them all.
        for of in (*spans, None):
            ready = _ready(waiting, nodes, of)
            if ready:
                earlier = {key for batch in found for key in batch.keys}
                readers = tuple(
                    key
                    for key in ready
                    if nodes[key].asset_deps[key] & earlier and not nodes[key].asset_deps[key] & set(ready)
                )
                found.append(RunBatch(tuple(ready), spans.get(of) if of is not None else None, readers))
                waiting = [key for key in waiting if key not in ready]
                break
    return found


def _ready(
    waiting: Sequence[dg.AssetKey],
    nodes: Mapping[dg.AssetKey, dg.AssetsDefinition],
    of: dg.PartitionsDefinition[str] | None,
) -> list[dg.AssetKey]:
    """Return the keys with partitions `of` that depend on no other waiting key, upstream first."""
    ready: list[dg.AssetKey] = []
    rest = set(waiting)
    while True:
        more = [
            key
            for key in waiting
            if key in rest and nodes[key].partitions_def == of and not nodes[key].asset_deps[key] & rest
        ]
        if not more:
            return ready
        ready += more
        rest -= set(more)


def _span(
    key: dg.AssetKey,
    of: dg.PartitionsDefinition[str],
    instance: dg.DagsterInstance,
    asked: Span | None,
) -> Span:
    """Return the first and last partition to write, checked against the partitions of the table."""
    has = list(of.get_partition_keys(dynamic_partitions_store=instance))
    table = key.to_user_string()
    if asked is None and not has:
        raise ConfigurationError(
            f"{table} has no partition yet. Name one with --partition, or let the sensor find them."
        )
    first, last = asked or (has[0], has[-1])
    if isinstance(of, dg.DynamicPartitionsDefinition) and of.name and first == last and first not in has:
        instance.add_dynamic_partitions(of.name, [first])
        has.append(first)
    for name in (first, last):
        if name not in has:
            shown = ", ".join(has if len(has) <= 2 * _SHOWN else [*has[:_SHOWN], "...", *has[-_SHOWN:]])
            raise ConfigurationError(
                f"Unknown partition `{name}` of {table}. It has {len(has)}: {shown or 'none yet'}."
            )
    if has.index(first) > has.index(last):
        raise ConfigurationError(
            f"Partition `{first}` of {table} comes after `{last}`. Reverse the range: {last}...{first}."
        )
    return first, last


def _named(keys: Iterable[dg.AssetKey]) -> str:
    return ", ".join(key.to_user_string() for key in keys)
