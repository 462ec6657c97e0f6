"""The chains of Go types and expressions (`spark_udfs.depsort.type_chains`)."""

from __future__ import annotations

from tree_sitter import Node

from spark_udfs.depsort.languages.class_chains import MAX_CHAIN, MAX_NESTING, joined
from spark_udfs.depsort.scopes import ScopedNames

_COLLECTIONS = "slice_type array_type implicit_length_array_type map_type channel_type"
_WRAPPERS = "pointer_type parenthesized_type generic_type negated_type type_constraint type_elem"
_SEEN_THROUGH = frozenset(f"{_COLLECTIONS} {_WRAPPERS}".split())
_SAME_VALUE = {
    "call_expression": "function",
    "index_expression": "operand",
    "slice_expression": "operand",
    "unary_expression": "operand",
    "type_instantiation_expression": "type",
}


class GoChains(ScopedNames):
    """The chains of one Go file."""

    def type_chain(self, node: Node | None) -> str | None:
        """The chain of a type; for a collection that of its elements, for a function that of its result."""
        for _ in range(MAX_CHAIN):
            if node is None:
                return None
            kind = node.type
            if kind == "type_identifier":
                name = self.text(node)
                bound, chain = self.local(name)
                return chain if bound else name
            if kind == "qualified_type":
                return self.text(node)
            if kind == "function_type":
                node = self.first_result(node.child_by_field_name("result"))
            elif kind in _SEEN_THROUGH:
                node = (
                    node.child_by_field_name("value")
                    or node.child_by_field_name("element")
                    or node.child_by_field_name("type")
                    or (node.named_children[0] if node.named_child_count == 1 else None)
                )
            else:
                return None
        return None

    def first_result(self, node: Node | None) -> Node | None:
        if node is not None and node.type == "parameter_list":
            node = node.named_children[0] if node.named_child_count else None
            return None if node is None else node.child_by_field_name("type")
        return node

    def value_chain(self, node: Node | None) -> str | None:
        """The chain that gives the type of an expression."""
        members: list[str] = []
        for _ in range(MAX_NESTING):
            if node is None:
                return None
            kind = node.type
            start: str | None = None
            if kind == "identifier":
                name = self.text(node)
                bound, start = self.local(name)
                if not bound:
                    start = name
                return joined(start, members)
            if kind == "selector_expression":
                field = node.child_by_field_name("field")
                if field is None or len(members) >= MAX_CHAIN:
                    return None
                members.append(self.text(field))
                node = node.child_by_field_name("operand")
            elif kind == "call_expression":
                function = node.child_by_field_name("function")
                if (
                    function is not None
                    and function.type == "identifier"
                    and self.text(function) in ("new", "make", "append")
                ):
                    arguments = node.child_by_field_name("arguments")
                    first = (
                        arguments.named_children[0]
                        if arguments is not None and arguments.named_child_count
                        else None
                    )
                    if self.text(function) != "append":
                        start = self.type_chain(first)
                        return joined(start, members)
                    node = first
                else:
                    node = function
            elif kind in _SAME_VALUE:
                node = node.child_by_field_name(_SAME_VALUE[kind])
            elif kind == "parenthesized_expression":
                node = node.named_children[0] if node.named_child_count == 1 else None
            elif kind == "func_literal":
                start = self.type_chain(self.first_result(node.child_by_field_name("result")))
                return joined(start, members)
            elif kind in ("composite_literal", "type_assertion_expression", "type_conversion_expression"):
                start = self.type_chain(node.child_by_field_name("type"))
                return joined(start, members)
            elif kind in ("type_identifier", "qualified_type", "generic_type", "pointer_type"):
                start = self.type_chain(node)
                return joined(start, members)
            else:
                return None
        return None
