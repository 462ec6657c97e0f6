"""`factory clean`: drop the leftovers of failed and dead runs: branches and Spark's scratch."""

from __future__ import annotations

from factory.lake.lock import writing
from factory.lake.presence import dead
from factory.lake.publish import AUDIT, FAILED, drop_branches
from factory.lake.tables import Lake
from factory.orchestration.host.reap import leftovers
from factory.settings import Settings
from factory.spark.scratch import drop_dead_scratch


def clean(settings: Settings) -> dict[str, list[str]]:
    """Drop leftovers and return the dropped branches by table; raise LakeLocked while a run writes.

    Damaged tables stay as they are; `Lake.readable` reports them.
    """
    lake = Lake(settings)
    with writing(settings, "factory clean"):
        audits, failed = leftovers(lake, AUDIT), leftovers(lake, FAILED)
        gone = set(dead(settings, sorted({branch for branches in audits.values() for branch in branches})))
        dropped: dict[str, list[str]] = {}
        for name in sorted({*audits, *failed}):
            of_dead = [branch for branch in audits.get(name, []) if branch in gone]
            for branch in (*of_dead, *failed.get(name, [])):
                dropped.setdefault(str(name), []).extend(drop_branches(lake, name, branch))
        drop_dead_scratch(settings)
    return {name: branches for name, branches in dropped.items() if branches}
