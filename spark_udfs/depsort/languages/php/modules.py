"""The namespaces and included files of a PHP repository.

An address is a namespace with dots (`Monolog.Handler`), shared by all files that declare it, or `/` and the
path of an included file. An include is resolved from the importer's folder, else by the end of the path:
the nearest one, test fixtures last. Files of one namespace see each other's names without `use`.
"""

from __future__ import annotations

import posixpath
from collections.abc import Collection, Mapping, Sequence

from spark_udfs.depsort.fixtures import remoteness
from spark_udfs.depsort.model import FileSymbols, Modules
from spark_udfs.depsort.paths import PathEndings, parent


class PhpModules(Modules):
    """The namespaces and files of one repository."""

    def __init__(
        self, paths: Sequence[str], files: Sequence[FileSymbols], _manifests: Mapping[str, str]
    ) -> None:
        self._folders = [posixpath.dirname(path) for path in paths]
        self._paths = {path: number for number, path in reversed(list(enumerate(paths)))}
        self._endings = PathEndings(self._paths)
        self._packages = [file.package or "" for file in files]
        self._at: dict[str, list[int]] = {}
        self._known: set[str] = set()
        for number, package in enumerate(self._packages):
            self._at.setdefault(package, []).append(number)
            while package and package not in self._known:
                self._known.add(package)
                package = package.rpartition(".")[0]
        self._peers = {package: frozenset(numbers) for package, numbers in self._at.items()}

    def locate(self, module: str, importer: int) -> str | None:
        """The address of a namespace `A.B`, or of an included file `./x.php`."""
        if not module.startswith("./"):
            return module if module in self._known or (not module and module in self._at) else None
        path = posixpath.normpath(posixpath.join(self._folders[importer], module))
        if path in self._paths:
            return f"/{path}"
        paths = self._endings.ending_in(posixpath.normpath(module.lstrip("./")))
        if len(paths) < 2:
            return f"/{paths[0]}" if paths else None
        here = self._folders[importer]
        nearest, second = sorted(paths, key=lambda path: (remoteness(parent(path), here), path))[:2]
        is_alone = remoteness(parent(nearest), here) < remoteness(parent(second), here)
        return f"/{nearest}" if is_alone else None

    def files(self, address: str) -> Sequence[int]:
        """The files of a namespace, or the included file."""
        return (self._paths[address[1:]],) if address.startswith("/") else self._at.get(address, ())

    def submodule(self, address: str, name: str) -> str | None:
        """The namespace `name` below another."""
        below = f"{address}.{name}" if address else name
        return below if below in self._known else None

    def peers(self, importer: int) -> Collection[int]:
        """The files of the importer's namespace."""
        return self._peers[self._packages[importer]]
