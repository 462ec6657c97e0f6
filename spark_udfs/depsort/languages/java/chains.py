"""The chains of Java types and expressions (`spark_udfs.depsort.type_chains`)."""

from __future__ import annotations

import re

from tree_sitter import Node

from spark_udfs.depsort.languages.class_chains import MAX_CHAIN, MAX_NESTING, ClassChains, held, joined
from spark_udfs.depsort.languages.data import read_names
from spark_udfs.depsort.type_chains import INSIDE

_CONTAINERS = read_names(__package__, "containers.txt")
_ANNOTATIONS = re.compile(r"@[\w.]+(?:\([^()]*\))?|\s+")
_BRACKETS = re.compile(r"([<>])")


class JavaChains(ClassChains):
    """The chains of one Java file."""

    def type_chain(self, node: Node | None) -> str | None:
        """The chain of a type; for a collection that of its elements."""
        for _ in range(MAX_CHAIN):
            if node is None:
                return None
            kind = node.type
            if kind == "type_identifier":
                return self.root(self.text(node))
            if kind == "scoped_type_identifier":
                return self.written(self.text(node))
            if kind == "generic_type":
                held = self._held(node)
                if held is not None:
                    return held
                node = node.named_children[0] if node.named_child_count else None
            elif kind == "array_type":
                node = node.child_by_field_name("element")
            elif kind == "annotated_type":
                node = node.named_children[-1] if node.named_child_count else None
            else:
                return None
        return None

    def _held(self, node: Node) -> str | None:
        """The chain of a library container's values, marked as contained; None for other types."""
        outer, arguments = node.named_children[0], node.named_children[-1]
        if self.text(outer) not in _CONTAINERS or arguments.type != "type_arguments":
            return None
        inner = arguments.named_children[-1] if arguments.named_child_count else None
        if inner is not None and inner.type == "wildcard":
            inner = inner.named_children[-1] if inner.named_child_count else None
        chain = self.type_chain(inner)
        return held(chain)

    def written(self, text: str) -> str:
        """The chain of a dotted name, without type arguments and annotations."""
        first, dot, rest = _without_arguments(_ANNOTATIONS.sub("", text)).partition(".")
        return f"{self.root(first) or first}{dot}{rest}"

    def value_chain(self, node: Node | None) -> str | None:
        """The chain that gives the type of an expression."""
        members: list[str] = []
        for _ in range(MAX_NESTING):
            if node is None or len(members) > MAX_CHAIN:
                return None
            kind = node.type
            if kind == "field_access" or kind == "method_invocation":
                name = node.child_by_field_name("field" if kind == "field_access" else "name")
                of = node.child_by_field_name("object")
                if name is None:
                    return None
                if name.type == "this":
                    node = of
                    continue
                if of is None:  # a method of the surrounding classes
                    owner = self.owner
                    text = self.text(name)
                    return ".".join([f"{owner}{INSIDE}{text}" if owner else text, *reversed(members)])
                members.append(self.text(name))
                node = of
                continue
            if kind == "array_access":
                node = node.child_by_field_name("array")
                continue
            if kind == "parenthesized_expression":
                node = node.named_children[0] if node.named_child_count == 1 else None
                continue
            if kind == "ternary_expression":
                node = node.child_by_field_name("consequence")
                continue
            if kind == "identifier":
                start = self.root(self.text(node))
            elif kind in ("this", "super"):
                start = self.owner or None
            elif kind in ("object_creation_expression", "cast_expression"):
                start = self.type_chain(node.child_by_field_name("type"))
            elif kind in ("type_identifier", "scoped_type_identifier", "generic_type", "array_type"):
                start = self.type_chain(node)
            else:
                return None
            return joined(start, members)
        return None


def _without_arguments(text: str) -> str:
    """The text without angle brackets and their content, at any depth."""
    kept, depth = [], 0
    for piece in _BRACKETS.split(text):
        if piece == "<":
            depth += 1
        elif piece == ">":
            depth -= 1
        elif depth == 0:
            kept.append(piece)
    return "".join(kept)
