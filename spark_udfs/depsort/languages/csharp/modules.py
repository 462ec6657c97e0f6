"""The namespaces of a C# repository.

A file sees its own namespace and all around it (`spark_udfs.depsort.languages.namespaces`). A `global using`,
here a deferred star import, applies to every file below its folder.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from spark_udfs.depsort.languages.namespaces import NamespaceModules
from spark_udfs.depsort.model import FileSymbols


class CSharpModules(NamespaceModules):
    """The namespaces of one repository."""

    def __init__(
        self, paths: Sequence[str], files: Sequence[FileSymbols], manifests: Mapping[str, str]
    ) -> None:
        super().__init__(paths, files, manifests, outwards=True)
        self._folders = [path.rpartition("/")[0] for path in paths]
        self._global = sorted(
            {
                (self._folders[index], item.module)
                for index, file in enumerate(files)
                for item in file.imports
                if item.name == "*" and item.deferred
            }
        )
        self._with_global: dict[tuple[str, str], frozenset[int]] = {}

    def peers(self, importer: int) -> Collection[int]:
        """The files of the namespaces around `importer` and of the namespaces that a `global using` names."""
        if not self._global:
            return super().peers(importer)
        key = self._packages[importer], self._folders[importer]
        if key not in self._with_global:
            global_files = [
                file
                for folder, module in self._global
                if not folder or f"{key[1]}/".startswith(f"{folder}/")
                for file in self.files(module)
            ]
            self._with_global[key] = frozenset(super().peers(importer)).union(global_files)
        return self._with_global[key]
