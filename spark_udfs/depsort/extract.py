"""What one file defines, imports and uses: the symbol-level facts of a source file, for any language.

A language is one object with two methods (`Language`): `extract` reads one file by itself, `modules` says
where module names lie among the files of one repository. Everything behind them (`symbol_resolution`,
`repository_order`) knows no language. The first step runs over documents where they lie, so that text
never travels; what goes on to the grouping by repository is the small `FACTS` table, which also carries
the text of a repository's manifests (`go.mod`, `tsconfig.json`), as far as a language asks for them.
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import PurePosixPath

import pyarrow as pa

from spark_udfs.depsort.gc_pause import paused
from spark_udfs.depsort.isolated import Isolated

MAX_SOURCE_BYTES = 1_000_000  # longer files are data; they keep their place but give no symbols
MAX_MANIFEST_BYTES = 200_000  # longer ones are not read
MAX_PARSE_BYTES = 1 << 30  # of memory for the syntax tree of a file; 1 MB of code takes a tenth
MAX_PARSE_CPU_S = 30  # what a language lets through takes 6 s at most (250 kB of Kotlin)
MANIFEST = "manifest"  # the language of a row of FACTS whose facts are a manifest's text

FACTS = pa.schema(
    [
        pa.field("doc_id", pa.string(), nullable=False),
        pa.field("repository", pa.string(), nullable=False),
        pa.field("revision", pa.string()),
        pa.field("path", pa.string(), nullable=False),
        pa.field("language", pa.string(), nullable=False),
        pa.field("facts", pa.string(), nullable=False),  # FileSymbols as JSON
        pa.field("unread", pa.string()),  # why the file gives no symbols: `too_large`, `out_of_bounds`
        pa.field("partition", pa.string()),
    ]
)


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
    is pasted from the macro's first argument (`spark_udfs.depsort.languages.c.pasted_names`); `calls` are the
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


@cache
def languages() -> dict[str, Language]:
    """Every known language by its name in column `language`; grammars load when the first file needs them."""
    from spark_udfs.depsort.languages.c.symbols import C
    from spark_udfs.depsort.languages.c.symbols_cpp import Cpp
    from spark_udfs.depsort.languages.csharp.symbols import CSharp
    from spark_udfs.depsort.languages.go.symbols import Go
    from spark_udfs.depsort.languages.java.symbols import Java
    from spark_udfs.depsort.languages.javascript.symbols import JavaScript, TypeScript
    from spark_udfs.depsort.languages.kotlin.symbols import Kotlin
    from spark_udfs.depsort.languages.php.symbols import Php
    from spark_udfs.depsort.languages.python.symbols import Python
    from spark_udfs.depsort.languages.ruby.symbols import Ruby
    from spark_udfs.depsort.languages.rust.symbols import Rust

    return {
        language.name: language
        for language in (
            *(Python(), JavaScript(), TypeScript(), Go(), Java(), C(), Cpp()),
            *(Rust(), Ruby(), Php(), Kotlin(), CSharp()),
        )
    }


@cache
def _by_suffix() -> dict[str, str]:
    return {suffix: language.name for language in languages().values() for suffix in language.suffixes}


@cache
def manifests() -> frozenset[str]:
    return frozenset(name for language in languages().values() for name in language.manifests)


def language_of(language: str | None, path: str) -> str | None:
    """The known language of a document by its column, or by its path where the column is null."""
    if language is None:
        return _by_suffix().get(PurePosixPath(path).suffix.lower())
    return language.lower() if language.lower() in languages() else None


def extract(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """FACTS of the documents in a known language, from FACTS without `facts` and with `text`."""
    for batch in batches:
        with paused():
            facts = pa.RecordBatch.from_pylist(list(_rows(batch)), schema=FACTS)
        yield facts


def _rows(batch: pa.RecordBatch) -> Iterator[dict[str, str | None]]:
    columns = batch.select(["doc_id", "repository", "revision", "path", "language", "partition"]).to_pylist()
    texts = batch.column("text").cast(pa.binary())
    for row, text in zip(columns, texts, strict=True):
        path = str(row["path"])
        known = language_of(row["language"], path)
        if not text.is_valid:
            continue
        if path.rpartition("/")[2] in manifests():
            if len(text.as_buffer()) <= MAX_MANIFEST_BYTES:
                yield row | {"language": MANIFEST, "facts": text.as_py().decode("utf-8", "replace")}
        elif known is not None:
            yield row | {"language": known} | _facts(known, path, text)


def _facts(language: str, path: str, text: pa.BinaryScalar) -> dict[str, str]:
    """Columns `facts` and `unread` of one file."""
    if len(text.as_buffer()) > MAX_SOURCE_BYTES:
        return {"facts": FileSymbols().to_json(), "unread": "too_large"}
    facts = reader()(language, path, text.as_py())
    if facts is None:
        return {"facts": FileSymbols().to_json(), "unread": "out_of_bounds"}
    return {"facts": facts}


@cache
def reader() -> Isolated[[str, str, bytes], str]:
    """`read` in a process that lives as long as the worker, since it takes a while to load the grammars."""
    return Isolated(read, MAX_PARSE_BYTES, MAX_PARSE_CPU_S)


def read(language: str, path: str, source: bytes) -> str:
    """The symbols of one file of a known language, as JSON."""
    return languages()[language].extract(source, path).to_json()
