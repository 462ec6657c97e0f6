"""The modules of a Python repository.

An address is a path without its suffix (`src/rich/console`), or the folder of a package (`src/rich`). A
relative import has one meaning. An absolute import starts at a root, a folder that is not itself a package.
Where several roots have the module, the importer's own root wins, then the nearest root around the importer,
then the nearest of the roots that contain packages, shortest first; test fixtures come last. So `src/`
layouts, several distributions in one repository, vendored packages and scripts in one folder all resolve,
while `import logging` in `app/x.py` does not mean `app/logging.py` if `app` is a package.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from spark_udfs.depsort.fixtures import remoteness
from spark_udfs.depsort.model import FileSymbols, Modules
from spark_udfs.depsort.paths import last, parent

_INIT = "__init__"


class PythonModules(Modules):
    """The modules of one repository."""

    def __init__(
        self, paths: Sequence[str], _files: Sequence[FileSymbols], _manifests: Mapping[str, str]
    ) -> None:
        self._files: dict[str, int] = {}  # address -> file
        self._packages: dict[str, int] = {}  # folder -> its __init__ file
        self._folders: set[str] = set()
        self._directories = [parent(path) for path in paths]
        for index, path in enumerate(paths):
            address, _, suffix = path.rpartition(".")
            directory, name = parent(address), last(address)
            index_of, key = (self._packages, directory) if name == _INIT else (self._files, address)
            if key not in index_of or (suffix != "pyi" and paths[index_of[key]].endswith(".pyi")):
                index_of[key] = index  # source wins over its stub; of equal paths the first
            while directory not in self._folders:
                self._folders.add(directory)
                directory = parent(directory)
        self._roots = self._roots_by_name()
        self._holds_packages = {parent(package) for package in self._packages}
        self._addresses: dict[tuple[str, str], str | None] = {}

    def locate(self, module: str, importer: int) -> str | None:
        """The address of the module that `importer` calls `module`; None outside the repository."""
        directory = self._directories[importer]
        key = (module, directory)
        if key not in self._addresses:
            self._addresses[key] = (
                self._relative(module, directory)
                if module.startswith(".")
                else self._absolute(module, directory)
            )
        return self._addresses[key]

    def submodule(self, address: str, name: str) -> str | None:
        """The address of submodule `name` of the package or folder `address`."""
        if address in self._files and address not in self._packages:
            return None
        below = _join(address, name)
        return below if self._exists(below) else None

    def files(self, address: str) -> Sequence[int]:
        """The file of a module: a package wins over a module of its name; a plain folder has no file."""
        file = self._packages.get(address, self._files.get(address))
        return () if file is None else (file,)

    def companions(self, address: str) -> Sequence[int]:
        """The `__init__` files of the packages around `address`, outermost first."""
        files: list[int] = []
        package = parent(address)
        while package in self._packages:
            files.append(self._packages[package])
            if not package:
                break
            package = parent(package)
        return files[::-1]

    def enclosing(self, importer: int) -> Sequence[int]:
        """The `__init__` files of the packages around a file."""
        return self.companions(_join(self._directories[importer], "_"))

    def _exists(self, address: str) -> bool:
        return address in self._files or address in self._folders

    def _relative(self, module: str, directory: str) -> str | None:
        name = module.lstrip(".")
        for _ in range(len(module) - len(name) - 1):
            if not directory:
                return None
            directory = parent(directory)
        address = _join(directory, name.replace(".", "/")) if name else directory
        return address if self._exists(address) else None

    def _absolute(self, module: str, directory: str) -> str | None:
        first, _, rest = module.partition(".")
        own = self._own_root(directory)
        below = module.replace(".", "/")
        mere_folder: str | None = None
        if (own_address := _join(own, below)) in self._files or own_address in self._packages:
            return own_address
        for root in sorted(self._roots.get(first, ()), key=lambda root: self._rank(root, own)):
            address = _join(root, below)
            around = root == "" or f"{own}/".startswith(f"{root}/")
            if self._exists(address) and (around or rest or root in self._holds_packages):
                if address in self._files or address in self._packages:
                    return address
                mere_folder = mere_folder or address
        return mere_folder

    def _own_root(self, directory: str) -> str:
        """The root of the modules in `directory`."""
        while directory in self._packages and directory:
            directory = parent(directory)
        return directory

    def _rank(self, root: str, own: str) -> tuple[bool | int | str, ...]:
        around = root == "" or f"{own}/".startswith(f"{root}/")
        is_fixture, distance = remoteness(root, own)
        depth = root.count("/") + bool(root)
        nearest_root = (-depth, 0) if around else (distance, depth)
        holds_none = root not in self._holds_packages
        return root != own, not around, is_fixture, not around and holds_none, *nearest_root, holds_none, root

    def _roots_by_name(self) -> dict[str, set[str]]:
        """For every top-level name the roots that contain it."""
        roots: dict[str, set[str]] = {}
        for address in (*self._files, *self._folders):
            folder = parent(address)
            if address and (folder not in self._packages or not folder):
                roots.setdefault(last(address), set()).add(folder)
        return roots


def _join(folder: str, name: str) -> str:
    return f"{folder}/{name}" if folder else name
