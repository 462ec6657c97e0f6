"""Where Python modules lie among the files of one repository.

A place is a path without its suffix (`src/rich/console`), or a package's folder (`src/rich`). A relative
import has one meaning. An absolute one needs the folder from which it is read, its root: a folder that is
no package itself. Where several roots hold the module, the importer's own wins, then the nearest around
the importer, then roots that hold packages, the shortest first. So `src/` layouts, several distributions
in one repository, vendored packages and scripts beside each other all resolve, while `import logging` in
`app/x.py` does not mean `app/logging.py` if `app` is a package.
"""

from __future__ import annotations

from collections.abc import Sequence

from spark_udfs.depsort.model import Modules

_INIT = "__init__"


class PythonModules(Modules):
    """The modules of one repository."""

    def __init__(self, paths: Sequence[str]) -> None:
        self._files: dict[str, int] = {}  # place -> file
        self._packages: dict[str, int] = {}  # folder -> its __init__ file
        self._folders: set[str] = set()
        self._directories = [_parent(path) for path in paths]
        for index, path in enumerate(paths):
            place, _, suffix = path.rpartition(".")
            directory, name = _parent(place), _last(place)
            index_of, key = (self._packages, directory) if name == _INIT else (self._files, place)
            if key not in index_of or (suffix != "pyi" and paths[index_of[key]].endswith(".pyi")):
                index_of[key] = index  # source before its stub; of equal paths the first
            while directory not in self._folders:
                self._folders.add(directory)
                directory = _parent(directory)
        self._roots = self._roots_by_name()
        self._holds_packages = {_parent(package) for package in self._packages}
        self._places: dict[tuple[str, str], str | None] = {}

    def place(self, module: str, importer: int) -> str | None:
        """The place `module` means in file `importer`; None outside the repository."""
        directory = self._directories[importer]
        key = (module, directory)
        if key not in self._places:
            self._places[key] = (
                self._relative(module, directory)
                if module.startswith(".")
                else self._absolute(module, directory)
            )
        return self._places[key]

    def inside(self, place: str, name: str) -> str | None:
        """The place of submodule `name` of the package or folder `place`."""
        if place in self._files and place not in self._packages:
            return None
        below = _join(place, name)
        return below if self._exists(below) else None

    def files(self, place: str) -> Sequence[int]:
        """The file at `place`: a package before a module of the same name, none for a plain folder."""
        found = self._packages.get(place, self._files.get(place))
        return () if found is None else (found,)

    def passed(self, place: str) -> Sequence[int]:
        """The `__init__` files of the packages around `place`, outermost first."""
        found: list[int] = []
        package = _parent(place)
        while package in self._packages:
            found.append(self._packages[package])
            if not package:
                break
            package = _parent(package)
        return found[::-1]

    def enclosing(self, importer: int) -> Sequence[int]:
        """The `__init__` files of the packages around a file."""
        return self.passed(_join(self._directories[importer], "_"))

    def _exists(self, place: str) -> bool:
        return place in self._files or place in self._folders

    def _relative(self, module: str, directory: str) -> str | None:
        name = module.lstrip(".")
        for _ in range(len(module) - len(name) - 1):
            if not directory:
                return None
            directory = _parent(directory)
        place = _join(directory, name.replace(".", "/")) if name else directory
        return place if self._exists(place) else None

    def _absolute(self, module: str, directory: str) -> str | None:
        first, _, rest = module.partition(".")
        own = self._own_root(directory)
        below = module.replace(".", "/")
        roots = self._roots.get(first, set())
        if own in roots and self._exists(_join(own, below)):
            return _join(own, below)
        for root in sorted(roots, key=lambda root: self._rank(root, own)):
            around = root == "" or f"{own}/".startswith(f"{root}/")
            if self._exists(_join(root, below)) and (around or rest or root in self._holds_packages):
                return _join(root, below)
        return None

    def _own_root(self, directory: str) -> str:
        """The folder from which the modules around `directory` are read."""
        while directory in self._packages and directory:
            directory = _parent(directory)
        return directory

    def _rank(self, root: str, own: str) -> tuple[bool, bool, int, bool, str]:
        around = root == "" or f"{own}/".startswith(f"{root}/")
        depth = root.count("/") + bool(root)
        return root != own, not around, -depth if around else depth, root not in self._holds_packages, root

    def _roots_by_name(self) -> dict[str, set[str]]:
        """For every top-level name the folders, no packages themselves, that hold it."""
        roots: dict[str, set[str]] = {}
        for place in (*self._files, *self._folders):
            parent = _parent(place)
            if place and (parent not in self._packages or not parent):
                roots.setdefault(_last(place), set()).add(parent)
        return roots


def _parent(path: str) -> str:
    return path.rpartition("/")[0]


def _last(path: str) -> str:
    return path.rpartition("/")[2]


def _join(folder: str, name: str) -> str:
    return f"{folder}/{name}" if folder else name
