"""One pass over the captures of a query in the order of the file, with the names bound around each.

A scope is a function, a block or a class. It maps every name bound in it to the chain that gives the type of
its value (`spark_udfs.depsort.type_chains`), or None where the type is unknown. A name used in a class may be
a member of the class, defined further below or in a base class. So such a name is kept with its class until
the whole file is read; if only a base class can define it, it becomes `Outer.Inner/name`. A name in a type's
position means a class, never a field or method of that name: it becomes `Outer.Inner/:name`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from operator import itemgetter

from tree_sitter import Node

from spark_udfs.depsort.model import FileSymbols, Import
from spark_udfs.depsort.syntax import Captures
from spark_udfs.depsort.type_chains import A_TYPE, HOLDS, INSIDE

Names = dict[str, str | None]

_KIND_BITS = 6
_LAST_KIND = (1 << _KIND_BITS) - 1
_FIRST = itemgetter(0)


class ScopedNames:
    """The symbols read so far from one file; a language adds a method `on_<capture>` for each of `kinds`.

    Captures of the same bytes are handled in the order of `kinds`. The last kind is that of plain names,
    which are skipped where `taken` has their start, as for names that are being bound.
    """

    kinds: Sequence[str]

    def __init__(self, source: bytes) -> None:
        self._size = len(source)
        self.text = _reader(source)
        self.package: str | None = None
        self.imports: Counter[Import] = Counter()
        self.definitions: Counter[str] = Counter()
        self.references: Counter[str] = Counter()
        self.types: dict[str, str] = {}
        self.bases: dict[str, list[str]] = {}
        self.taken: set[int] = set()
        self.scopes: list[tuple[int, Names, str]] = []  # of each scope around: end, names, class
        self._bound_later: list[tuple[int, Names]] = []
        self._classes: set[str] = set()  # definitions that a name in a type's position may mean
        self._hidden: set[str] = set()  # members of classes that no other file can name

    def read(self, captures: Captures) -> FileSymbols:
        """The symbols of the file, from the handlers of all captures, outer nodes first."""
        handlers: list[Callable[[Node], None]] = [getattr(self, f"on_{kind}") for kind in self.kinds]
        last, bits = len(handlers) - 1, self._size.bit_length()
        whole, place = (1 << bits) - 1, bits + _KIND_BITS
        events = [
            ((node.start_byte << bits | whole - node.end_byte) << _KIND_BITS | order, node)
            for order, kind in enumerate(self.kinds[:-1])
            for node in captures.get(kind, ())
        ]
        after_all = (1 << place) - 1 ^ _LAST_KIND ^ last  # names come after all other nodes that start there
        events += [(node.start_byte << place | after_all, node) for node in captures.get(self.kinds[-1], ())]
        events.sort(key=_FIRST)
        scopes, later, taken, refer = self.scopes, self._bound_later, self.taken, handlers[last]
        for key, node in events:
            start = key >> place
            while later and later[0][0] <= start:
                position, names = later.pop(0)
                self._leave(position)
                if scopes:
                    scopes[-1][1].update(names)
            while scopes and scopes[-1][0] <= start:
                scopes.pop()
            order = key & _LAST_KIND
            if order < last:
                handlers[order](node)
            elif start not in taken:
                refer(node)
        return self._symbols()

    def _symbols(self) -> FileSymbols:
        references: Counter[str] = Counter()
        for name, count in self.references.items():
            if (placed := self._placed(name)) is not None:
                references[placed] += count
        types = ((name, self._placed(chain)) for name, chain in sorted(self.types.items()))
        bases = ((name, [self._placed(it) for it in chains]) for name, chains in sorted(self.bases.items()))
        imports = sorted(
            self.imports.items(), key=lambda it: (it[0].module, it[0].name or "", it[0].alias or "")
        )
        return FileSymbols(
            dict(sorted(self.definitions.items())),
            tuple(Import(i.module, i.name, i.alias, i.deferred, count) for i, count in imports),
            dict(sorted(references.items())),
            package=self.package,
            types={name: chain for name, chain in types if chain},
            bases={name: tuple(it for it in chains if it) for name, chains in bases},
        )

    # Scopes

    @property
    def owner(self) -> str:
        """The dotted name of the class around; empty outside classes."""
        return self.scopes[-1][2] if self.scopes else ""

    def enter(self, node: Node, names: Names, owner: str | None = None) -> None:
        """Open a scope that ends with `node`."""
        self.scopes.append((node.end_byte, names, self.owner if owner is None else owner))

    def bind(self, name: Node, chain: str | None) -> None:
        """Bind a name in the current scope from here on."""
        self.taken.add(name.start_byte)
        if self.scopes:
            self.scopes[-1][1][self.text(name)] = chain

    def bind_after(self, node: Node, names: Names) -> None:
        """Bind names from the end of `node` on: in `x := x.y` the right x is an older one."""
        self._bound_later.append((node.end_byte, names))
        self._bound_later.sort(key=lambda it: it[0])

    def local(self, name: str) -> tuple[bool, str | None]:
        """Whether a scope binds the name, and the chain of its type."""
        for _, names, _ in reversed(self.scopes):
            if name in names:
                return True, names[name]
        return False, None

    def root(self, name: str) -> str | None:
        """The chain of a name used here; None for a local of unknown type."""
        for _, names, _ in reversed(self.scopes):
            if name in names:
                return names[name]
        owner = self.owner
        return f"{owner}{INSIDE}{name}" if owner else name

    def refer(self, name: str) -> None:
        """Count a plain name unless a scope binds it."""
        for _, names, _ in self.scopes:
            if name in names:
                return
        owner = self.owner
        self.references[f"{owner}{INSIDE}{name}" if owner else name] += 1

    def type_root(self, name: str) -> str | None:
        """The chain of a name in a type's position; None for a type parameter without a known bound."""
        marked = A_TYPE + name
        for _, names, _ in reversed(self.scopes):
            if marked in names:
                return names[marked]
        owner = self.owner
        return f"{owner}{INSIDE}{marked}" if owner else name

    def refer_type(self, name: str) -> None:
        """Count a plain name in a type's position unless it is a type parameter."""
        marked = A_TYPE + name
        if not any(marked in names for _, names, _ in self.scopes):
            owner = self.owner
            self.references[f"{owner}{INSIDE}{marked}" if owner else name] += 1

    def define_type(self, name: str, chain: str | None = None) -> None:
        """Define a class or another type, with the chain of the result of calling it."""
        self._classes.add(name)
        self.define(name, chain)

    def define(self, name: str, chain: str | None) -> None:
        """Define a name with the chain of its type, for a function that of its result."""
        if any(part.isdigit() for part in name.split(".")):
            self._hidden.add(name)
            return
        self.definitions[name] += 1
        if chain:
            self.types.setdefault(name, chain)

    def _leave(self, position: int) -> None:
        while self.scopes and self.scopes[-1][0] <= position:
            self.scopes.pop()

    def _placed(self, chain: str | None) -> str | None:
        """The chain starting at the member it means, if this file defines it; None for a hidden member."""
        owner, inside, chain_after = (chain or "").rpartition(INSIDE)
        if not inside:
            return self._of_unnamed(chain) if chain else chain
        if owner.startswith(HOLDS):
            held = self._placed(f"{owner.lstrip(HOLDS)}{INSIDE}{chain_after}")
            return None if held is None else HOLDS + held
        as_type = chain_after.startswith(A_TYPE)
        chain_after = chain_after.removeprefix(A_TYPE)
        first = chain_after.partition(".")[0]
        around, inherits = owner, False
        while around:
            member = f"{around}.{first}"
            if member in (self._classes if as_type else self.definitions):
                return f"{around}.{chain_after}"
            if member in self._hidden:
                return None
            inherits = inherits or around in self.bases
            around = around.rpartition(".")[0]
        return chain if inherits else chain_after

    def _of_unnamed(self, chain: str) -> str | None:
        """Rewrite a chain that starts at a class without a name as a name used inside that class."""
        parts = chain.lstrip(HOLDS).split(".")
        last = max((number for number, part in enumerate(parts) if part.isdigit()), default=-1)
        if last < 0:
            return chain
        inside = ".".join(parts[last + 1 :])
        return self._placed(f"{'.'.join(parts[: last + 1])}{INSIDE}{inside}") if inside else None


def _reader(source: bytes) -> Callable[[Node], str]:
    """A function that returns the text of a node."""
    if source.isascii():
        text = source.decode("ascii")
        return lambda node: text[node.start_byte : node.end_byte]
    return lambda node: source[node.start_byte : node.end_byte].decode("utf-8", "replace")
