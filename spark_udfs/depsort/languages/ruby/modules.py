"""The required files of a Ruby repository.

An address is a file's path without `.rb`. `require_relative "x"`, here `./x`, starts at the importer's
folder. `require "a/b"` means a path that ends in `a/b`: in the importer's own `lib` first, then in any `lib`,
then in the nearest folder around the importer; of several the nearest, and test fixtures last.
"""

from __future__ import annotations

import posixpath
from collections.abc import Mapping, Sequence

from spark_udfs.depsort.fixtures import remoteness
from spark_udfs.depsort.model import FileSymbols, Modules
from spark_udfs.depsort.paths import PathEndings


class RubyModules(Modules):
    """The files of one repository."""

    def __init__(
        self, paths: Sequence[str], _files: Sequence[FileSymbols], _manifests: Mapping[str, str]
    ) -> None:
        self._folders = [posixpath.dirname(path) for path in paths]
        self._numbers: dict[str, int] = {}
        for number, path in enumerate(paths):
            self._numbers.setdefault(posixpath.splitext(path)[0], number)
        self._endings = PathEndings(self._numbers)

    def locate(self, module: str, importer: int) -> str | None:
        """The path without suffix of the file that `importer` requires as `./x` or `a/b`."""
        folder = self._folders[importer]
        written = posixpath.normpath(module.removesuffix(".rb"))
        if module.startswith("."):
            address = posixpath.normpath(posixpath.join(folder, written))
            return address if address in self._numbers else None
        paths = self._endings.ending_in(written)
        return min(paths, key=lambda path: _rank(path[: -len(written)].rstrip("/"), folder), default=None)

    def files(self, address: str) -> Sequence[int]:
        """The file itself."""
        return (self._numbers[address],)


def _rank(root: str, folder: str) -> tuple[bool | int | str, ...]:
    around = root == "" or f"{folder}/".startswith(f"{root}/")
    is_fixture, distance = remoteness(root, folder)
    is_lib = root.endswith("lib")
    return is_fixture, not (around and is_lib), not is_lib, not around, distance, len(root), root
