"""The included files of a C or C++ repository.

An address is the path of a file. Include folders are known only to the build, so `#include "x/y.h"` is
inferred. As for a compiler, a file in the includer's folder comes first. Otherwise every path that ends in
`x/y.h` is a candidate: the candidate that shares most folders with the includer wins, then one below a folder
named `include`, then the shortest path; files in test fixtures come last. `<stdio.h>` and the like belong to
the system, even if the repository has a file of that name. A file for one system, such as `win32/x.c`, never
refers to one for another.
"""

from __future__ import annotations

import posixpath
from collections.abc import Mapping, Sequence

from spark_udfs.depsort.fixtures import remoteness
from spark_udfs.depsort.languages.data import read_names
from spark_udfs.depsort.model import FileSymbols, Modules
from spark_udfs.depsort.paths import PathEndings
from spark_udfs.depsort.platforms import exclude_each_other, systems_of

_SYSTEM_HEADERS = read_names(__package__, "system_headers.txt")


class CModules(Modules):
    """The included files of one repository."""

    def __init__(
        self, paths: Sequence[str], _files: Sequence[FileSymbols], _manifests: Mapping[str, str]
    ) -> None:
        self._numbers: dict[str, int] = {}
        self._folders = [posixpath.dirname(path) for path in paths]
        for number, path in enumerate(paths):
            self._numbers.setdefault(path, number)
        self._endings = PathEndings(self._numbers)
        self._addresses: dict[tuple[str, str], str | None] = {}
        self._systems = [systems_of(path) for path in paths]

    def locate(self, module: str, importer: int) -> str | None:
        """The path of the file that `importer` includes as `x.h` or `<x.h>`."""
        key = module, self._folders[importer]
        if key not in self._addresses:
            self._addresses[key] = self._find(*key)
        return self._addresses[key]

    def files(self, address: str) -> Sequence[int]:
        """The file itself."""
        return (self._numbers[address],)

    def never_built_together(self, importer: int, file: int) -> bool:
        """Whether the systems in the paths of two files exclude each other."""
        return exclude_each_other(self._systems[importer], self._systems[file])

    def _find(self, module: str, folder: str) -> str | None:
        written = module.strip("<>")
        if module != written:
            if "/" not in written and written.removesuffix(".h") in _SYSTEM_HEADERS:
                return None
        elif (beside := posixpath.normpath(posixpath.join(folder, written))) in self._numbers:
            return beside
        ending = posixpath.normpath(written)
        while ending.startswith("../"):
            ending = ending[3:]
        candidates = self._endings.ending_in(ending)
        return min(candidates, key=lambda path: _rank(path, folder, ending), default=None)


def _rank(path: str, folder: str, ending: str) -> tuple[bool | int | str, ...]:
    root = path[: -len(ending)].rstrip("/")
    parts = root.split("/")
    return *remoteness(root, folder), "include" not in parts, len(parts), path
