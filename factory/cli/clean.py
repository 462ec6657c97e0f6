"""Drop what failed and killed runs left: audit branches, failed branches, Spark's scratch."""

from __future__ import annotations

import shutil

from factory.lake.lock import writing
from factory.lake.publish import AUDIT, FAILED, drop_branches
from factory.lake.tables import Lake
from factory.settings import Settings


def clean(settings: Settings) -> dict[str, list[str]]:
    """Drop leftovers and give the dropped branches by table; raises LakeLocked while a run writes."""
    lake = Lake(settings)
    with writing(settings, "factory clean"):
        # A lake on servers has no lock, so an audit branch may belong to a run that is writing it.
        prefixes = (AUDIT, FAILED) if settings.embedded else (FAILED,)
        dropped = {
            str(name): [branch for prefix in prefixes for branch in drop_branches(lake, name, prefix)]
            for name in lake.names()
        }
        scratch = settings.home / "spark"
        for folder in scratch.glob("*"):
            if folder.is_dir():
                shutil.rmtree(folder)
    return {name: branches for name, branches in dropped.items() if branches}
