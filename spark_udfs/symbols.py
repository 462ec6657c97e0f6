"""What one file defines, imports and uses: the symbol-level facts of a source file, for any language.

A language is one object with two methods (`Language`): `extract` reads one file by itself, `modules` says
where module names lie among the files of one repository. Everything behind them (`symbol_resolution`,
`repository_order`) knows no language. The first step runs over documents where they lie, so that text
never travels; what goes on to the grouping by repository is the small `FACTS` table.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import PurePosixPath
from typing import Protocol

import pyarrow as pa

MAX_SOURCE_BYTES = 1_000_000  # longer files are data; they keep their place but give no symbols

FACTS = pa.schema(
    [
        pa.field("doc_id", pa.string(), nullable=False),
        pa.field("repository", pa.string(), nullable=False),
        pa.field("path", pa.string(), nullable=False),
        pa.field("language", pa.string(), nullable=False),
        pa.field("facts", pa.string(), nullable=False),  # FileSymbols as JSON
        pa.field("partition", pa.string()),
    ]
)


@dataclass(frozen=True)
class Import:
    """One name a file brings in.

    `module` as written, with leading dots where relative; `name` is the symbol taken from it, `*` for all,
    None for the module itself; `alias` is what the file calls it (None: by its first part, as `import a.b`
    binds `a`). `deferred` imports run later or never: inside functions, or for type checkers only.
    """

    module: str
    name: str | None
    alias: str | None
    deferred: bool
    count: int = 1

    @property
    def written(self) -> str:
        """The dotted name it imports: `a.b`, `a.b.name`, `.name`, `a.*`."""
        if self.name is None:
            return self.module
        return f"{self.module}{self.name}" if self.module.endswith(".") else f"{self.module}.{self.name}"


@dataclass(frozen=True)
class FileSymbols:
    """The symbols of one file, each with how often it occurs.

    A definition's name is plain, or `Class.member`. A reference is a plain name, a dotted chain that starts
    at an imported name, or `.member` where only the member's name is known. `exports` is what a star import
    brings out, None where the file does not say.
    """

    definitions: dict[str, int] = field(default_factory=dict)
    imports: tuple[Import, ...] = ()
    references: dict[str, int] = field(default_factory=dict)
    exports: tuple[str, ...] | None = None

    def to_json(self) -> str:
        """A text that `from_json` reads back."""
        imports = [(i.module, i.name, i.alias, i.deferred, i.count) for i in self.imports]
        return json.dumps([self.definitions, imports, self.references, self.exports], separators=(",", ":"))

    @classmethod
    def from_json(cls, text: str) -> FileSymbols:
        """What `to_json` wrote."""
        definitions, imports, references, exports = json.loads(text)
        return cls(
            definitions,
            tuple(Import(*fields) for fields in imports),
            references,
            None if exports is None else tuple(exports),
        )


class Modules(Protocol):
    """Where module names lie among the files of one repository; files are numbered in order of path.

    A *place* is a name for a module inside the repository, whether or not a file stands there.
    """

    def place(self, module: str, importer: int) -> str | None:
        """The place `module` means in file `importer`; None outside the repository."""

    def inside(self, place: str, name: str) -> str | None:
        """The place of submodule `name` below `place`, if there is one."""

    def file(self, place: str) -> int | None:
        """The file at `place`, None where it is only a folder."""

    def passed(self, place: str) -> Sequence[int]:
        """The files run on the way to `place`, outermost first, without the file at `place`."""

    def enclosing(self, importer: int) -> Sequence[int]:
        """The files that stand for the packages file `importer` lies in."""


class Language(Protocol):
    """What depsort must know of a programming language."""

    name: str
    suffixes: tuple[str, ...]
    builtins: frozenset[str]  # plain names every file knows
    builtin_members: frozenset[str]  # members of the language's own types

    def extract(self, source: bytes) -> FileSymbols:
        """The symbols of one UTF-8 file; never raises, takes what parses."""

    def modules(self, paths: Sequence[str]) -> Modules:
        """Where modules lie among the files `paths`, sorted, of one repository."""


@cache
def languages() -> dict[str, Language]:
    """Every known language by its name in column `language`."""
    from spark_udfs.symbols_python import Python  # here, so that a language module can import this one

    return {language.name: language for language in (Python(),)}


@cache
def _by_suffix() -> dict[str, str]:
    return {suffix: language.name for language in languages().values() for suffix in language.suffixes}


def language_of(language: str | None, path: str) -> str | None:
    """The known language of a document by its column, or by its path where the column is null."""
    if language is None:
        return _by_suffix().get(PurePosixPath(path).suffix.lower())
    return language.lower() if language.lower() in languages() else None


def extract(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """FACTS of the documents in a known language, from FACTS without `facts` and with `text`."""
    for batch in batches:
        columns = batch.select(["doc_id", "repository", "path", "language", "partition"]).to_pylist()
        texts = batch.column("text").cast(pa.binary())
        rows = []
        for row, text in zip(columns, texts, strict=True):
            language = language_of(row["language"], row["path"])
            if language is None or not text.is_valid:
                continue
            source = text.as_py()
            symbols = (
                languages()[language].extract(source) if len(source) <= MAX_SOURCE_BYTES else FileSymbols()
            )
            rows.append(row | {"language": language, "facts": symbols.to_json()})
        yield pa.RecordBatch.from_pylist(rows, schema=FACTS)
