"""The chains of Kotlin types and expressions (`spark_udfs.depsort.type_chains`)."""

from __future__ import annotations

from tree_sitter import Node

from spark_udfs.depsort.captured_file import first_child, last_child
from spark_udfs.depsort.languages.chains import ClassChains, container_chain
from spark_udfs.depsort.languages.data import read_names

_CONTAINERS = read_names(__package__, "containers.txt")
FIRST_CHILD = frozenset(
    f"{kind}_expression" for kind in ("call", "index", "parenthesized", "unary", "binary")
)
TYPES = ("user_type", "nullable_type", "parenthesized_type", "function_type")


class KotlinChains(ClassChains):
    """The chains of one Kotlin file."""

    def type_step(self, node: Node) -> Node | str | None:
        """The next node on the way to a type's chain, or the chain."""
        if node.type == "user_type":
            names = [self.text(child) for child in node.named_children if child.type == "identifier"]
            arguments = last_child(node)
            if names and names[-1] in _CONTAINERS and arguments is not None:
                argument = last_child(last_child(arguments)) if arguments.type == "type_arguments" else None
                return container_chain(
                    None if argument is None or argument.type not in TYPES else self.type_chain(argument)
                )
            start = self.root(names[0]) if names else None
            return ".".join([start, *names[1:]]) if start else None
        return last_child(node) if node.type in TYPES else None

    def value_step(self, node: Node, members: list[str]) -> Node | str | None:
        """The expression that `node` takes a value from, or the chain of its type."""
        kind = node.type
        if kind == "navigation_expression" and node.named_child_count == 2:
            members.append(self.text(node.named_children[1]))
            return node.named_children[0]
        if kind in FIRST_CHILD:
            return first_child(node)
        if kind == "as_expression":
            return self.type_chain(node.child_by_field_name("right"))
        if kind == "identifier":
            return self.root(self.text(node))
        if kind in ("this_expression", "super_expression"):
            label = first_child(node)
            return self.owner or None if label is None else self.root(self.text(label))
        return next(iter(self.bases_of(node)), None) if kind == "object_literal" else None

    def bases_of(self, node: Node) -> list[str]:
        """The chains of the types that a class or object derives from."""
        specifiers = [child for child in node.named_children if child.type == "delegation_specifiers"]
        bases = [first_child(base) for clause in specifiers for base in clause.named_children]
        called = ("constructor_invocation", "explicit_delegation")
        return self.base_chains(
            first_child(base) if base is not None and base.type in called else base for base in bases
        )
