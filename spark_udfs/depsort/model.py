"""The symbols of a source file, where modules lie in a repository, and the interface of a language.

A language has two methods (`Language`): `extract` reads one file by itself, `modules` locates module names
among the files of one repository. `spark_udfs.depsort.registry` lists the languages; everything that
resolves and orders symbols knows none of them.
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

MAX_SOURCE_BYTES = 1_000_000  # longer files are data; they keep their place but give no symbols


@dataclass(frozen=True)
class Import:
    """One name a file brings in.

    `module` as written, with leading dots where relative; `name` is the symbol taken from it, `*` for all,
    None for the module itself; `alias` is what the file calls it (None: by its first part, as `import a.b`
    binds `a`; empty: it binds nothing). `deferred` imports run later or never: inside functions, or for
    type checkers only.
    """

    module: str
    name: str | None
    alias: str | None
    deferred: bool = False
    count: int = 1

    @property
    def written(self) -> str:
        """The dotted name it imports: `a.b`, `a.b.name`, `.name`, `a.*`."""
        if self.name is None:
            return self.module
        return f"{self.module}{self.name}" if self.module.endswith(".") else f"{self.module}.{self.name}"

    @property
    def binds(self) -> str | None:
        """The name by which the file knows it; None for a star import and one that binds nothing."""
        if self.name == "*":
            return None
        return self.module.partition(".")[0] if self.alias is None else self.alias or None


@dataclass(frozen=True)
class FileSymbols:
    """The symbols of one file, each with how often it occurs.

    A definition's name is plain, or `Class.member`; what a package clause around it adds is left out and
    said once by `package` (`a.b`). A reference is a plain name, a dotted chain that starts with a name the
    file imports or knows without an import (`Class.member`, `package.Class`), or `.member` where only the
    member's name is known. `exports` is what a star import brings out, None where the file does not say.
    `declarations` are names, like those of definitions, that the file announces and another file makes
    (the prototypes of a C header). `private` names, plain ones, are definitions no other file can use
    unless it includes the text of this one.

    `types` says of which type a definition is (a function: of its result), `bases` what a class is made
    from, both as chains in the file's own words: see `spark_udfs.depsort.type_chains`.
    `expansions` are the names a macro stands for: a file that uses the macro uses them. One with `#0` in it
    is pasted from the macro's first argument (`spark_udfs.depsort.pasted_names`); `calls` are the
    arguments of uses that may paste names, `a,b`, and `a,b{` where a body follows. `build` is the condition
    under which a build has the file, as it is written.
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

    def to_json(self) -> str:
        """A text that `from_json` reads back."""
        imports = [(i.module, i.name, i.alias, i.deferred, i.count) for i in self.imports]
        fields = [
            *(self.definitions, imports, self.references, self.exports),
            *(self.package, self.declarations, self.private, self.types, self.bases, self.expansions),
            *(self.calls, self.build),
        ]
        while fields and fields[-1] == _EMPTY[len(fields) - 1]:  # what most files lack stands last
            fields.pop()
        return json.dumps(fields, separators=(",", ":"))

    @classmethod
    def from_json(cls, text: str) -> FileSymbols:
        """What `to_json` wrote."""
        fields = json.loads(text)
        fields.extend(_EMPTY[len(fields) :])
        definitions, imports, references, exports, package, declarations, private, *rest = fields
        types, bases, expansions, calls, build = rest
        return cls(
            definitions,
            tuple(Import(*it) for it in imports),
            references,
            None if exports is None else tuple(exports),
            package,
            declarations,
            tuple(private),
            types,
            {name: tuple(chains) for name, chains in bases.items()},
            {name: tuple(words) for name, words in expansions.items()},
            {name: tuple(arguments) for name, arguments in calls.items()},
            build,
        )


_EMPTY: tuple[object, ...] = (
    *({}, [], {}, None, None, {}, ()),
    *({}, {}, {}, {}, None),
)  # the fields of a file without symbols, as written


class Modules(ABC):
    """Where module names lie among the files of one repository; files are numbered in order of path.

    A *place* is a name for a module inside the repository, whether or not a file stands there: a path
    without its suffix, the folder of a package, the name of a namespace. All answers are the same objects
    each time they are asked for the same thing, as far as they are large.
    """

    @abstractmethod
    def place(self, module: str, importer: int) -> str | None:
        """The place `module` means in file `importer`; None outside the repository."""

    @abstractmethod
    def files(self, place: str) -> Sequence[int]:
        """The files at `place`, ascending: one for a module, many for a package, none for a mere folder."""

    def inside(self, place: str, name: str) -> str | None:
        """The place of submodule `name` below `place`, if there is one."""
        return None

    def passed(self, place: str) -> Sequence[int]:
        """The files run on the way to `place`, outermost first, without the files at `place`."""
        return ()

    def enclosing(self, importer: int) -> Sequence[int]:
        """The files that stand for the packages file `importer` lies in."""
        return ()

    def peers(self, importer: int) -> Collection[int]:
        """A set of the files whose definitions `importer` sees without an import; it may hold `importer`."""
        return ()

    def apart(self, importer: int, file: int) -> bool:
        """Whether no build has both files, so that no use in `importer` means what `file` defines."""
        return False


class Language(ABC):
    """What depsort must know of a programming language."""

    name: str
    suffixes: tuple[str, ...]
    family: str  # languages of one family see each other's files; they share one `Modules`
    manifests: tuple[str, ...] = ()  # names of files whose text `modules` wants
    builtins: frozenset[str] = frozenset()  # plain names every file knows
    builtin_members: frozenset[str] = frozenset()  # members of the language's own types
    underscore_hides: bool = False  # a star import leaves out `_name`, and nobody else is meant by it
    shared_names: bool = False  # a plain name may be defined in any file of the repository, without an import
    short_names: bool = False  # even a name of two letters is shared, where one file alone defines it
    typed_chains: bool = False  # chains are followed through the types that files declare
    textual_imports: bool = False  # an imported file's text knows what stands before the import
    nested_constants: bool = False  # a name is looked up in what is open around it, as references write it
    qualified_names: bool = False  # a chain may start with a module that the file does not import

    @abstractmethod
    def extract(self, source: bytes, path: str) -> FileSymbols:
        """The symbols of one UTF-8 file; never raises, takes what parses."""

    @abstractmethod
    def modules(
        self, paths: Sequence[str], files: Sequence[FileSymbols], manifests: Mapping[str, str]
    ) -> Modules:
        """Where modules lie among the files `paths`, sorted, of one repository.

        `files` are their symbols, `manifests` the texts of the repository's manifests by path, which may be
        none: they may have been filtered out.
        """
