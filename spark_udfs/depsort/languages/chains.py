"""Chains of names in languages that declare types: the part that their grammars share.

`chains.py` of each language takes one step from a type or an expression towards the start of its chain. This
module follows the steps, numbers classes without a name, and counts a chain `a.b.c` once, not again for the
`a.b` in it.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable

from tree_sitter import Node

from spark_udfs.depsort.scopes import ScopedNames
from spark_udfs.depsort.syntax import Captures
from spark_udfs.depsort.type_chains import HOLDS

MAX_CHAIN = 12
MAX_NESTING = 48  # most nodes followed to the type of an expression


class Chains(ScopedNames):
    """The chains of one file."""

    def type_chain(self, node: Node | None) -> str | None:
        """The chain of a type: for a collection its elements' chain, for a function its result's."""
        for _ in range(MAX_CHAIN):
            if node is None:
                return None
            step = self.type_step(node)
            if not isinstance(step, Node):
                return step
            node = step
        return None

    def value_chain(self, node: Node | None) -> str | None:
        """The chain that gives the type of an expression."""
        members: list[str] = []
        for _ in range(MAX_NESTING):
            if node is None or len(members) > MAX_CHAIN:
                return None
            step = self.value_step(node, members)
            if not isinstance(step, Node):
                return None if step is None else ".".join([step, *reversed(members)])
            node = step
        return None

    @abstractmethod
    def type_step(self, node: Node) -> Node | str | None:
        """The next node on the way to a type's chain, or the chain; None if it has neither."""

    @abstractmethod
    def value_step(self, node: Node, members: list[str]) -> Node | str | None:
        """The expression that `node` takes a value from, or the chain of its type; None where it is unknown.

        The member of that value, if `node` takes one, is appended to `members`.
        """


class ClassChains(Chains):
    """The classes and chains of one file in a language with classes."""

    def __init__(self, source: bytes, captures: Captures) -> None:
        super().__init__(source, captures)
        self._bodies: dict[int, str] = {}  # start of a class body -> the class's dotted name
        self._n_unnamed = 0
        self._chain_start = self._chained = -1  # start and end of the last chain

    def on_constant(self, node: Node) -> None:
        """A constant of an enum."""
        self.define_constant(node.child_by_field_name("name"))

    def on_key(self, node: Node) -> None:
        """The name of an argument, a label, or a member in an initializer; it is not a reference."""
        self.taken.add(node.start_byte)

    def nested(self, name: str) -> str:
        """A name prefixed with the class around it."""
        owner = self.owner
        return f"{owner}.{name}" if owner else name

    def unnamed(self) -> str:
        """A number in place of a name, for a class without one."""
        self._n_unnamed += 1
        return self.nested(str(self._n_unnamed))

    def named_class(self, name: str, is_local: bool) -> str:
        """Define a class; a local one has a number in place of its name, which only its block sees."""
        dotted = self.unnamed() if is_local else self.nested(name)
        if is_local:
            self.scopes[-1][1][name] = dotted
        self.define(dotted, None)
        return dotted

    def define_constant(self, name: Node | None) -> None:
        """Define a constant of the enum around it; the enum is its type."""
        if name is not None:
            self.taken.add(name.start_byte)
            self.define(f"{self.owner}.{self.text(name)}", self.owner)

    def define_components(self, owner: str, node: Node | None) -> None:
        """Define the parameters of a record or a primary constructor as members of its class."""
        for component in node.named_children if node is not None else ():
            name = component.child_by_field_name("name")
            if name is not None:
                chain = self.type_chain(component.child_by_field_name("type"))
                self.define(f"{owner}.{self.text(name)}", chain)

    def base_chains(self, bases: Iterable[Node | None]) -> list[str]:
        """The chains of base types."""
        return [chain.lstrip(HOLDS) for base in bases if (chain := self.type_chain(base))]

    def count_chain(self, node: Node, name: Node, text: str) -> bool:
        """Count the chain of `node`, which ends with `name`; return whether it is new and its start known."""
        if self._chain_start == node.start_byte and name.end_byte <= self._chained:
            return False  # part of a chain that was counted with the node around it
        chain = self.value_chain(node)
        if chain is None:
            self.references[f".{text}"] += 1
            return False
        self.references[chain] += 1
        self._chain_start, self._chained = node.start_byte, name.end_byte
        return True


def container_chain(chain: str | None) -> str | None:
    """The chain of a container with values of type `chain`."""
    return None if chain is None else HOLDS + chain.lstrip(HOLDS)
