"""One pass over the captures of a query in file order, which tracks the names in scope.

A scope is a function, a block or a class. It maps every name bound in it to the chain that gives the type of
its value (`spark_udfs.depsort.type_chains`), or None where the type is unknown. A name used in a class may be
a member of the class, defined further below or in a base class. So such a name is kept with its class until
the whole file is read; if only a base class can define it, it becomes `Outer.Inner/name`. A name in a type's
position means a class, never a field or method of that name: it becomes `Outer.Inner/:name`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from operator import itemgetter

from tree_sitter import Node

from spark_udfs.depsort.captured_file import CapturedFile, child_of_type
from spark_udfs.depsort.model import FileSymbols, Import, counted_imports
from spark_udfs.depsort.syntax import Captures
from spark_udfs.depsort.type_chains import A_TYPE, HOLDS, INSIDE

Names = dict[str, str | None]

_KIND_BITS = 6
_LAST_KIND = (1 << _KIND_BITS) - 1
_FIRST = itemgetter(0)


class ScopedNames(CapturedFile):
    """The symbols read so far from one file; a language adds a method `on_<capture>` for each capture.

    Captures of the same bytes are handled in the order of the query. The last capture has the plain names; it
    skips a name if `taken` has its start, such as a name that is being bound.
    """

    def __init__(self, source: bytes, captures: Captures) -> None:
        super().__init__(source, captures)
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

    def symbols(self) -> FileSymbols:
        """The symbols of the file, from the handlers of all captures, outer nodes first."""
        handlers: list[Callable[[Node], None]] = [getattr(self, f"on_{kind}") for kind in self.captures]
        *others, names = self.captures.values()
        last, bits = len(others), len(self.source).bit_length()
        whole, start_at = (1 << bits) - 1, bits + _KIND_BITS
        events = [
            ((node.start_byte << bits | whole - node.end_byte) << _KIND_BITS | order, node)
            for order, nodes in enumerate(others)
            for node in nodes
        ]
        after_all = (1 << start_at) - 1 ^ _LAST_KIND ^ last  # names come after other nodes that start there
        events += [(node.start_byte << start_at | after_all, node) for node in names]
        events.sort(key=_FIRST)
        scopes, later, taken, refer = self.scopes, self._bound_later, self.taken, handlers[last]
        for key, node in events:
            start = key >> start_at
            while later and later[0][0] <= start:
                position, bound = later.pop(0)
                self._leave(position)
                if scopes:
                    scopes[-1][1].update(bound)
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
            if (resolved := self._resolved(name)) is not None:
                references[resolved] += count
        types = ((name, self._resolved(chain)) for name, chain in sorted(self.types.items()))
        bases = (
            (name, [self._resolved(chain) for chain in chains]) for name, chains in sorted(self.bases.items())
        )
        return FileSymbols(
            dict(sorted(self.definitions.items())),
            counted_imports(self.imports),
            dict(sorted(references.items())),
            package=self.package,
            types={name: chain for name, chain in types if chain},
            bases={name: tuple(chain for chain in chains if chain) for name, chains in bases},
        )

    # Captures that languages share

    def on_name(self, node: Node) -> None:
        """A plain name."""
        self.refer(self.text(node))

    def on_type_parameter(self, node: Node) -> None:
        """A type parameter; a language that has them binds its name."""

    def bind_type_parameters(self, node: Node) -> None:
        """Bind the type parameters of a declaration."""
        parameters = child_of_type(node, "type_parameters", "type_parameter_list")
        for parameter in parameters.named_children if parameters is not None else ():
            self.on_type_parameter(parameter)

    def take_name(self, node: Node, field: str = "name") -> Node | None:
        """The name in a field of a node; from here on it counts as `taken`, not as a plain name."""
        name = node.child_by_field_name(field)
        if name is not None:
            self.taken.add(name.start_byte)
        return name

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
        self._bound_later.sort(key=lambda binding: binding[0])

    def root(self, name: str, as_type: bool = False) -> str | None:
        """The chain of a name used here; None for a local of unknown type, or an unbounded type parameter.

        `as_type` says that the name is in a type's position.
        """
        marked = A_TYPE + name if as_type else name
        for _, names, _ in reversed(self.scopes):
            if marked in names:
                return names[marked]
        owner = self.owner
        return f"{owner}{INSIDE}{marked}" if owner else name

    def refer(self, name: str, as_type: bool = False) -> None:
        """Count a plain name unless a scope binds it; in a type's position only a type parameter does."""
        marked = A_TYPE + name if as_type else name
        for _, names, _ in self.scopes:
            if marked in names:
                return
        owner = self.owner
        self.references[f"{owner}{INSIDE}{marked}" if owner else name] += 1

    def define_type(self, name: str, chain: str | None = None) -> None:
        """Define a class or another type, with the chain of the result of calling it."""
        self._classes.add(name)
        self.define(name, chain)

    def define(self, name: str, chain: str | None) -> None:
        """Define a name with the chain of its type, for a function the chain of its result."""
        if any(part.isdigit() for part in name.split(".")):
            self._hidden.add(name)
            return
        self.definitions[name] += 1
        if chain:
            self.types.setdefault(name, chain)

    def _leave(self, position: int) -> None:
        while self.scopes and self.scopes[-1][0] <= position:
            self.scopes.pop()

    def _resolved(self, chain: str | None) -> str | None:
        """The chain starting at the member it means, if this file defines it; None for a hidden member."""
        owner, inside, chain_after = (chain or "").rpartition(INSIDE)
        if not inside:
            return self._of_unnamed(chain) if chain else chain
        if owner.startswith(HOLDS):
            contained = self._resolved(f"{owner.lstrip(HOLDS)}{INSIDE}{chain_after}")
            return None if contained is None else HOLDS + contained
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
        return self._resolved(f"{'.'.join(parts[: last + 1])}{INSIDE}{inside}") if inside else None
