"""Chains of names in languages with classes: the part that their grammars share.

`chains.py` of each language reads the chain of a type or value from its grammar. This module numbers classes
without a name, and counts a chain `a.b.c` once, not again for the `a.b` in it.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence

from tree_sitter import Node

from spark_udfs.depsort.scopes import ScopedNames
from spark_udfs.depsort.type_chains import HOLDS

MAX_CHAIN = 12
MAX_NESTING = 48  # nodes followed for the type of an expression


class ClassChains(ScopedNames):
    """The classes and chains of one file."""

    def __init__(self, source: bytes) -> None:
        super().__init__(source)
        self._bodies: dict[int, str] = {}  # start of a class body -> the class's dotted name
        self._n_unnamed = 0
        self._chain_start = self._chained = -1  # start and end of the last chain

    @abstractmethod
    def value_chain(self, node: Node | None) -> str | None:
        """The chain that gives the type of an expression."""

    def nested(self, name: str) -> str:
        """A name prefixed with the class around it."""
        owner = self.owner
        return f"{owner}.{name}" if owner else name

    def unnamed(self) -> str:
        """A number that stands for the name of a class without one."""
        self._n_unnamed += 1
        return self.nested(str(self._n_unnamed))

    def define_constant(self, name: Node | None) -> None:
        """Define a constant of the enum around it; the enum is its type."""
        if name is not None:
            self.taken.add(name.start_byte)
            self.define(f"{self.owner}.{self.text(name)}", self.owner)

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


def joined(start: str | None, members: Sequence[str]) -> str | None:
    """A chain from its start and its members in reverse order."""
    return None if start is None else ".".join([start, *reversed(members)])


def held(chain: str | None) -> str | None:
    """The chain of a container whose values have type `chain`."""
    return None if chain is None else HOLDS + chain.lstrip(HOLDS)
