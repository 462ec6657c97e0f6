"""The true dependency edges of a C or C++ repository, by Clang's front end.

An edge (dependent, dependency) is an `#include` of a file of the repository, or a use of a function,
variable, type, member or macro that another of its files defines. A use of a name that a header declares and
a `.c` file defines goes to the definition, found over all translation units by its unified symbol resolution
name; a name without a definition goes to its declaration.

No build is run. The include folders are those under which an `#include` of the repository finds one of its
headers, nearest to the including file first. Edges through missing system headers, configuration headers and
the code they switch off are lost, so all edges are true but some are missing.

Needs `libclang` (any 18), in an environment of its own. `python -m bench.depsort.compilers.c REPOSITORY`
prints the edges as one JSON list.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterable, Iterator, Set
from functools import cache
from pathlib import Path

from clang import cindex

C_UNITS = (".c",)
CPP_UNITS = (".cc", ".cpp", ".cxx", ".c++", ".C")
HEADERS = (".h", ".hh", ".hpp", ".hxx", ".h++", ".inl", ".ipp", ".tpp", ".tcc", ".inc", ".def")
MAX_FOLDERS = 200  # include folders given to one translation unit

_INCLUDE = re.compile(rb"^[ \t]*#[ \t]*include[ \t]*[<\"]([^>\"\n]+)[>\"]", re.MULTILINE)
_KEEP_GOING = 0x200  # CXTranslationUnit_KeepGoing: a missing header ends no translation unit
_DECLARATIONS = frozenset(
    kind for kind in cindex.CursorKind.get_all_kinds() if kind.is_declaration() and kind.value < 700
)
_LOCAL = frozenset(
    {
        cindex.CursorKind.PARM_DECL,
        cindex.CursorKind.NAMESPACE,
        cindex.CursorKind.NAMESPACE_ALIAS,
        cindex.CursorKind.TEMPLATE_TYPE_PARAMETER,
        cindex.CursorKind.TEMPLATE_NON_TYPE_PARAMETER,
        cindex.CursorKind.TEMPLATE_TEMPLATE_PARAMETER,
        cindex.CursorKind.LABEL_STMT,
    }
)


def edges(repository: Path) -> set[tuple[str, str]]:
    """(dependent, dependency) as relative paths; no file depends on itself."""
    return _Units(repository.resolve()).edges()


class _Units:
    """Every translation unit of a repository, parsed in turn; each file is read once."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._files = sorted(
            str(path.relative_to(root))
            for path in root.rglob("*")
            if path.suffix in C_UNITS + CPP_UNITS + HEADERS and path.is_file() and not path.is_symlink()
        )
        self._known = set(self._files)
        self._folders = self._include_folders()
        self._inclusions: set[tuple[str, str]] = set()
        self._uses: dict[str, set[str]] = defaultdict(set)  # file -> symbols
        self._macros: set[tuple[str, str]] = set()
        self._definers: dict[str, set[str]] = defaultdict(set)  # symbol -> files
        self._declarers: dict[str, set[str]] = defaultdict(set)
        self._read: set[str] = set()

    def edges(self) -> set[tuple[str, str]]:
        index = cindex.Index.create()
        cpp = sum(file.endswith(CPP_UNITS) for file in self._files)
        c = sum(file.endswith(C_UNITS) for file in self._files)
        headers_are = "c++" if cpp > c or not c else "c"
        units = [(file, "c" if file.endswith(C_UNITS) else "c++") for file in self._files
                 if file.endswith(C_UNITS + CPP_UNITS)]  # fmt: skip
        for file, language in units:
            self._parse(index, file, language)
        for file in self._files:
            if file not in self._read and file.endswith(HEADERS[:5]):
                self._parse(index, file, headers_are)
        found = set(self._inclusions) | self._macros
        for file, symbols in self._uses.items():
            for symbol in symbols:
                targets = self._definers.get(symbol) or self._declarers.get(symbol, set())
                if file not in targets:
                    found.update((file, target) for target in _nearest(file, targets))
        return {(a, b) for a, b in found if a != b}

    def _include_folders(self) -> dict[str, str]:
        """Include folder -> compiler option, for folders under which an include finds a repository's file.

        A folder that only quoted includes need is not searched for `<...>`: a repository's own `assert.h`
        must not hide the system's.
        """
        by_name: dict[str, list[str]] = defaultdict(list)
        for file in self._files:
            by_name[file.rpartition("/")[2]].append(file)
        folders: dict[str, str] = {}
        for file in self._files:
            for match in _INCLUDE.finditer((self._root / file).read_bytes()):
                written = os.path.normpath(match[1].decode("utf-8", "replace"))
                in_brackets = match[0].rstrip().endswith(b">")
                if in_brackets and _is_system(written):
                    continue
                for header in by_name.get(written.rpartition("/")[2], ()):
                    if header == written or header.endswith(f"/{written}"):
                        folder = header[: -len(written)].rstrip("/")
                        folders[folder] = "-I" if in_brackets else folders.get(folder, "-iquote")
        return folders

    def _parse(self, index: cindex.Index, file: str, language: str) -> None:
        here = file.rpartition("/")[0]
        nearest = sorted(self._folders, key=lambda folder: (-_shared(folder, here), folder))
        arguments = ["-x", language, "-w", "-ferror-limit=0", *_system_folders(language)]
        arguments.append("-std=gnu11" if language == "c" else "-std=gnu++17")
        for folder in nearest[:MAX_FOLDERS]:
            arguments += [self._folders[folder], str(self._root / folder)]
        options = cindex.TranslationUnit.PARSE_DETAILED_PROCESSING_RECORD | _KEEP_GOING
        try:
            unit = index.parse(str(self._root / file), arguments, options=options)
        except cindex.TranslationUnitLoadError:
            return
        for inclusion in unit.get_includes():
            source, target = self._relative(inclusion.source), self._relative(inclusion.include)
            if source is not None and target is not None:
                self._inclusions.add((source, target))
        fresh: set[str] = set()
        for cursor in unit.cursor.get_children():
            inside = self._relative(cursor.location.file)
            if inside is None or inside in self._read:
                continue
            fresh.add(inside)
            self._walk(cursor, inside)
        self._read |= fresh
        self._read.add(file)

    def _walk(self, top: cindex.Cursor, inside: str) -> None:
        if top.kind == cindex.CursorKind.MACRO_INSTANTIATION:
            target = top.referenced and self._relative(top.referenced.location.file)
            if target:
                self._macros.add((inside, target))
            return
        if top.kind.is_preprocessing():
            return
        for cursor in top.walk_preorder():
            kind = cursor.kind
            if kind in _DECLARATIONS and kind not in _LOCAL:
                symbol = cursor.get_usr()
                if symbol:
                    where = self._definers if cursor.is_definition() else self._declarers
                    where[symbol].add(self._relative(cursor.location.file) or inside)
                    if not cursor.is_definition() or kind in _OUT_OF_CLASS:
                        self._owner(cursor, inside)
            for referenced in _referenced(cursor):
                if referenced.kind in _LOCAL:
                    continue
                target = self._relative(referenced.location.file)
                if target is None:
                    continue
                symbol = referenced.get_usr()
                if symbol:
                    self._uses[inside].add(symbol)
                    if target != inside:
                        self._note(referenced, symbol, target)

    def _owner(self, cursor: cindex.Cursor, inside: str) -> None:
        """Note that a member defined outside its class uses the class."""
        owner = cursor.semantic_parent
        if owner is not None and owner.kind in _CLASSES and owner != cursor.lexical_parent:
            target = self._relative(owner.location.file)
            if target is not None and target != inside:
                self._uses[inside].add(owner.get_usr())
                self._note(owner, owner.get_usr(), target)

    def _note(self, cursor: cindex.Cursor, symbol: str, file: str) -> None:
        definition = cursor.get_definition()
        if definition is not None and (target := self._relative(definition.location.file)) is not None:
            self._definers[symbol].add(target)
        else:
            self._declarers[symbol].add(file)

    def _relative(self, file: cindex.File | None) -> str | None:
        return None if file is None else self._inside(file.name)

    @cache  # noqa: B019 - one object a process
    def _inside(self, name: str) -> str | None:
        path = os.path.relpath(os.path.normpath(name), self._root)
        return path if path in self._known else None


