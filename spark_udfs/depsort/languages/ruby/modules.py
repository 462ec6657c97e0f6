"""Where required files lie among the Ruby files of one repository.

A place is a file's path without `.rb`. `require_relative "x"`, here `./x`, starts at the importer's folder;
`require "a/b"` means the file whose path ends in it: in the importer's own `lib` first, then in any `lib`,
then in the nearest folder around the importer.
"""

from __future__ import annotations

import posixpath
from collections.abc import Sequence

from spark_udfs.depsort.model import Modules


class RubyModules(Modules):
    """The files of one repository."""

    def __init__(self, paths: Sequence[str]) -> None:
        self._folders = [posixpath.dirname(path) for path in paths]
        self._numbers: dict[str, int] = {}
        self._by_name: dict[str, list[str]] = {}
        for number, path in enumerate(paths):
            place = posixpath.splitext(path)[0]
            if place not in self._numbers:
                self._numbers[place] = number
                self._by_name.setdefault(posixpath.basename(place), []).append(place)

    def place(self, module: str, importer: int) -> str | None:
        """The path without suffix that `./x` or `a/b` means in file `importer`."""
        folder = self._folders[importer]
        written = posixpath.normpath(module.removesuffix(".rb"))
        if module.startswith("."):
            place = posixpath.normpath(posixpath.join(folder, written))
            return place if place in self._numbers else None
        found = [
            place
            for place in self._by_name.get(posixpath.basename(written), ())
            if place == written or place.endswith(f"/{written}")
        ]
        return min(found, key=lambda place: _rank(place[: -len(written)].rstrip("/"), folder), default=None)

    def files(self, place: str) -> Sequence[int]:
        """The file at a path."""
        return (self._numbers[place],)


def _rank(root: str, folder: str) -> tuple[bool, bool, int, str]:
    around = root == "" or f"{folder}/".startswith(f"{root}/")
    return (
        not (around and root.endswith("lib")),
        not root.endswith("lib"),
        len(root) * (-1 if around else 1),
        root,
    )
