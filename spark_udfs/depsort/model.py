"""The symbols of a source file, the modules of a repository, and the interface of a language.

A language has two parts (`Language`): `extract` reads one file by itself, `modules` locates module names
among the files of one repository. `spark_udfs.depsort.registry` lists the languages; everything that resolves
and orders symbols knows none of them.
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace

MAX_SOURCE_BYTES = 1_000_000  # longer files are data: they are ordered like others and give no symbols


@dataclass(frozen=True)
class Import:
    """One name that a file imports.

    `module` is spelled as in the file, with leading dots where it is relative. `name` is the symbol taken
    from the module: `*` for all, None for the module itself. `alias` is the name it gets in the file: None
    for the module's first part (`import a.b` binds `a`), empty where the import binds nothing. `deferred`
    imports run later or never: inside functions, or for type checkers only.
    """

    module: str
    name: str | None
    alias: str | None
    deferred: bool = False
    count: int = 1

    @property
    def written(self) -> str:
        """The dotted name as a row of symbols has it: `a.b`, `a.b.name`, `.name`, `a.*`."""
        if self.name is None:
            return self.module
        return f"{self.module}{self.name}" if self.module.endswith(".") else f"{self.module}.{self.name}"

    @property
    def binds(self) -> str | None:
        """The name that the import binds in the file; None for star imports and where `alias` is empty."""
        if self.name == "*":
            return None
        return self.module.partition(".")[0] if self.alias is None else self.alias or None


def import_key(item: Import) -> tuple[str, ...]:
    """The order of imports in most languages."""
    return item.module, item.name or "", item.alias or "", str(item.deferred)


def counted_imports(
    imports: Counter[Import], key: Callable[[Import], tuple[str, ...]] = import_key
) -> tuple[Import, ...]:
    """Every import once, with its count."""
    return tuple(replace(item, count=imports[item]) for item in sorted(imports, key=key))


@dataclass(frozen=True)
class FileSymbols:
    """The symbols of one file, each with the number of its occurrences.

    - `definitions`: plain names, or `Class.member`. The prefix of a package clause is left out; `package` has
    it once (`a.b`).
    - `references`: a plain name; a dotted chain that starts with a name the file imports or knows without
      an import (`Class.member`, `package.Class`); or `.member` where only the member's name is known.
    - `exports`: the names that a star import takes, None where the file does not list them.
    - `declarations`: names that the file announces and another file defines, such as C prototypes.
    - `private`: plain names of definitions that no other file can use unless it includes this file's text.
    - `types`: the type of a definition, for a function its result's; `bases`: the base types of a class. Both
      are chains in the file's own names, see `spark_udfs.depsort.type_chains`.
    - `expansions`: the names in a macro's body; a file that uses the macro uses them. A name with `#0` in
      it is pasted from the macro's first argument, see `spark_udfs.depsort.pasted_names`.
    - `calls`: the arguments of macro calls that may paste names, `a,b`, or `a,b{` where a body follows.
    - `build`: the condition under which a build includes the file, as written.
    - `at_load`: the references that code outside functions uses, so that loading the file needs them; None in
    languages that do not tell them from others.
    """

    definitions: dict[str, int] = field(default_factory=dict)
    imports: tuple[Import, ...] = ()
    references: dict[str, int] = field(default_factory=dict)
    exports: tuple[str, ...] | None = None
    package: str | None = None
    declarations: dict[str, int] = field(default_factory=dict)
    private: tuple[str, ...] = ()
    types: dict[str, str] = field(default_factory=dict)
    bases: dict[str, tuple[str, ...]] = field(default_factory=dict)
    expansions: dict[str, tuple[str, ...]] = field(default_factory=dict)
    calls: dict[str, tuple[str, ...]] = field(default_factory=dict)
    build: str | None = None
    at_load: tuple[str, ...] | None = None

    def to_json(self) -> str:
        """JSON that `from_json` reads back; empty fields at the end are left out."""
        values = [getattr(self, attribute.name) for attribute in fields(self)]
        values[1] = tuple((i.module, i.name, i.alias, i.deferred, i.count) for i in self.imports)
        empty = FileSymbols()
        for last in reversed(fields(self)):  # the fields that most files lack come last
            if values[-1] != getattr(empty, last.name):
                break
            values.pop()
        return json.dumps(values, separators=(",", ":"))

    @classmethod
    def from_json(cls, text: str) -> FileSymbols:
        """The symbols that `to_json` wrote."""
        values = dict(zip((attribute.name for attribute in fields(cls)), json.loads(text), strict=False))
        values["imports"] = tuple(Import(*parts) for parts in values.get("imports", ()))
        for name in ("exports", "private", "at_load"):
            if values.get(name) is not None:
                values[name] = tuple(values[name])
        for name in ("bases", "expansions", "calls"):
            values[name] = {key: tuple(names) for key, names in values.get(name, {}).items()}
        return cls(**values)


class Modules(ABC):
    """The modules of one repository; files are numbered in order of path.

    An *address* identifies a module of the repository, with or without a file of its own: a path without
    its suffix, the folder of a package, the name of a namespace. Repeated calls return the same object
    where the result is large.
    """

    @abstractmethod
    def __init__(
        self, paths: Sequence[str], files: Sequence[FileSymbols], manifests: Mapping[str, str]
    ) -> None:
        """Take the sorted `paths`, the symbols of these `files`, and the text of each manifest by its path.

        `manifests` may be empty: a filter may have removed them.
        """

    @abstractmethod
    def locate(self, module: str, importer: int) -> str | None:
        """The address of the module that file `importer` calls `module`; None outside the repository."""

    @abstractmethod
    def files(self, address: str) -> Sequence[int]:
        """The files of a module, ascending: many for a package, none for a mere folder."""

    def submodule(self, address: str, name: str) -> str | None:
        """The address of submodule `name` of a module, None where it has none."""
        return None

    def companions(self, address: str) -> Sequence[int]:
        """The files read along with a module, such as the packages around it, outermost first."""
        return ()

    def enclosing(self, importer: int) -> Sequence[int]:
        """The files of the packages around file `importer`, outermost first."""
        return ()

    def peers(self, importer: int) -> Collection[int]:
        """The set of files that `importer` sees the definitions of without an import, perhaps with itself."""
        return ()

    def never_built_together(self, importer: int, file: int) -> bool:
        """Whether no build includes both files, so that nothing in `importer` refers to `file`."""
        return False


class Language(ABC):
    """A programming language: how to read its files and how to find its modules."""

    name: str
    suffixes: tuple[str, ...]
    family: str  # languages of one family see each other's files and share one `Modules`
    modules: type[Modules]
    manifests: tuple[str, ...] = ()  # names of files whose text `modules` reads
    builtins: frozenset[str] = frozenset()  # plain names every file knows
    builtin_members: frozenset[str] = frozenset()  # members of the language's own types
    underscore_hides: bool = False  # star imports skip `_name`, and no other file means it
    shared_names: bool = False  # any file may define a plain name for all others, without an import
    short_names: bool = False  # a name of two letters is shared too if a single file defines it
    typed_chains: bool = False  # follow chains through the types that files declare
    textual_imports: bool = False  # an imported file sees the names in force before its import
    nested_constants: bool = False  # look names up in the modules open around them
    qualified_names: bool = False  # a chain may start with a module that the file does not import

    @abstractmethod
    def extract(self, source: bytes, path: str) -> FileSymbols:
        """The symbols of one UTF-8 file; with syntax errors, the symbols that parse. Never raises."""
