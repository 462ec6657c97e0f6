"""Test fixtures: tests read these files and do not build them, so no name leads out of a fixture."""

from __future__ import annotations

from collections.abc import Iterable

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


class NearestFolder:
    """The nearest of several folders by `remoteness`, from any importer; of equal ones the first.

    It looks prefixes of the importer up instead of comparing all folders: a repository may have thousands of
    one name, and as many importers.
    """

    def __init__(self, folders: Iterable[str]) -> None:
        self._near: dict[tuple[str, ...], str] = {}
        self._in_fixtures: dict[tuple[str, ...], str] = {}  # as seen from outside of their fixtures
        for folder in folders:
            parts = folder.split("/")
            fixture_length = _n_folders_of_fixtures(parts)
            for length in range(len(parts) + 1):
                is_foreign = length < fixture_length
                by_prefix = self._in_fixtures if is_foreign else self._near
                by_prefix.setdefault(tuple(parts[:length]), folder)

    def seen_from(self, importer: str) -> str | None:
        """The nearest folder from the folder `importer`; None of no folders."""
        parts = tuple(importer.split("/"))
        prefixes = [parts[:length] for length in range(len(parts), -1, -1)]
        for by_prefix in (self._near, self._in_fixtures):
            for prefix in prefixes:
                if (folder := by_prefix.get(prefix)) is not None:
                    return folder
        return None


def _n_folders_of_fixtures(folders: list[str]) -> int:
    """The number of folders down to the first one that holds fixtures; 0 without one."""
    return next((number for number, folder in enumerate(folders, 1) if folder.lower() in _FOLDERS), 0)
