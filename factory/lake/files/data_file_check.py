"""Whether the data files of tables are where their manifests say and as long, without reading them.

A damaged page keeps the length of its file, so only reading the rows reveals it. Registered files belong to
the user, who may replace them at any time: the next run notices, so they are not checked here.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from pyiceberg.table import Table

from factory.errors import DamagedFile
from factory.lake.files.damage import damaged_table, planning
from factory.lake.files.location import local_path

_MOST_FILES = 100_000  # files checked in a call: a stat on a file server may take a millisecond


@dataclass
class DataFileCheck:
    """How many data files were checked and left out, and an error for each damaged table."""

    n_checked: int = 0
    n_in_stores: int = 0
    n_registered: int = 0
    n_beyond_limit: int = 0
    errors: list[DamagedFile] = field(default_factory=list)

    @property
    def summary(self) -> str:
        """The counts as a phrase."""
        counts = {
            "in a store": self.n_in_stores,
            "registered": self.n_registered,
            "more": self.n_beyond_limit,
        }
        left_out = [f"{count:,} {reason} not" for reason, count in counts.items() if count]
        return "; ".join([f"{self.n_checked:,} data files checked for their size", *left_out])


def check_data_files(tables: Iterable[Table], most: int = _MOST_FILES) -> DataFileCheck:
    """Compare the size of each local data file of the current snapshots with its manifest.

    Costs one stat a file, for `most` files; files in a store, which cost a request each, are
    only counted, as are registered files.
    """
    check = DataFileCheck()
    for table in tables:
        problems: list[str] = []
        folder = local_path(table.location())
        try:
            for location, size in _current_files(table):
                path = local_path(location)
                if path is None:
                    check.n_in_stores += 1
                elif folder is not None and not path.startswith(f"{folder}/"):
                    check.n_registered += 1
                elif check.n_checked == most:
                    check.n_beyond_limit += 1
                else:
                    check.n_checked += 1
                    problems += filter(None, [_problem(path, size)])
        except DamagedFile as error:  # a manifest
            check.errors.append(error)
            continue
        if problems:
            others = len(problems) - 1
            more = f", and {others:,} more of its files are missing or cut" if others else ""
            check.errors.append(damaged_table(".".join(table.name()), f"{problems[0]}{more}."))
    return check


def _current_files(table: Table) -> Iterator[tuple[str, int]]:
    """Yield location and size of each data file of the newest published snapshot; raises DamagedFile."""
    snapshot = table.current_snapshot()
    with planning(table, snapshot):
        for manifest in snapshot.manifests(table.io) if snapshot else ():
            for entry in manifest.fetch_manifest_entry(table.io):
                yield entry.data_file.file_path, entry.data_file.file_size_in_bytes


def _problem(path: str, size: int) -> str | None:
    """Return the damage of a file, as a clause, or None if it has its size."""
    try:
        n_bytes = Path(path).stat().st_size
    except FileNotFoundError:
        return f"File {path} is missing"
    except OSError as error:
        return f"File {path} cannot be read ({error.strerror})"
    return None if n_bytes == size else f"File {path} has {n_bytes:,} bytes instead of {size:,}"
