"""The chains of Kotlin types and expressions (`spark_udfs.depsort.type_chains`)."""

from __future__ import annotations

from tree_sitter import Node

from spark_udfs.depsort.languages.class_chains import MAX_CHAIN, MAX_NESTING, ClassChains, held, joined
from spark_udfs.depsort.languages.data import read_names
from spark_udfs.depsort.type_chains import HOLDS

_CONTAINERS = read_names(__package__, "containers.txt")
FIRST_CHILD = frozenset(f"{it}_expression" for it in ("call", "index", "parenthesized", "unary", "binary"))
TYPES = ("user_type", "nullable_type", "parenthesized_type", "function_type")


class KotlinChains(ClassChains):
    """The chains of one Kotlin file."""

    def type_chain(self, node: Node | None) -> str | None:
        """The chain of a type; for a collection that of its elements, for a function that of its result."""
        for _ in range(MAX_CHAIN):
            if node is None:
                return None
            if node.type == "user_type":
                names = [self.text(it) for it in node.named_children if it.type == "identifier"]
                arguments = node.named_children[-1] if node.named_child_count else None
                if names and names[-1] in _CONTAINERS and arguments is not None:
                    inner = arguments.named_children[-1] if arguments.type == "type_arguments" else None
                    of = inner.named_children[-1] if inner is not None and inner.named_child_count else None
                    chain = None if of is None or of.type not in TYPES else self.type_chain(of)
                    return held(chain)
                start = self.root(names[0]) if names else None
                return ".".join([start, *names[1:]]) if start else None
            node = node.named_children[-1] if node.type in TYPES and node.named_child_count else None
        return None

    def value_chain(self, node: Node | None) -> str | None:
        """The chain that gives the type of an expression."""
        members: list[str] = []
        for _ in range(MAX_NESTING):
            if node is None or len(members) > MAX_CHAIN:
                return None
            kind, start = node.type, None
            if kind == "navigation_expression" and node.named_child_count == 2:
                members.append(self.text(node.named_children[1]))
                node = node.named_children[0]
                continue
            if kind in FIRST_CHILD:
                node = node.named_children[0] if node.named_child_count else None
                continue
            if kind == "as_expression":
                start = self.type_chain(node.child_by_field_name("right"))
            elif kind == "identifier":
                start = self.root(self.text(node))
            elif kind in ("this_expression", "super_expression"):
                label = node.named_children[0] if node.named_child_count else None
                start = self.owner or None if label is None else self.root(self.text(label))
            elif kind == "object_literal":
                start = self._first_base(node)
            return joined(start, members)
        return None

    def bases_of(self, node: Node) -> list[str]:
        chains = []
        for specifiers in node.named_children:
            if specifiers.type != "delegation_specifiers":
                continue
            for specifier in specifiers.named_children:
                of = specifier.named_children[0] if specifier.named_child_count else None
                if of is not None and of.type in ("constructor_invocation", "explicit_delegation"):
                    of = of.named_children[0] if of.named_child_count else None
                if chain := self.type_chain(of):
                    chains.append(chain.lstrip(HOLDS))
        return chains

    def _first_base(self, node: Node) -> str | None:
        bases = self.bases_of(node)
        return bases[0] if bases else None
