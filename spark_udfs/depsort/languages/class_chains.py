"""The chain from which the type of an expression can be read, for languages with classes.

What a type or a value is called differs by grammar and stands in `chains_<language>.py`; here is what is the
same: classes without a name, and that a chain `a.b.c` is counted once, not again for the `a.b` in it.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence

from tree_sitter import Node

from spark_udfs.depsort.scopes import ScopedNames
from spark_udfs.depsort.type_chains import HOLDS

MAX_CHAIN = 12
MAX_NESTING = 48  # nodes looked into for the type of an expression


class ClassChains(ScopedNames):
    """The classes and chains of one file."""

    def __init__(self, source: bytes) -> None:
        super().__init__(source)
        self._bodies: dict[int, str] = {}  # where the body of a class starts: its dotted name
        self._n_unnamed = 0
        self._chain_start = self._chained = -1  # where the chain read last lies

    @abstractmethod
    def value_chain(self, node: Node | None) -> str | None:
        """The chain from which the type of an expression can be read."""

    def nested(self, name: str) -> str:
        """A name with that of the class around it."""
        owner = self.owner
        return f"{owner}.{name}" if owner else name

    def unnamed(self) -> str:
        """A number for a class without a name."""
        self._n_unnamed += 1
        return self.nested(str(self._n_unnamed))

    def define_constant(self, name: Node | None) -> None:
        """A constant of the enum around, which is one of its values."""
        if name is not None:
            self.taken.add(name.start_byte)
            self.define(f"{self.owner}.{self.text(name)}", self.owner)

    def count_chain(self, node: Node, name: Node, text: str) -> bool:
        """Counts the chain of `node`, which ends with `name`; whether it is a new one of known start."""
        if self._chain_start == node.start_byte and name.end_byte <= self._chained:
            return False  # a part of the chain that was read with the node around it
        chain = self.value_chain(node)
        if chain is None:
            self.references[f".{text}"] += 1
            return False
        self.references[chain] += 1
        self._chain_start, self._chained = node.start_byte, name.end_byte
        return True


def joined(start: str | None, members: Sequence[str]) -> str | None:
    """A chain from its start and its members, last one first."""
    return None if start is None else ".".join([start, *reversed(members)])


def held(chain: str | None) -> str | None:
    """What a container of such values is to its own members."""
    return None if chain is None else HOLDS + chain.lstrip(HOLDS)
