"""The sensor `new_input`: it watches the files of datasets and requests runs when they change.

The state of an input is a hash of the names, sizes and times of its files (`factory.ingest.state`). A new
state requests a run once it has been seen at two ticks, so that files still being written are waited for.
When the sensor has no memory of an input, it compares the state with the one that the tables were made from.
All changed partitions that follow each other are one run, because each run starts a JVM. Partitions whose run
failed are runs apart from the changed ones, because a run publishes all its partitions or none.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import astuple, dataclass, replace
from pathlib import Path

import dagster as dg

from factory.errors import DamagedFile, TableNotFound
from factory.ingest.state import state
from factory.lake import names
from factory.lake.names import TableName
from factory.lake.tables import Lake
from factory.orchestration.asset.table_asset import PRIORITY_TAG, declaration_of
from factory.orchestration.datasets.partition_paths import keys_at, path_of
from factory.orchestration.host.instance import IN_TURN_TAG
from factory.orchestration.host.partitions import RunBatch, spans
from factory.orchestration.host.resources import REUSE_TAG
from factory.orchestration.keys import key_of, table_of
from factory.settings import Settings, settings

NAME = "new_input"


@dataclass(frozen=True)
class Watched:
    """A dataset and the files and folders of its raw table.

    `{partition}` in a path stands for the key of a partition. With dynamic `partitions`, each folder directly
    below the paths is a partition, created when the sensor first sees it.
    """

    dataset: str
    paths: tuple[Path, ...]
    partitions: dg.PartitionsDefinition[str] | None = None

    def inputs(self) -> dict[str, list[Path]]:
        """Return the watched inputs: all paths under the name "", or the paths of each partition."""
        if self.partitions is None:
            return {"": [path for path in self.paths if path.exists()]}
        found = {
            key: [at for path in self.paths if (at := path_of(path, key)).exists()]
            for key in keys_at(self.paths, self.partitions)
        }
        return {key: paths for key, paths in found.items() if paths}


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
    """The inputs of a dataset to request: those that `changed`, and unchanged ones whose run `failed`."""

    watched: Watched
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

    It compares inputs that it has no memory of with the tables of `lake_settings`, by default those of the
    environment. The sensor is off until somebody starts it.
    """

    watches = ", ".join(f"`{dataset.dataset}`" for dataset in watched) or "no dataset"

    @dg.sensor(
        name=NAME,
        asset_selection=dg.AssetSelection.all(),
        minimum_interval_seconds=every_s,
        description=f"Every {every_s} seconds, looks for files that were added, changed or removed below the "
        f"paths of {watches}. If two looks in a row find the same change, it requests a run of the dataset's "
        "tables and everything downstream, unless they were made from the same files; a new folder becomes a "
        "partition. Off until you start it.",
    )
    def sensor(context: dg.SensorEvaluationContext) -> dg.SensorResult | dg.SkipReason:
        if not watched:
            return dg.SkipReason("No dataset of this corpus is read from files that can be watched.")
        lake = Lake(lake_settings or settings())
        remembered = json.loads(context.cursor or "{}")
        cursor: dict[str, dict[str, tuple[object, ...]]] = {}
        changes: list[Change] = []
        added: list[dg.AddDynamicPartitionsRequest] = []
        for dataset in watched:
            before = {name: Seen(*memory) for name, memory in remembered.get(dataset.dataset, {}).items()}
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
            cursor[dataset.dataset] = {name: astuple(seen) for name, seen in (before | after).items()}
        return dg.SensorResult(
            run_requests=list(_requests(assets, changes, context.instance)),
            dynamic_partitions_requests=added,
            cursor=json.dumps(cursor),
        )

    return sensor


def notice(watched: Iterable[Watched], instance: dg.DagsterInstance) -> list[str]:
    """Sync folder partitions with disk; return the removed keys.

    The rows of a removed partition stay. Without the sync, a removed or misnamed folder would fail every run
    of all partitions. If a path itself is missing, such as an unmounted disk, no key is removed.
    """
    there: dict[str, set[str]] = {}
    unsure: set[str] = set()
    for dataset in watched:
        partitions = dataset.partitions
        if isinstance(partitions, dg.DynamicPartitionsDefinition) and partitions.name:
            there.setdefault(partitions.name, set()).update(keys_at(dataset.paths, partitions))
            if not all(path.is_dir() for path in dataset.paths):
                unsure.add(partitions.name)
    gone = []
    for name, keys in there.items():
        for key in set(instance.get_dynamic_partitions(name)) - keys if name not in unsure else ():
            instance.delete_dynamic_partition(name, key)
            gone.append(f"{name}/{key}")
        instance.add_dynamic_partitions(name, sorted(keys))
    return sorted(gone)


@dataclass(frozen=True)
class Made:
    """The inputs from which the tables of a dataset were made.

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


def _made(lake: Lake, assets: Sequence[dg.AssetsDefinition], watched: Watched) -> Made:
    """Return the inputs from which the dataset's tables were made, by partition."""
    source = names.raw(watched.dataset)
    inputs: dict[TableName, dict[str, str]] = {}
    behind = downstream(assets, key_of(source))
    for asset in assets:
        for table in map(table_of, asset.keys & behind):
            if asset.is_executable and declaration_of(asset).on_demand is not None:
                continue  # a run may leave it out
            try:
                if asset.partitions_def is None:
                    whole = lake.published(table).lineage
                    inputs[table] = {"": whole.inputs.get("", "")}
                else:
                    lineages = lake.partitions(table).lineage
                    inputs[table] = {key: lineage.inputs.get(key, "") for key, lineage in lineages.items()}
            except (TableNotFound, DamagedFile):  # a run makes the missing table, or names the damaged file
                inputs[table] = {}
    read = inputs[source]
    everywhere = [held for held in inputs.values() if "" not in held or watched.partitions is None]
    all_exist = all(inputs.values())
    return Made(read, {name for name in read if all_exist and all(name in held for held in everywhere)})


def _under_way(instance: dg.DagsterInstance) -> bool:
    """Whether a run that the sensor requested waits or goes on."""
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
        dataset = watched.dataset
        behind = downstream(assets, key_of(names.raw(dataset)))
        partitioned = {key for asset in assets if asset.partitions_def for key in asset.keys & behind}
        whole |= behind - partitioned
        states += [f"{dataset}/{name}:{seen.times}:{seen.state}" for name, seen in sorted(inputs.items())]
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
