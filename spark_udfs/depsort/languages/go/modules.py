"""Where Go packages lie among the files of one repository.

A place is a folder, or a folder with TESTS behind it: what test files see there. The files of a package are
those of a folder with the same package clause; another package's tests never belong to it. The path of
an import is a module's path, from its `go.mod`, and a folder below that. Where no `go.mod` is at hand,
the module's path is what most imports have before the path of a folder of the repository. Files that no build
has together, as `x_linux.go` and `x_windows.go`, do not see each other.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Mapping, Sequence

from spark_udfs.depsort.languages.go.build_constraints import Constraint, constraint_text, together
from spark_udfs.depsort.model import FileSymbols, Modules

MAX_PAIRS = 200_000  # of conditions that are tried out; of what goes beyond, a build may have both
_ALONE = ("(ignore)", "(((ignore)))")  # as `//go:build` and `// +build` have it
TESTS = "\0tests"
_MODULE = re.compile(r'^[^\S\n]*module\s+"?([^\s"]+)"?', re.MULTILINE)


class GoModules(Modules):
    """The packages of one repository."""

    def __init__(
        self, paths: Sequence[str], files: Sequence[FileSymbols], manifests: Mapping[str, str]
    ) -> None:
        self._folders = [path.rpartition("/")[0] for path in paths]
        self._is_test = [path.endswith("_test.go") for path in paths]
        self._packages = [file.package for file in files]
        self._conditions = [
            constraint_text(path, file.build) for path, file in zip(paths, files, strict=True)
        ]
        self._constraints = {text: Constraint(text) for text in self._conditions}
        self._together: dict[tuple[str, str], bool] = {}
        self._seen: dict[tuple[str, str | None, bool, str], Collection[int]] = {}
        self._peers: dict[tuple[str, str | None, bool], set[int]] = {}
        in_folder: dict[str, list[int]] = {}
        for index, folder in enumerate(self._folders):
            in_folder.setdefault(folder, []).append(index)
            for seen_by_tests in (False, True):
                if seen_by_tests or not self._is_test[index]:
                    key = folder, self._packages[index], seen_by_tests
                    self._peers.setdefault(key, set()).add(index)
        self._files: dict[str, list[int]] = {}
        for folder, indexes in in_folder.items():
            package = self._package_of(indexes)
            mine = [i for i in indexes if self._packages[i] == package]
            self._files[folder] = [i for i in mine if not self._is_test[i]]
            self._files[folder + TESTS] = mine
        self._modules = _declared(manifests) or _inferred(files, in_folder.keys())
        self._places: dict[str, str | None] = {}

    def place(self, module: str, importer: int) -> str | None:
        """The folder of the package `module`."""
        if module not in self._places:
            self._places[module] = self._find(module, importer)
        folder = self._places[module]
        if folder is not None and self._is_test[importer] and folder == self._folders[importer]:
            return folder + TESTS
        return folder

    def files(self, place: str) -> Sequence[int]:
        """The files of the package in a folder."""
        return self._files.get(place, ())

    def peers(self, importer: int) -> Collection[int]:
        """The files of the same package; tests are seen by tests alone."""
        package = self._folders[importer], self._packages[importer], self._is_test[importer]
        key = (*package, self._conditions[importer])
        if key not in self._seen:
            mine = self._peers[package]
            others = {file for file in mine if file == importer or not self.apart(importer, file)}
            self._seen[key] = mine if len(others) == len(mine) else others
        return self._seen[key]

    def apart(self, importer: int, file: int) -> bool:
        """Whether the conditions of two files exclude each other; `ignore` is for programs of one file."""
        one, other = self._conditions[importer], self._conditions[file]
        if one == other == "" or importer == file:
            return False
        if self._folders[importer] == self._folders[file] and (one in _ALONE or other in _ALONE):
            return True
        pair = min(one, other), max(one, other)
        if pair not in self._together:
            if len(self._together) >= MAX_PAIRS:
                return False
            self._together[pair] = together(self._constraints[one], self._constraints[other])
        return not self._together[pair]

    def _package_of(self, indexes: Sequence[int]) -> str | None:
        """The package that others import from a folder: that of most files which are no tests, not `main`."""
        counts = Counter(self._packages[i] for i in indexes if not self._is_test[i])
        named = sorted(counts.items(), key=lambda it: (it[0] in ("main", None), -it[1], it[0] or ""))
        return named[0][0] if named else self._packages[indexes[0]]

    def _find(self, module: str, importer: int) -> str | None:
        for path, root in self._modules:
            if module == path or module.startswith(f"{path}/"):
                below = module[len(path) + 1 :]
                folder = "/".join(part for part in (root, below) if part)
                if folder in self._files:
                    return folder
        folder = self._folders[importer]
        while True:
            vendored = f"{folder}/vendor/{module}" if folder else f"vendor/{module}"
            if vendored in self._files:
                return vendored
            if not folder:
                return None
            folder = folder.rpartition("/")[0]


def _declared(manifests: Mapping[str, str]) -> list[tuple[str, str]]:
    """The path and folder of every module with a `go.mod`, the longest path first."""
    found = []
    for path, text in manifests.items():
        folder, _, name = path.rpartition("/")
        clause = _MODULE.search(text) if name == "go.mod" else None
        if clause:
            found.append((clause[1], folder))
    return sorted(found, key=lambda it: (-len(it[0]), it))


def _inferred(files: Sequence[FileSymbols], folders: Collection[str]) -> list[tuple[str, str]]:
    """The path before a folder that the most imports share."""
    votes: Counter[str] = Counter()
    modules = {item.module for file in files for item in file.imports}
    for module in modules:
        parts = module.split("/")
        if "." not in parts[0] and len(parts) < 2:
            continue
        for length in range(1, len(parts)):
            if "/".join(parts[length:]) in folders:
                votes["/".join(parts[:length])] += len(parts) - length
    best = sorted(votes.items(), key=lambda it: (-it[1], -len(it[0]), it[0]))
    return [(best[0][0], "")] if best else []
