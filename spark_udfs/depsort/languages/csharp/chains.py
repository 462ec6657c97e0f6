"""The chains of C# types and expressions (`spark_udfs.depsort.type_chains`)."""

from __future__ import annotations

from tree_sitter import Node

from spark_udfs.depsort.captured_file import child_of_type, field_of, first_child
from spark_udfs.depsort.languages.chains import ClassChains, container_chain
from spark_udfs.depsort.languages.data import read_names

_CONTAINERS = read_names(__package__, "containers.txt")
_SAME_VALUE = {
    "invocation_expression": "function",
    "element_access_expression": "expression",
    "conditional_expression": "consequence",
    "assignment_expression": "left",
    "binary_expression": "left",
}
_ONE_CHILD = (
    "parenthesized_expression",
    "await_expression",
    "postfix_unary_expression",
    "checked_expression",
)


class CSharpChains(ClassChains):
    """The chains of one C# file."""

    def type_step(self, node: Node) -> Node | str | None:
        """The next node on the way to a type's chain, or the chain."""
        kind = node.type
        if kind == "identifier":
            return self.root(self.text(node), as_type=True)
        if kind == "qualified_name":
            return self.written(node)
        if kind == "generic_name":
            name, arguments = node.named_children[0], node.named_children[-1]
            if self.text(name) in _CONTAINERS and arguments.named_child_count:
                return container_chain(self.type_chain(arguments.named_children[-1]))
            return name
        if kind in ("array_type", "nullable_type", "ref_type", "scoped_type", "pointer_type"):
            return node.child_by_field_name("type") or first_child(node)
        return None

    def parts(self, node: Node) -> list[Node]:
        """The identifiers of a dotted name, without type arguments."""
        parts: list[Node] = []
        pending = [node]
        while pending:
            part = pending.pop()
            if part.type == "identifier":
                parts.append(part)
            elif part.type in ("qualified_name", "generic_name", "alias_qualified_name"):
                pending.extend(
                    child for child in reversed(part.named_children) if child.type != "type_argument_list"
                )
        return parts

    def written(self, node: Node) -> str | None:
        names = [self.text(part) for part in self.parts(node)]
        if names[:1] == ["global"]:
            del names[0]
        start = self.root(names[0], as_type=True) if names else None
        return None if start is None else ".".join([start, *names[1:]])

    def value_step(self, node: Node, members: list[str]) -> Node | str | None:
        """The expression that `node` takes a value from, or the chain of its type."""
        kind = node.type
        if kind in ("member_access_expression", "conditional_access_expression"):
            name = self.member_name(node)
            if name is None:
                return None
            members.append(self.name(name))
            operand = node.child_by_field_name("expression")
            if kind == "conditional_access_expression":
                return node.child_by_field_name("condition")
            if operand is None and node.children[0].type in ("this", "base"):  # unnamed, as keyword types are
                return self.owner or None
            return operand
        if kind in _SAME_VALUE:
            return node.child_by_field_name(_SAME_VALUE[kind])
        if kind in _ONE_CHILD:
            return first_child(node)
        if kind in ("identifier", "generic_name"):
            return self.root(self.name(node))
        if kind in ("object_creation_expression", "cast_expression"):
            return self.type_chain(node.child_by_field_name("type"))
        if kind == "as_expression":
            return self.type_chain(node.child_by_field_name("right"))
        if kind == "alias_qualified_name":
            name = node.child_by_field_name("name")
            return None if name is None else self.name(name)
        return self.written(node) if kind == "qualified_name" else None

    def member_name(self, node: Node) -> Node | None:
        """The last name of `a.b` or `a?.b`."""
        if node.type == "conditional_access_expression":
            return field_of(child_of_type(node, "member_binding_expression"), "name")
        return node.child_by_field_name("name")

    def name(self, node: Node) -> str:
        if node.type == "generic_name" and node.named_child_count:
            node = node.named_children[0]
        return self.text(node)
