"""Test fixtures: files that are read and not built, so that no name leads from one to another by itself."""

from __future__ import annotations

_FOLDERS = frozenset(
    "fixtures fixture __fixtures__ testfixtures __testfixtures__ testdata test-data test_data".split()  # noqa: SIM905
)


def fixture_of(path: str) -> str | None:
    """The fixture a file belongs to: the folder below `fixtures`, or that itself; None for others."""
    folders = path.split("/")[:-1]
    for number, folder in enumerate(folders):
        if folder.lower() in _FOLDERS:
            return "/".join(folders[: number + 2])
    return None
