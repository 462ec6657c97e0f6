"""The packages of a Go repository.

An address is a folder, or a folder followed by TESTS: the package as its tests see it. A package consists
of the files of a folder with the same package clause; another package's tests never belong to it. An
import's path is the path of a module, from its `go.mod`, followed by a folder; of several modules of one
path the nearest one counts, and those in test fixtures come last. Without a `go.mod` the module's path is
inferred: the prefix that most imports have before a folder of the repository. Files that no build includes
together, such as `x_linux.go` and `x_windows.go`, do not see each other.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Mapping, Sequence

from spark_udfs.depsort.fixtures import remoteness
from spark_udfs.depsort.languages.go.build_constraints import Constraint, constraint_text, together
from spark_udfs.depsort.model import FileSymbols, Modules

MAX_PAIRS = 200_000  # pairs of conditions to try; any further pair counts as buildable
_ALONE = ("(ignore)", "(((ignore)))")  # as `//go:build` and `// +build` spell it
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
        self._in_modules: dict[str, Sequence[str]] = {}
        self._vendored: dict[tuple[str, str], str | None] = {}

    def locate(self, module: str, importer: int) -> str | None:
        """The folder of the package `module`."""
        here = self._folders[importer]
        if module not in self._in_modules:
            self._in_modules[module] = self._folders_in_modules(module)
        folders = self._in_modules[module]
        if folders:
            folder = (
                min(folders, key=lambda each: (*remoteness(each, here), each)) if folders[1:] else folders[0]
            )
            return folder + TESTS if self._is_test[importer] and folder == here else folder
        key = module, here
        if key not in self._vendored:
            self._vendored[key] = self._find_vendored(module, here)
        return self._vendored[key]

    def files(self, address: str) -> Sequence[int]:
        """The files of the package in a folder."""
        return self._files.get(address, ())

    def peers(self, importer: int) -> Collection[int]:
        """The files of the same package; only tests see tests."""
        package = self._folders[importer], self._packages[importer], self._is_test[importer]
        key = (*package, self._conditions[importer])
        if key not in self._seen:
            mine = self._peers[package]
            excluded = {file for file in mine if self.never_built_together(importer, file)}
            self._seen[key] = mine - excluded if excluded else mine
        return self._seen[key]

    def never_built_together(self, importer: int, file: int) -> bool:
        """Whether the conditions of two files exclude each other; `ignore` marks programs of one file."""
        condition, other = self._conditions[importer], self._conditions[file]
        if condition == other == "" or importer == file:
            return False
        if self._folders[importer] == self._folders[file] and (condition in _ALONE or other in _ALONE):
            return True
        pair = min(condition, other), max(condition, other)
        if pair not in self._together:
            if len(self._together) >= MAX_PAIRS:
                return False
            self._together[pair] = together(self._constraints[condition], self._constraints[other])
        return not self._together[pair]

    def _package_of(self, indexes: Sequence[int]) -> str | None:
        """The package that others import from a folder: the most common one, without tests and `main`."""
        counts = Counter(self._packages[i] for i in indexes if not self._is_test[i])
        tally = sorted(counts.items(), key=lambda pair: (pair[0] in ("main", None), -pair[1], pair[0] or ""))
        return tally[0][0] if tally else self._packages[indexes[0]]

    def _folders_in_modules(self, module: str) -> Sequence[str]:
        """The folders of package `module` in the repository's modules with the longest path that have it."""
        folders: list[str] = []
        longest = ""
        for path, root in self._modules:
            if (not folders or path == longest) and (module == path or module.startswith(f"{path}/")):
                folder = "/".join(part for part in (root, module[len(path) + 1 :]) if part)
                if folder in self._files:
                    folders.append(folder)
                    longest = path
        return folders

    def _find_vendored(self, module: str, folder: str) -> str | None:
        while True:
            vendored = f"{folder}/vendor/{module}" if folder else f"vendor/{module}"
            if vendored in self._files:
                return vendored
            if not folder:
                return None
            folder = folder.rpartition("/")[0]


def _declared(manifests: Mapping[str, str]) -> list[tuple[str, str]]:
    """The path and folder of every module with a `go.mod`, longest path first."""
    modules = []
    for path, text in manifests.items():
        folder, _, name = path.rpartition("/")
        clause = _MODULE.search(text) if name == "go.mod" else None
        if clause:
            modules.append((clause[1], folder))
    return sorted(modules, key=lambda module: (-len(module[0]), module))


def _inferred(files: Sequence[FileSymbols], folders: Collection[str]) -> list[tuple[str, str]]:
    """The module path and folder that most imports suggest."""
    votes: Counter[str] = Counter()
    modules = {item.module for file in files for item in file.imports}
    for module in modules:
        parts = module.split("/")
        if "." not in parts[0] and len(parts) < 2:
            continue
        for length in range(1, len(parts)):
            if "/".join(parts[length:]) in folders:
                votes["/".join(parts[:length])] += len(parts) - length
    best = sorted(votes.items(), key=lambda vote: (-vote[1], -len(vote[0]), vote[0]))
    return [(best[0][0], "")] if best else []