_CLASSES = frozenset(
    {
        cindex.CursorKind.CLASS_DECL,
        cindex.CursorKind.STRUCT_DECL,
        cindex.CursorKind.UNION_DECL,
        cindex.CursorKind.CLASS_TEMPLATE,
        cindex.CursorKind.CLASS_TEMPLATE_PARTIAL_SPECIALIZATION,
    }
)
_OUT_OF_CLASS = frozenset(
    {
        cindex.CursorKind.CXX_METHOD,
        cindex.CursorKind.CONSTRUCTOR,
        cindex.CursorKind.DESTRUCTOR,
        cindex.CursorKind.CONVERSION_FUNCTION,
        cindex.CursorKind.FUNCTION_TEMPLATE,
        cindex.CursorKind.VAR_DECL,
    }
)


def _referenced(cursor: cindex.Cursor) -> Iterator[cindex.Cursor]:
    """The declaration that a cursor names, its template, or every overload it may mean."""
    if cursor.kind in _DECLARATIONS:
        return
    library = cindex.conf.lib
    if cursor.kind == cindex.CursorKind.OVERLOADED_DECL_REF:
        for number in range(library.clang_getNumOverloadedDecls(cursor)):
            yield library.clang_getOverloadedDecl(cursor, number)
        return
    referenced = cursor.referenced
    if referenced is None:
        return
    template = library.clang_getSpecializedCursorTemplate(referenced)
    yield template if template is not None else referenced


def _nearest(file: str, targets: Set[str]) -> list[str]:
    """Of several files that define one name for several programs, the nearest to the user."""
    if len(targets) < 2:
        return list(targets)
    most = max(_shared(file, target) for target in targets)
    return [target for target in targets if _shared(file, target) == most]


def _shared(one: str, other: str) -> int:
    """The number of leading folders that two paths share."""
    left, right = one.split("/"), other.split("/")
    return next(
        (n for n, (a, b) in enumerate(zip(left, right, strict=False)) if a != b), min(len(left), len(right))
    )


@cache
def _system_folders(language: str) -> tuple[str, ...]:
    """The compiler's own include folders, as gcc prints them."""
    printed = subprocess.run(
        ["gcc", "-x", language, "-E", "-v", os.devnull], capture_output=True, text=True, check=True
    ).stderr
    listed = printed.split("search starts here:")[-1].split("End of search list")[0]
    return tuple(f"-isystem{line.strip()}" for line in listed.splitlines() if line.startswith(" "))


@cache
def _is_system(header: str) -> bool:
    folders = (*_system_folders("c"), *_system_folders("c++"))
    return any(Path(folder.removeprefix("-isystem"), header).is_file() for folder in folders)


def main(arguments: Iterable[str]) -> None:
    (repository,) = arguments
    json.dump(sorted(edges(Path(repository))), sys.stdout)


if __name__ == "__main__":
    main(sys.argv[1:])
