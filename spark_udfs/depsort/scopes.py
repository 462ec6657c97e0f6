"""One pass over the matches of a query in order of place, knowing the names that are bound around each.

A scope is a function, a block or a class. Each name bound in it is kept with the chain from which the type of
its value can be read (`spark_udfs.depsort.type_chains`), None where that is unknown. A name written in a
class may belong to the class, whose members may stand further below or in a base class; so such names are
kept with the class they are written in until the file has been read, and those that only a base class can
explain leave as `Outer.Inner/name`. In a type's position only a class may be meant, never a field or a method
of the same name: such a name leaves as `Outer.Inner/:name`.
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
    """What has been read of one file; a language adds a method `on_<capture>` for every capture in `kinds`.

    Of matches with the same place the kind that stands earlier is looked at first. The last kind is that of
    plain names; it is passed over where `taken` holds the place, as of names that are being bound.
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
        self.scopes: list[tuple[int, Names, str]] = []  # end, names, the class around
        self._bound_later: list[tuple[int, Names]] = []
        self._classes: set[str] = set()  # definitions that a type's position may mean
        self._hidden: set[str] = set()  # members of classes without a name that others could say

    def read(self, captures: Captures) -> FileSymbols:
        """What the handlers of all matches, called outer ones first, say of the file."""
        handlers: list[Callable[[Node], None]] = [getattr(self, f"on_{kind}") for kind in self.kinds]
        last, bits = len(handlers) - 1, self._size.bit_length()
        whole, place = (1 << bits) - 1, bits + _KIND_BITS
        events = [
            ((node.start_byte << bits | whole - node.end_byte) << _KIND_BITS | order, node)
            for order, kind in enumerate(self.kinds[:-1])
            for node in captures.get(kind, ())
        ]
        after_all = (1 << place) - 1 ^ _LAST_KIND ^ last  # a name holds nothing
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
        """The class around, dotted; empty outside of classes."""
        return self.scopes[-1][2] if self.scopes else ""

    def enter(self, node: Node, names: Names, owner: str | None = None) -> None:
        """A scope that ends with `node`."""
        self.scopes.append((node.end_byte, names, self.owner if owner is None else owner))

    def bind(self, name: Node, chain: str | None) -> None:
        """Binds a name in the scope around, from here on."""
        self.taken.add(name.start_byte)
        if self.scopes:
            self.scopes[-1][1][self.text(name)] = chain

    def bind_after(self, node: Node, names: Names) -> None:
        """Binds from the end of `node` on: in `x := x.y` the x on the right is another one."""
        self._bound_later.append((node.end_byte, names))
        self._bound_later.sort(key=lambda it: it[0])

    def local(self, name: str) -> tuple[bool, str | None]:
        """Whether a scope around binds the name, and the chain of its type."""
        for _, names, _ in reversed(self.scopes):
            if name in names:
                return True, names[name]
        return False, None

    def root(self, name: str) -> str | None:
        """The chain of a name as it is written here; None for a local of unknown type."""
        for _, names, _ in reversed(self.scopes):
            if name in names:
                return names[name]
        owner = self.owner
        return f"{owner}{INSIDE}{name}" if owner else name

    def refer(self, name: str) -> None:
        """Counts a plain name, if no scope around binds it."""
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
        """Counts a plain name in a type's position, if it is no type parameter."""
        marked = A_TYPE + name
        if not any(marked in names for _, names, _ in self.scopes):
            owner = self.owner
            self.references[f"{owner}{INSIDE}{marked}" if owner else name] += 1

    def define_type(self, name: str, chain: str | None = None) -> None:
        """A class or its like, with the chain of what calling it gives."""
        self._classes.add(name)
        self.define(name, chain)

    def define(self, name: str, chain: str | None) -> None:
        """A definition and the chain of its type, or of its result's."""
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
        """The chain from the member it starts at, if this file says which; None for a hidden one's."""
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
        """A chain that starts at a class without a name that others could say is one inside that class."""
        parts = chain.lstrip(HOLDS).split(".")
        last = max((number for number, part in enumerate(parts) if part.isdigit()), default=-1)
        if last < 0:
            return chain
        inside = ".".join(parts[last + 1 :])
        return self._placed(f"{'.'.join(parts[: last + 1])}{INSIDE}{inside}") if inside else None


def _reader(source: bytes) -> Callable[[Node], str]:
    """What gives the text of a node."""
    if source.isascii():
        text = source.decode("ascii")
        return lambda node: text[node.start_byte : node.end_byte]
    return lambda node: source[node.start_byte : node.end_byte].decode("utf-8", "replace")
