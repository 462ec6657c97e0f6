"""Test fixtures: tests read these files and do not build them, so no name leads out of a fixture."""

from __future__ import annotations

from spark_udfs.depsort.paths import n_shared

_FOLDERS = frozenset(
    "fixtures fixture __fixtures__ testfixtures __testfixtures__ testdata test-data test_data".split()  # noqa: SIM905
)


def fixture_of(path: str) -> str | None:
    """The fixture of a file: a folder below `fixtures`, or `fixtures` itself; None for other files."""
    folders = path.split("/")[:-1]
    length = _n_folders_of_fixtures(folders)
    return "/".join(folders[: length + 1]) if length else None


def remoteness(folder: str, importer: str) -> tuple[bool, int]:
    """A sort key of the folders with packages or modules of one name, as seen from the folder `importer`.

    The folder that shares most of its path with the importer comes first, a folder in a test fixture last,
    unless the importer is a fixture of the same tests.
    """
    parts, importer_parts = folder.split("/"), importer.split("/")
    length = _n_folders_of_fixtures(parts)
    is_foreign_fixture = length > 0 and parts[:length] != importer_parts[:length]
    return is_foreign_fixture, -n_shared(parts, importer_parts)


def _n_folders_of_fixtures(folders: list[str]) -> int:
    """The number of folders down to the first one that holds fixtures; 0 without one."""
    return next((number for number, folder in enumerate(folders, 1) if folder.lower() in _FOLDERS), 0)
