"""Resolution of constants by the modules and classes open around them, as Ruby does it.

A reference is spelled `A/B::C/D::E`: `D::E` inside `class B::C` inside `module A`. Its first part is looked
up in the open modules and classes, innermost first (here `A::B::C`, then `A`, but not `A::B`), then among
the written ancestors of the innermost, then at the top level. Each further part is a constant of the module
that the parts before it name.

Several files may open a class. The file named after it, `a/b/c.rb` for `A::B::C`, is its home: uses resolve
to it, and it comes before the others unless that makes a cycle.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from spark_udfs.depsort.model import FileSymbols
from spark_udfs.depsort.paths import n_shared

OPENED = "/"  # separates the open modules, outermost first, from each other and from the name
SCOPE = "::"
MAX_ANCESTORS = 64


class NestedConstants:
    """The constants of one repository; files are numbered in order of path."""

    def __init__(self, paths: Sequence[str], files: Sequence[FileSymbols]) -> None:
        self._files = files
        self._stems = [_plain(path.rpartition(".")[0]).split("/") for path in paths]
        self._makers: dict[str, list[int]] = {}
        self._openers: dict[str, list[int]] = {}
        self._with_bases: dict[str, list[int]] = {}
        for index, file in enumerate(files):
            for names, by_name in ((file.definitions, self._makers), (file.declarations, self._openers)):
                for name in names:
                    if "." not in name:
                        by_name.setdefault(name, []).append(index)
            for name in file.bases:
                self._with_bases.setdefault(name, []).append(index)
        self._ancestors: dict[str, tuple[str, ...]] = {}
        self._depth = 0  # of the current lookup of ancestors
        self._homes: dict[str, tuple[tuple[int, ...], bool]] = {}

    def meaning(self, written: str) -> tuple[str, tuple[int, ...]] | None:
        """The full name of a reference and its files; for `A::B` the files of `A` if `B` has none."""
        meaning: tuple[str, tuple[int, ...]] | None = None
        for name in self._followed(written):
            files, _ = self._home(name)
            if files:
                meaning = name, files
        return meaning

    def homes(self, index: int) -> Iterator[tuple[str, tuple[int, ...]]]:
        """Every constant that file `index` opens and another file defines, with its home."""
        file = self._files[index]
        for name in (*file.definitions, *file.declarations):
            if "." not in name:
                files, by_path = self._home(name)
                if by_path and index not in files:
                    yield name, files

    def _followed(self, written: str) -> Iterator[str]:
        """The full names of a chain's prefixes, up to the first that no file defines or opens."""
        nesting, _, chain = written.rpartition(OPENED)
        first, *rest = chain.split(SCOPE)
        constant = self._first(_open_names(nesting), first)
        while constant is not None:
            yield constant
            if not rest:
                return
            constant = self._constant(constant, rest.pop(0))

    def _first(self, around: Sequence[str], name: str) -> str | None:
        for scope in around:
            if self._is_known(inner := f"{scope}{SCOPE}{name}"):
                return inner
        inherited = self._inherited(around[0] if around else "", name)
        return inherited or (name if self._is_known(name) else None)

    def _constant(self, owner: str, name: str) -> str | None:
        inner = f"{owner}{SCOPE}{name}"
        return inner if self._is_known(inner) else self._inherited(owner, name)

    def _inherited(self, owner: str, name: str) -> str | None:
        names = (f"{ancestor}{SCOPE}{name}" for ancestor in self._ancestors_of(owner))
        return next((constant for constant in names if self._is_known(constant)), None)

    def _is_known(self, name: str) -> bool:
        return name in self._makers or name in self._openers

    def _ancestors_of(self, name: str) -> tuple[str, ...]:
        """The classes and modules that `name` inherits constants from, nearest first."""
        if name not in self._with_bases or self._depth == MAX_ANCESTORS:
            return ()
        if name not in self._ancestors:
            self._ancestors[name] = ()  # ends the recursion of a base that needs itself
            self._depth += 1
            ancestors: dict[str, None] = {}
            for file in self._with_bases[name]:
                for base in self._files[file].bases[name]:
                    names = list(self._followed(base))
                    if len(names) > base.rpartition(OPENED)[2].count(SCOPE):  # every part is known
                        ancestors.update(dict.fromkeys((names[-1], *self._ancestors_of(names[-1]))))
            self._depth -= 1
            others = (ancestor for ancestor in ancestors if ancestor != name)
            self._ancestors[name] = tuple(others)[:MAX_ANCESTORS]
        return self._ancestors[name]

    def _home(self, name: str) -> tuple[tuple[int, ...], bool]:
        """The home files of a constant, and whether they are named after it."""
        if name not in self._homes:
            files = self._makers.get(name, []) or self._openers.get(name, [])
            parts = _plain(name).split(SCOPE)
            matched = [n_shared(self._stems[file][::-1], parts[::-1]) for file in files]
            most = max(matched, default=0)
            namesakes = tuple(f for f, n in zip(files, matched, strict=True) if n == most)
            whole = tuple(files) if name in self._makers or len(files) == 1 else ()
            self._homes[name] = (namesakes, True) if most else (whole, False)
        return self._homes[name]


def whole_name(written: str) -> str:
    """`A::B::C` for `A/B::C`: the full name of the innermost open module."""
    names = _open_names(written)
    return names[0] if names else ""


def _open_names(nesting: str) -> list[str]:
    """The full names of the open modules and classes, innermost first."""
    names: list[str] = []
    for opened in nesting.split(OPENED) if nesting else ():
        if opened.startswith(SCOPE) or not names:
            names.append(opened.removeprefix(SCOPE))
        else:
            names.append(f"{names[-1]}{SCOPE}{opened}")
    return names[::-1]


def _plain(name: str) -> str:
    """A name in the form that paths and constants share."""
    return name.replace("_", "").replace("-", "").lower()
