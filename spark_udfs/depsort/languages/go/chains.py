"""The chains of Go types and expressions (`spark_udfs.depsort.type_chains`)."""

from __future__ import annotations

from tree_sitter import Node

from spark_udfs.depsort.captured_file import field_of, first_child, only_child
from spark_udfs.depsort.languages.chains import Chains

_COLLECTIONS = "slice_type array_type implicit_length_array_type map_type channel_type"
_WRAPPERS = "pointer_type parenthesized_type generic_type negated_type type_constraint type_elem"
_TYPES = ("type_identifier", "qualified_type", "generic_type", "pointer_type")
_SEEN_THROUGH = frozenset(f"{_COLLECTIONS} {_WRAPPERS}".split())
_SAME_VALUE = {
    "index_expression": "operand",
    "slice_expression": "operand",
    "unary_expression": "operand",
    "type_instantiation_expression": "type",
}


class GoChains(Chains):
    """The chains of one Go file."""

    def type_step(self, node: Node) -> Node | str | None:
        """The next node on the way to a type's chain, or the chain."""
        kind = node.type
        if kind == "type_identifier":
            return self.root(self.text(node))
        if kind == "qualified_type":
            return self.text(node)
        if kind == "function_type":
            return self.first_result(node.child_by_field_name("result"))
        if kind in _SEEN_THROUGH:
            for field in ("value", "element", "type"):
                if (below := node.child_by_field_name(field)) is not None:
                    return below
            return only_child(node)
        return None

    def first_result(self, node: Node | None) -> Node | None:
        """The type of a function's first result."""
        several = node is not None and node.type == "parameter_list"
        return field_of(first_child(node), "type") if several else node

    def value_step(self, node: Node, members: list[str]) -> Node | str | None:
        """The expression that `node` takes a value from, or the chain of its type."""
        kind = node.type
        if kind == "identifier":
            return self.root(self.text(node))
        if kind == "selector_expression":
            field = node.child_by_field_name("field")
            if field is None:
                return None
            members.append(self.text(field))
            return node.child_by_field_name("operand")
        if kind == "call_expression":
            function = node.child_by_field_name("function")
            called = "" if function is None or function.type != "identifier" else self.text(function)
            if called not in ("new", "make", "append"):
                return function
            first = first_child(node.child_by_field_name("arguments"))
            return first if called == "append" else self.type_chain(first)
        if kind in _SAME_VALUE:
            return node.child_by_field_name(_SAME_VALUE[kind])
        if kind == "parenthesized_expression":
            return only_child(node)
        if kind == "func_literal":
            return self.type_chain(self.first_result(node.child_by_field_name("result")))
        if kind in ("composite_literal", "type_assertion_expression", "type_conversion_expression"):
            return self.type_chain(node.child_by_field_name("type"))
        return self.type_chain(node) if kind in _TYPES else None
