"""The sensor `new_input`: it watches the files of datasets and requests runs when they change.

The state of an input is a hash of the names, sizes and times of its files. A new state requests one run once
it has been seen at two ticks, so that files still being written are waited for.
"""

from __future__ import annotations

import hashlib
import json
import os
import stat
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import astuple, dataclass
from pathlib import Path

import dagster as dg

from factory.lake import names
from factory.orchestration.asset.table_asset import PRIORITY_TAG
from factory.orchestration.datasets.partition_paths import keys_at, path_of
from factory.orchestration.host.instance import IN_TURN_TAG
from factory.orchestration.host.resources import REUSE_TAG
from factory.orchestration.keys import key_of


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
            return {"": list(self.paths)}
        found = {
            key: [at for path in self.paths if (at := path_of(path, key)).exists()]
            for key in keys_at(self.paths, self.partitions)
        }
        return {key: paths for key, paths in found.items() if paths}


@dataclass(frozen=True)
class Seen:
    """The memory of an input: state at the last tick, last requested state, number of requests."""

    state: str = ""
    asked: str = ""
    times: int = 0

    def now(self, state: str) -> Seen:
        """Return the memory after a tick with `state`, and whether to request a run: new and seen twice."""
        if state == self.state and state != self.asked:
            return Seen(state, state, self.times + 1)
        return Seen(state, self.asked, self.times)


def new_input(
    assets: Sequence[dg.AssetsDefinition], watched: Sequence[Watched], *, every_s: int = 60
) -> dg.SensorDefinition:
    """Return a sensor that checks every `every_s` seconds and requests runs for changed files.

    The sensor is off until somebody starts it.
    """

    watches = ", ".join(f"`{of.dataset}`" for of in watched) or "no dataset"

    @dg.sensor(
        name="new_input",
        asset_selection=dg.AssetSelection.all(),
        minimum_interval_seconds=every_s,
        description=f"Every {every_s} seconds, looks for files that were added, changed or removed below the "
        f"paths of {watches}. If two looks in a row find the same change, it requests a run of the dataset's "
        "tables and everything downstream; a new folder becomes a partition. Off until you start it.",
    )
    def sensor(context: dg.SensorEvaluationContext) -> dg.SensorResult | dg.SkipReason:
        if not watched:
            return dg.SkipReason("No dataset of this corpus is read from files that can be watched.")
        remembered = json.loads(context.cursor or "{}")
        cursor: dict[str, dict[str, tuple[object, ...]]] = {}
        requests: list[dg.RunRequest] = []
        added: list[dg.AddDynamicPartitionsRequest] = []
        for of in watched:
            before = {name: Seen(*it) for name, it in remembered.get(of.dataset, {}).items()}
            after = {name: before.get(name, Seen()).now(state(paths)) for name, paths in of.inputs().items()}
            asked = {name: it for name, it in after.items() if it.times > before.get(name, Seen()).times}
            requests += _requests(assets, of, asked)
            if isinstance(of.partitions, dg.DynamicPartitionsDefinition) and asked:
                added.append(of.partitions.build_add_request(sorted(asked)))
            # A missing folder is remembered: its rows stay, and it may come back.
            cursor[of.dataset] = {name: astuple(it) for name, it in (before | after).items()}
        return dg.SensorResult(
            run_requests=requests, dynamic_partitions_requests=added, cursor=json.dumps(cursor)
        )

    return sensor


def notice(watched: Iterable[Watched], instance: dg.DagsterInstance) -> list[str]:
    """Sync folder partitions with disk; return the removed keys.

    The rows of a removed partition stay. Without the sync, a removed or misnamed folder would fail every run
    of all partitions. If a path itself is missing, such as an unmounted disk, no key is removed.
    """
    there: dict[str, set[str]] = {}
    unsure: set[str] = set()
    for of in watched:
        if isinstance(of.partitions, dg.DynamicPartitionsDefinition) and of.partitions.name:
            there.setdefault(of.partitions.name, set()).update(keys_at(of.paths, of.partitions))
            if not all(path.is_dir() for path in of.paths):
                unsure.add(of.partitions.name)
    gone = []
    for name, keys in there.items():
        for key in set(instance.get_dynamic_partitions(name)) - keys if name not in unsure else ():
            instance.delete_dynamic_partition(name, key)
            gone.append(f"{name}/{key}")
        instance.add_dynamic_partitions(name, sorted(keys))
    return sorted(gone)


def state(paths: Iterable[Path]) -> str:
    """Hash the names, sizes and times of all files at and below `paths`; links are not followed."""
    digest = hashlib.blake2b(digest_size=8)
    for name, size, changed_ns in sorted(line for path in paths for line in _files(os.fsencode(path))):
        digest.update(b"%s\0%d\0%d\0" % (name, size, changed_ns))
    return digest.hexdigest()


def _files(path: bytes) -> Iterator[tuple[bytes, int, int]]:
    try:
        found = os.lstat(path)
        below = [entry.path for entry in os.scandir(path)] if stat.S_ISDIR(found.st_mode) else []
    except OSError:  # vanished since the listing, or not readable: the run will report it
        yield path, -1, 0
        return
    if not stat.S_ISDIR(found.st_mode):
        yield path, found.st_size, found.st_mtime_ns
    for name in below:
        yield from _files(name)


def _requests(
    assets: Sequence[dg.AssetsDefinition], of: Watched, asked: Mapping[str, Seen]
) -> Iterator[dg.RunRequest]:
    """Yield a run for each changed partition, then one run of everything downstream.

    The runs go one at a time: downstream tables read all partitions.
    """
    if not asked:
        return
    behind = downstream(assets, key_of(names.raw(of.dataset)))
    partitioned = sorted(key for asset in assets if asset.partitions_def for key in asset.keys & behind)
    whole = sorted(behind - set(partitioned))
    tags = {REUSE_TAG: "true", IN_TURN_TAG: "true"}
    state_of_all = "/".join(f"{name}:{it.times}:{it.state}" for name, it in sorted(asked.items()))
    if of.partitions is not None:
        for name, it in sorted(asked.items()):
            yield dg.RunRequest(
                run_key=f"{of.dataset}/{name}/{it.times}/{it.state}",
                asset_selection=partitioned,
                partition_key=name,
                tags={**tags, PRIORITY_TAG: "1"},
            )
    if whole:
        yield dg.RunRequest(
            run_key=hashlib.blake2b(f"{of.dataset}/{state_of_all}".encode(), digest_size=16).hexdigest(),
            asset_selection=whole,
            tags=tags,
        )


def downstream(assets: Sequence[dg.AssetsDefinition], source: dg.AssetKey) -> set[dg.AssetKey]:
    """Return the tables written with `source` and everything downstream."""
    found = next(set(asset.keys) for asset in assets if source in asset.keys)
    while True:
        more = {
            key
            for asset in assets
            for key in asset.keys
            if key not in found and any(asset.asset_deps[of] & found for of in asset.keys)
        }
        if not more:
            return found
        found |= more
