"""The packages or namespaces that the files of a repository declare.

An address is the dotted name of a namespace that a file declares, or that has a declared one below it.
Folders play no part: the files of a namespace may lie in several source roots, as tests do. Peers are the
files of the same namespace; with `outwards` also the files of the namespaces around it.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from spark_udfs.depsort.fixtures import fixture_of
from spark_udfs.depsort.model import FileSymbols, Modules


class NamespaceModules(Modules):
    """The namespaces of one repository; manifests play no part."""

    def __init__(
        self,
        paths: Sequence[str],
        files: Sequence[FileSymbols],
        _manifests: Mapping[str, str],
        outwards: bool = False,
    ) -> None:
        self._packages = [file.package or "" for file in files]
        self._files: dict[str, list[int]] = {}
        for index, package in enumerate(self._packages):
            self._files.setdefault(package, []).append(index)
        self._around = {
            around for package in self._files if package for around in _outwards(package) if around
        }
        self._fixtures = [fixture_of(path) for path in paths]
        self._peers: dict[str, frozenset[int]] = {}
        for package in self._files:
            seen = _outwards(package) if outwards else [package]
            self._peers[package] = frozenset(i for name in seen for i in self._files.get(name, ()))

    def locate(self, module: str, importer: int) -> str | None:
        """The namespace `module`, None where the repository lacks it."""
        return module if module in self._around else None

    def files(self, address: str) -> Sequence[int]:
        """The files that declare a namespace."""
        return self._files.get(address, ())

    def submodule(self, address: str, name: str) -> str | None:
        """The namespace `name` in another namespace."""
        return self.locate(f"{address}.{name}", 0)

    def peers(self, importer: int) -> Collection[int]:
        """The files with names that `importer` sees without an import."""
        return self._peers[self._packages[importer]]

    def never_built_together(self, importer: int, file: int) -> bool:
        """Whether two files lie in different test fixtures."""
        fixture, other = self._fixtures[importer], self._fixtures[file]
        return fixture != other and fixture is not None and other is not None


def _outwards(namespace: str) -> list[str]:
    """`a.b.c`, `a.b`, `a` and the global namespace."""
    parts = namespace.split(".") if namespace else []
    return [".".join(parts[:length]) for length in range(len(parts), -1, -1)]
