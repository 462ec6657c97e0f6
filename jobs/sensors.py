"""The sensor `new_input`: it watches files of datasets, facts and models and requests runs when they change.

The state of an input is a hash of the names, sizes and times of its files (`factory.ingest.state`). A new
state requests a run once it has been seen at two ticks, so that files still being written are waited for.
When the sensor has no memory of an input, it compares the state with the one that the tables were made from.
All changed partitions that follow each other are one run, because each run starts a JVM. Partitions of a
failed run get runs apart from the changed partitions, because a run publishes all its partitions or none.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import astuple, dataclass, replace

import dagster as dg

from factory.errors import DamagedFile, TableNotFound
from factory.ingest.state import Listing, state
from factory.lake.lineage import Lineage
from factory.lake.names import TableName
from factory.lake.tables import Lake
from factory.orchestration.host.partitions import RunBatch, spans
from factory.orchestration.host.queue import IN_TURN_TAG
from factory.orchestration.host.resources import PRIORITY_TAG, REUSE_TAG
from factory.orchestration.keys import key_of, table_of
from factory.orchestration.table.table_asset import declaration_of
from factory.settings import Settings, settings
from jobs.watched import Watched, WatchedTable, tables_of_files
from spark_udfs.ingest.remote.files import resolve_branches_anew

NAME = "new_input"


@dataclass(frozen=True)
class Seen:
    """The memory of an input: state at the last tick, last requested state, number of requests.

    `waits` says that it changed while a run was under way, so that failed inputs are still to be looked for.
    """

    state: str = ""
    asked: str = ""
    times: int = 0
    waits: bool = False

    def again(self) -> Seen:
        """Return the memory after another request of the same state."""
        return replace(self, times=self.times + 1)

    def now(self, state: str) -> Seen:
        """Return the memory after a tick with `state`, which is requested if it is new and was seen twice."""
        if state == self.state and state != self.asked:
            return Seen(state, state, self.times + 1, self.waits)
        return replace(self, state=state)


@dataclass(frozen=True)
class Change:
    """The inputs of a table to request: `changed` inputs, and unchanged inputs of a run that `failed`."""

    watched: Watched | WatchedTable
    changed: Mapping[str, Seen]
    failed: Mapping[str, Seen]

    @property
    def inputs(self) -> dict[str, Seen]:
        """All inputs to request."""
        return {**self.changed, **self.failed}


def new_input(
    assets: Sequence[dg.AssetsDefinition],
    watched: Sequence[Watched],
    *,
    every_s: int = 60,
    lake_settings: Settings | None = None,
) -> dg.SensorDefinition:
    """Return a sensor that checks every `every_s` seconds and requests runs for changed files.

    It looks at the paths of `watched` and at the files that other `assets` declare. It compares inputs that
    it has no memory of with the tables of `lake_settings`, by default the environment's. The sensor is off
    until somebody starts it.
    """

    every_input: list[Watched | WatchedTable] = [*watched, *tables_of_files(assets, watched)]
    watches = ", ".join(f"`{dataset.dataset}`" for dataset in watched) or "no dataset"

    @dg.sensor(
        name=NAME,
        asset_selection=dg.AssetSelection.all(),
        minimum_interval_seconds=every_s,
        description=f"Every {every_s} seconds, looks for files that were added, changed or removed below the "
        f"paths of {watches} and among the files of facts, word lists, models and tokenizers. If two "
        "looks in a row find the same change, it requests a run of the tables made from them and everything "
        "downstream, unless they were made from the same files; a new folder becomes a partition. Off until "
        "you start it.",
    )
    def sensor(context: dg.SensorEvaluationContext) -> dg.SensorResult | dg.SkipReason:
        if not every_input:
            return dg.SkipReason("No dataset of this corpus is read from files that can be watched.")
        lake = Lake(lake_settings or settings())
        resolve_branches_anew()
        remembered = json.loads(context.cursor or "{}")
        cursor: dict[str, dict[str, tuple[object, ...]]] = {}
        changes: list[Change] = []
        added: list[dg.AddDynamicPartitionsRequest] = []
        for dataset in every_input:
            before = {name: Seen(*memory) for name, memory in remembered.get(dataset.name, {}).items()}
            states = {name: state(paths) for name, paths in dataset.inputs().items()}
            after = {name: before.get(name, Seen()).now(digest) for name, digest in states.items()}
            changed = [name for name, seen in after.items() if seen.times > before.get(name, Seen()).times]
            waits = any(seen.waits for seen in after.values())
            if changed or (waits and not _under_way(context.instance)):
                made = _made(lake, assets, dataset)
                first_seen = [name for name in changed if not before[name].asked]
                requested = set(changed) - {name for name in first_seen if made.has(name, after[name].state)}
                failed: set[str] = set()
                if _under_way(context.instance):
                    after |= {name: replace(after[name], waits=True) for name in changed}
                else:
                    failed = {name for name, seen in after.items() if made.lacks(name, seen)} - set(changed)
                    after |= {name: after[name].again() for name in failed}
                    after = {name: replace(seen, waits=False) for name, seen in after.items()}
                changes.append(
                    Change(
                        dataset,
                        {name: after[name] for name in sorted(requested)},
                        {name: after[name] for name in sorted(failed)},
                    )
                )
            if isinstance(dataset.partitions, dg.DynamicPartitionsDefinition) and changed:
                added.append(dataset.partitions.build_add_request(sorted(changed)))
            # A missing folder is remembered: its rows stay, and it may come back.
            cursor[dataset.name] = {name: astuple(seen) for name, seen in (before | after).items()}
        return dg.SensorResult(
            run_requests=list(_requests(assets, changes, context.instance)),
            dynamic_partitions_requests=added,
            cursor=json.dumps(cursor),
        )

    return sensor


@dataclass(frozen=True)
class Made:
    """The inputs that the tables of a dataset were made from.

    `read` has the state of each input that the raw table holds, empty if the source did not record it;
    `complete` are the inputs that every table downstream holds, made from any snapshot of the raw table.
    """

    read: Mapping[str, str]
    complete: Collection[str]

    def has(self, name: str, state: str) -> bool:
        """Whether the raw table was made from this state of an input, and all tables downstream hold it."""
        return name in self.complete and self.read[name] == state

    def lacks(self, name: str, seen: Seen) -> bool:
        """Whether the raw table was not made from the state of an input that was requested."""
        return seen.state == seen.asked and self.read.get(name) not in ("", seen.state)


def _made(lake: Lake, assets: Sequence[dg.AssetsDefinition], watched: Watched | WatchedTable) -> Made:
    """Return the inputs that the watched table and the tables behind it were made from, by partition."""
    source = watched.table
    inputs: dict[TableName, dict[str, str]] = {}
    behind = downstream(assets, key_of(source))
    for asset in assets:
        for table in map(table_of, asset.keys & behind):
            if asset.is_executable and declaration_of(asset).on_demand is not None:
                continue  # a run may leave it out
            try:
                if asset.partitions_def is None:
                    inputs[table] = {"": _state_of_files(lake.published(table).lineage)}
                else:
                    lineages = lake.partitions(table).lineage
                    inputs[table] = {key: lineage.inputs.get(key, "") for key, lineage in lineages.items()}
            except (TableNotFound, DamagedFile):  # a run makes the missing table, or names the damaged file
                inputs[table] = {}
    read = inputs[source]
    everywhere = [held for held in inputs.values() if ("" in held) == (watched.partitions is None)]
    all_exist = all(inputs.values())
    return Made(read, {name for name in read if all_exist and all(name in held for held in everywhere)})


def _state_of_files(lineage: Lineage) -> str:
    """Return the state of the files that a table was made from, empty if it is not on record."""
    if "" in lineage.inputs or "" not in lineage.listings:
        return lineage.inputs.get("", "")
    return Listing.from_text(lineage.listings[""]).state


def _under_way(instance: dg.DagsterInstance) -> bool:
    """Whether a run that the sensor requested is queued or running."""
    ended = {dg.DagsterRunStatus.SUCCESS, dg.DagsterRunStatus.FAILURE, dg.DagsterRunStatus.CANCELED}
    statuses = [status for status in dg.DagsterRunStatus if status not in ended]
    asked = dg.RunsFilter(tags={"dagster/sensor_name": NAME}, statuses=statuses)
    return bool(instance.get_runs_count(asked))


def _requests(
    assets: Sequence[dg.AssetsDefinition],
    changes: Iterable[Change],
    instance: dg.DagsterInstance,
) -> Iterator[dg.RunRequest]:
    """Yield a run for each range of changed or of failed partitions, then one run of everything downstream.

    The runs go one at a time: downstream tables read all partitions.
    """
    whole: set[dg.AssetKey] = set()
    states: list[str] = []
    tags = {REUSE_TAG: "true", IN_TURN_TAG: "true"}
    for change in changes:
        watched, inputs = change.watched, change.inputs
        if not inputs:
            continue
        dataset = watched.name
        behind = downstream(assets, key_of(watched.table))
        partitioned = {key for asset in assets if asset.partitions_def for key in asset.keys & behind}
        whole |= behind - partitioned
        states += [f"{dataset}/{name}:{seen.times}:{seen.state}" for name, seen in sorted(inputs.items())]
        if isinstance(watched, WatchedTable):
            if partitioned:
                yield from _requests_of_all_partitions(assets, watched, behind, inputs[""], instance)
            continue
        if watched.partitions is None:
            continue
        order = watched.partitions.get_partition_keys(dynamic_partitions_store=instance)
        order = [*order, *sorted(inputs.keys() - set(order))]
        # A failed partition, such as an empty folder, would fail the run of its changed neighbors too.
        for first, last in (*spans(change.changed, order), *spans(change.failed, order)):
            keys = order[order.index(first) : order.index(last) + 1]
            range_tags = RunBatch((), (first, last)).tags if first != last else {}
            yield dg.RunRequest(
                run_key=_run_key(f"{dataset}/{key}:{inputs[key].times}:{inputs[key].state}" for key in keys),
                asset_selection=sorted(partitioned),
                partition_key=first if first == last else None,
                tags={**tags, **range_tags, PRIORITY_TAG: "1"},
            )
    if whole:
        yield dg.RunRequest(run_key=_run_key(["whole", *states]), asset_selection=sorted(whole), tags=tags)


def _requests_of_all_partitions(
    assets: Sequence[dg.AssetsDefinition],
    source: WatchedTable,
    behind: Collection[dg.AssetKey],
    seen: Seen,
    instance: dg.DagsterInstance,
) -> Iterator[dg.RunRequest]:
    """Yield a run of the table, then runs of all partitions behind it, which keep the unchanged ones."""
    own = next(asset.keys for asset in assets if key_of(source.table) in asset.keys)
    state_of_files = f"{source.name}:{seen.times}:{seen.state}"
    tags = {REUSE_TAG: "true", IN_TURN_TAG: "true"}
    yield dg.RunRequest(
        run_key=_run_key([state_of_files]), asset_selection=sorted(own), tags={**tags, PRIORITY_TAG: "2"}
    )
    by_partitions: dict[dg.PartitionsDefinition[str], set[dg.AssetKey]] = {}
    for asset in assets:
        if asset.partitions_def is not None and not asset.keys.isdisjoint(behind):
            by_partitions.setdefault(asset.partitions_def, set()).update(asset.keys & set(behind))
    for partitions, tables in by_partitions.items():
        keys = partitions.get_partition_keys(dynamic_partitions_store=instance)
        if not keys:
            continue
        range_tags = RunBatch((), (keys[0], keys[-1])).tags if len(keys) > 1 else {}
        yield dg.RunRequest(
            run_key=_run_key([state_of_files, *sorted(key.to_user_string() for key in tables)]),
            asset_selection=sorted(tables),
            partition_key=keys[0] if len(keys) == 1 else None,
            tags={**tags, **range_tags, PRIORITY_TAG: "1"},
        )


def _run_key(states: Iterable[str]) -> str:
    return hashlib.blake2b("/".join(states).encode(), digest_size=16).hexdigest()


def downstream(assets: Sequence[dg.AssetsDefinition], source: dg.AssetKey) -> set[dg.AssetKey]:
    """Return the tables written with `source` and everything downstream."""
    found = next(set(asset.keys) for asset in assets if source in asset.keys)
    while True:
        more = {
            key
            for asset in assets
            for key in asset.keys
            if key not in found and any(asset.asset_deps[table] & found for table in asset.keys)
        }
        if not more:
            return found
        found |= more
