"""Test fixtures: tests read these files and do not build them, so no name leads out of a fixture."""

from __future__ import annotations

_FOLDERS = frozenset(
    "fixtures fixture __fixtures__ testfixtures __testfixtures__ testdata test-data test_data".split()  # noqa: SIM905
)


def fixture_of(path: str) -> str | None:
    """The fixture of a file: a folder below `fixtures`, or `fixtures` itself; None for other files."""
    folders = path.split("/")[:-1]
    for number, folder in enumerate(folders):
        if folder.lower() in _FOLDERS:
            return "/".join(folders[: number + 2])
    return None
