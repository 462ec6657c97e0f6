"""The modules of a JavaScript or TypeScript repository.

An address is the path of a file. A relative name is completed as bundlers and the TypeScript compiler do: the
file itself, another suffix (`./x.js` may be written in `x.ts`), a folder's index. Any other name is looked
up in this order:

1. `imports` of the nearest `package.json`, for names that start with `#`,
2. `paths` and `baseUrl` of the nearest `tsconfig.json` or `jsconfig.json`, with the files it extends,
3. the packages of the repository by the `name` in their `package.json`: `exports`, `main`, `types`; where
   these name a file that a build makes (`dist/index.js`), its source. Of several packages of one name, the
   one that the importer's `package.json` links (`file:../core`), else the nearest; fixtures last.

A filter may have removed the manifests. Then `@/x` and `~/x` mean the nearest `src/x` or `x` around the
importer, `a/b` the nearest folder `a` around it that contains `b`, and `@scope/name` the only folder called
`name`.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from spark_udfs.depsort.fixtures import NearestFolder, fixture_of, remoteness
from spark_udfs.depsort.languages.data import read_names
from spark_udfs.depsort.languages.javascript.manifests import (
    MAX_DEPTH,
    linked_folder,
    read_manifest,
    targets_of,
)
from spark_udfs.depsort.model import FileSymbols, Modules

# A file's `package`: a module, which shares no names, or a module that adds global names.
MODULE, GLOBAL = "module", "global"

_SUFFIXES = (
    *(".ts", ".tsx", ".mts", ".cts", ".d.ts", ".d.mts", ".d.cts"),  # types before their implementation
    *(".js", ".jsx", ".mjs", ".cjs", ".es6"),
)
_WRITTEN_IN = {".js": ".ts .tsx .d.ts .jsx", ".jsx": ".tsx", ".mjs": ".mts .d.mts", ".cjs": ".cts .d.cts"}
_DECLARED_BY = {".js": ".d.ts", ".jsx": ".d.ts", ".mjs": ".d.mts", ".cjs": ".d.cts"}
_SUFFIX = re.compile(r"(?:\.d)?\.(?:[cm]?[jt]s|[jt]sx|es6)$")
_BUILT = re.compile(
    r"^(?:\./)?(?:dist|build|out|lib|es|esm|cjs|types|umd|dist-[^/]*)(?:/(?:cjs|esm?|types|src|umd))?/"
)
_CONFIGS = ("tsconfig.json", "jsconfig.json", "tsconfig.base.json")
_NODE_MODULES = read_names(__package__, "node_modules.txt")


@dataclass(frozen=True)
class _Config:
    """`paths` of one tsconfig and the folder they are relative to; `base` is its `baseUrl`."""

    paths: dict[str, list[str]] = field(default_factory=dict)
    folder: str = ""
    base: str | None = None


class JavaScriptModules(Modules):
    """The modules of one repository."""

    def __init__(
        self, paths: Sequence[str], files: Sequence[FileSymbols], manifests: Mapping[str, str]
    ) -> None:
        self._directories = [posixpath.dirname(path) for path in paths]
        self._paths = paths
        self._files: dict[str, int] = {}
        self._stems: dict[str, list[str]] = {}  # path without suffix -> its suffixes
        self._folders: dict[str, list[str]] = {}  # a folder's name -> the folders of that name
        folders = {""}
        for index, path in enumerate(paths):
            self._files.setdefault(path, index)
            suffix = _SUFFIX.search(path)
            if suffix:
                self._stems.setdefault(path[: suffix.start()], []).append(suffix[0])
            folder = self._directories[index]
            while folder not in folders:
                folders.add(folder)
                self._folders.setdefault(posixpath.basename(folder), []).append(folder)
                folder = posixpath.dirname(folder)
        self._in_fixture = [fixture_of(path) is not None for path in paths]
        self._peers = frozenset(
            i for i, file in enumerate(files) if file.package != MODULE and not self._in_fixture[i]
        )
        self._manifests = {path: read_manifest(text) for path, text in sorted(manifests.items())}
        self._packages: dict[str, list[str]] = {}  # name -> folders
        for path, manifest in self._manifests.items():
            if posixpath.basename(path) == "package.json" and isinstance(name := manifest.get("name"), str):
                self._packages.setdefault(name, []).append(posixpath.dirname(path))
        self._nearest = {
            name: NearestFolder(sorted(folders, key=lambda folder: (len(folder), folder)))
            for name, folders in self._packages.items()
        }
        self._configs: dict[str, _Config] = {}
        self._addresses: dict[tuple[str, str], str | None] = {}

    def locate(self, module: str, importer: int) -> str | None:
        """The path of the file that `importer` calls `module`; None outside the repository."""
        key = module, self._directories[importer]
        if key not in self._addresses:
            self._addresses[key] = next(self._candidates(*key), None)
        return self._addresses[key]

    def files(self, address: str) -> Sequence[int]:
        """The file itself."""
        return (self._files[address],)

    def companions(self, address: str) -> Sequence[int]:
        """The declaration file of a JavaScript file: importers read it too."""
        stem, suffix = posixpath.splitext(address)
        declared = f"{stem}{_DECLARED_BY[suffix]}" if suffix in _DECLARED_BY else address
        return (self._files[declared],) if declared != address and declared in self._files else ()

    def peers(self, importer: int) -> Collection[int]:
        """The scripts (their names are global) and the files that declare global names.

        A script in a test fixture has no peers.
        """
        return () if self._in_fixture[importer] else self._peers

    def _candidates(self, module: str, folder: str) -> Iterator[str]:
        name = module.partition("?")[0].partition("!")[0]
        if name.startswith("."):
            yield from self._at(_join(folder, name))
            return
        if not name or name.startswith("node:") or "://" in name:
            return
        if name.startswith("/"):
            yield from self._at(name[1:])
            return
        if name.startswith("#"):
            yield from self._private(name, folder)
        yield from self._mapped(name, folder)
        yield from self._in_packages(name, folder)
        if name.partition("/")[0] not in _NODE_MODULES:
            yield from self._guessed(name, folder)

    def _at(self, path: str) -> Iterator[str]:
        """The files that `path`, with or without suffix, may name: a file, then a folder's index."""
        if path.startswith("../") or path == "..":
            return
        if path in self._files:
            yield path
        suffix = _SUFFIX.search(path)
        if suffix:
            stem = path[: suffix.start()]
            for other in _WRITTEN_IN.get(suffix[0], "").split():
                if other in self._stems.get(stem, ()):
                    yield stem + other
        yield from self._with_suffix(path, _join(path, "index"))
        manifest = self._manifests.get(_join(path, "package.json"))
        if manifest is not None:
            yield from self._entry(path, manifest)

    # Configured names

    def _private(self, name: str, folder: str) -> Iterator[str]:
        """`#name` by the `imports` of the nearest package."""
        for around in _upwards(folder):
            manifest = self._manifests.get(_join(around, "package.json"))
            if manifest is not None:
                for target in targets_of(manifest.get("imports"), name):
                    yield from self._source(around, target)
                return

    def _mapped(self, name: str, folder: str) -> Iterator[str]:
        """`name` by `paths` and `baseUrl` of the nearest configuration that has them."""
        for around in _upwards(folder):
            config = self._config(around)
            for target in targets_of(config.paths, name):
                yield from self._at(_join(config.folder, target))
            if config.base is not None:
                yield from self._at(_join(config.base, name))
            if config.paths or config.base is not None:
                return

    def _config(self, folder: str) -> _Config:
        if folder not in self._configs:
            configs = (self._extended(_join(folder, name), 0) for name in _CONFIGS)
            self._configs[folder] = next(
                (config for config in configs if config.paths or config.base is not None), _Config()
            )
        return self._configs[folder]

    def _extended(self, path: str, depth: int) -> _Config:
        manifest = self._manifests.get(path)
        if manifest is None or depth > MAX_DEPTH:
            return _Config()
        folder = posixpath.dirname(path)
        above = manifest.get("extends")
        inherited = _Config()
        for name in [above] if isinstance(above, str) else above if isinstance(above, list) else []:
            if isinstance(name, str) and name.startswith("."):
                other = _join(folder, name)
                extended = self._extended(other if other.endswith(".json") else f"{other}.json", depth + 1)
                inherited = extended if extended.paths or extended.base is not None else inherited
        options = manifest.get("compilerOptions")
        options = options if isinstance(options, dict) else {}
        base, mapped = options.get("baseUrl"), options.get("paths")
        base_folder = _join(folder, base) if isinstance(base, str) else inherited.base
        if not isinstance(mapped, dict):
            return _Config(inherited.paths, inherited.folder, base_folder)
        targets = {
            name: [target for target in to if isinstance(target, str)]
            for name, to in mapped.items()
            if isinstance(to, list)
        }
        return _Config(targets, folder if base_folder is None else base_folder, base_folder)

    # Packages of the repository

    def _in_packages(self, name: str, importer: str) -> Iterator[str]:
        parts = name.split("/")
        owner = "/".join(parts[:2]) if name.startswith("@") else parts[0]
        for folder in self._folders_of(owner, importer):
            yield from self._in_package(folder, name[len(owner) + 1 :])

    def _folders_of(self, package: str, importer: str) -> Iterator[str]:
        """The folders of a package: the linked one, then the nearest first; fixtures only without others."""
        folders = self._packages.get(package, [])
        if len(folders) < 2:
            yield from folders
            return
        if (linked := self._linked(package, importer)) in folders:
            yield linked
        if (nearest := self._nearest[package].seen_from(importer)) is not None:
            yield nearest
        distances = {folder: remoteness(folder, importer) for folder in folders}  # where these lead nowhere
        built = [folder for folder in folders if not distances[folder][0]] or folders
        yield from sorted(built, key=lambda folder: (distances[folder], len(folder), folder))

    def _linked(self, package: str, importer: str) -> str | None:
        """The folder to which the nearest manifest that depends on the package links it."""
        for around in _upwards(importer):
            manifest = self._manifests.get(_join(around, "package.json"))
            if manifest is not None and (target := linked_folder(manifest, package)) is not None:
                return _join(around, target)
        return None

    def _in_package(self, folder: str, rest: str) -> Iterator[str]:
        """The files of the package in `folder` that its name followed by `rest` may mean."""
        manifest = self._manifests[_join(folder, "package.json")]
        if not rest:
            yield from self._entry(folder, manifest)
            return
        for target in targets_of(manifest.get("exports"), f"./{rest}"):
            yield from self._source(folder, target)
        for around in ("", "src", "lib"):
            yield from self._at(_join(_join(folder, around), rest))

    def _entry(self, folder: str, manifest: Mapping[str, Any]) -> Iterator[str]:
        """The entry files of a package."""
        exports = manifest.get("exports")
        targets = [manifest.get(key) for key in ("source", "types", "typings", "module", "main", "browser")]
        if isinstance(exports, dict) and not any(key.startswith(".") for key in exports):
            exports = {".": exports}
        targets += [*targets_of(exports, ".")] if isinstance(exports, dict) else [exports]
        for target in targets:
            if isinstance(target, str):
                yield from self._source(folder, target)
        for index in ("src/index", "index", "lib/index", "src/main", f"src/{posixpath.basename(folder)}"):
            yield from self._at(_join(folder, index))

    def _source(self, folder: str, target: str) -> Iterator[str]:
        """The file `target` of a package, or the source that a build makes it from."""
        yield from self._file(_join(folder, target))
        if _BUILT.match(target):
            rest = _BUILT.sub("", target)
            yield from self._file(_join(folder, f"src/{rest}"))
            yield from self._file(_join(folder, rest))

    def _file(self, path: str) -> Iterator[str]:
        """The files that `path` may name; reads no manifest, so manifests cannot form a loop."""
        if path in self._files:
            yield path
        yield from self._with_suffix(_SUFFIX.sub("", path), _join(path, "index"))

    def _with_suffix(self, *stems: str) -> Iterator[str]:
        """The best file of each stem."""
        for stem in stems:
            if suffixes := self._stems.get(stem):
                yield stem + min(suffixes, key=_SUFFIXES.index)

    # Names that no manifest explains

    def _guessed(self, name: str, folder: str) -> Iterator[str]:
        first, _, rest = name.partition("/")
        if first in ("@", "~", "$lib", "src") and rest:
            for around in _upwards(folder):
                for below in ("src", "") if first != "$lib" else ("src/lib", "lib"):
                    yield from self._at(_join(_join(around, below), rest))
        if name.startswith("@"):
            owner, _, below = rest.partition("/")
            if "/".join((first, owner)) in self._packages:
                return
            folders = self._folders.get(owner, [])
            folders = [near for near in folders if not remoteness(near, folder)[0]] or folders
            if len(folders) == 1:
                for index in (below,) if below else ("src/index", "index", "lib/index"):
                    for around in ("", "src") if below else ("",):
                        yield from self._at(_join(_join(folders[0], around), index))
        elif rest and first in self._folders and first not in self._packages:
            for around in _upwards(folder):
                for below in ("", "src"):
                    yield from self._at(_join(_join(around, below), name))


def _upwards(folder: str) -> Iterator[str]:
    """`folder` and all folders around it, innermost first."""
    while folder:
        yield folder
        folder = posixpath.dirname(folder)
    yield ""


def _join(folder: str, name: str) -> str:
    """The normalized path of `name` relative to `folder`; the repository's root is empty."""
    path = posixpath.normpath(posixpath.join(folder, name))
    return "" if path == "." else path
