"""The chains of C# types and expressions (`spark_udfs.depsort.type_chains`)."""

from __future__ import annotations

from tree_sitter import Node

from spark_udfs.depsort.languages.class_chains import MAX_CHAIN, MAX_NESTING, ClassChains, held, joined
from spark_udfs.depsort.languages.data import read_names

_CONTAINERS = read_names(__package__, "containers.txt")
_SAME_VALUE = {
    "invocation_expression": "function",
    "element_access_expression": "expression",
    "conditional_expression": "consequence",
    "assignment_expression": "left",
}
_ONE_CHILD = (
    "parenthesized_expression",
    "await_expression",
    "postfix_unary_expression",
    "checked_expression",
)


class CSharpChains(ClassChains):
    """The chains of one C# file."""

    def type_chain(self, node: Node | None) -> str | None:
        """The chain of a type; for a collection that of its elements."""
        for _ in range(MAX_CHAIN):
            if node is None:
                return None
            kind = node.type
            if kind == "identifier":
                return self.type_root(self.text(node))
            if kind == "qualified_name":
                return self.written(node)
            if kind == "generic_name":
                name, arguments = node.named_children[0], node.named_children[-1]
                if self.text(name) in _CONTAINERS and arguments.named_child_count:
                    chain = self.type_chain(arguments.named_children[-1])
                    return held(chain)
                node = name
            elif kind in ("array_type", "nullable_type", "ref_type", "scoped_type", "pointer_type"):
                node = node.child_by_field_name("type") or (
                    node.named_children[0] if node.named_child_count else None
                )
            else:
                return None
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
                pending.extend(it for it in reversed(part.named_children) if it.type != "type_argument_list")
        return parts

    def written(self, node: Node) -> str | None:
        names = [self.text(part) for part in self.parts(node)]
        if names[:1] == ["global"]:
            del names[0]
        start = self.type_root(names[0]) if names else None
        return None if start is None else ".".join([start, *names[1:]])

    def value_chain(self, node: Node | None) -> str | None:
        """The chain that gives the type of an expression."""
        members: list[str] = []
        for _ in range(MAX_NESTING):
            if node is None or len(members) > MAX_CHAIN:
                return None
            kind, start = node.type, None
            if kind == "member_access_expression":
                name, of = node.child_by_field_name("name"), node.child_by_field_name("expression")
                if name is None:
                    return None
                members.append(self.name(name))
                if of is None:  # `this`, `base` and keyword types are unnamed nodes
                    if node.children[0].type not in ("this", "base"):
                        return None
                    start = self.owner or None
                    return joined(start, members)
                node = of
                continue
            if kind == "conditional_access_expression":
                binding = next(
                    (it for it in node.named_children if it.type == "member_binding_expression"), None
                )
                name = None if binding is None else binding.child_by_field_name("name")
                if name is None:
                    return None
                members.append(self.name(name))
                node = node.child_by_field_name("condition")
                continue
            if kind in _SAME_VALUE:
                node = node.child_by_field_name(_SAME_VALUE[kind])
                continue
            if kind in _ONE_CHILD:
                node = node.named_children[0] if node.named_child_count else None
                continue
            if kind == "binary_expression":
                node = node.child_by_field_name("left")
                continue
            if kind == "identifier":
                start = self.root(self.text(node))
            elif kind == "generic_name":
                start = self.root(self.name(node))
            elif kind in ("object_creation_expression", "cast_expression"):
                start = self.type_chain(node.child_by_field_name("type"))
            elif kind == "as_expression":
                start = self.type_chain(node.child_by_field_name("right"))
            elif kind == "alias_qualified_name":
                name = node.child_by_field_name("name")
                start = None if name is None else self.name(name)
            elif kind == "qualified_name":
                start = self.written(node)
            return joined(start, members)
        return None

    def name(self, node: Node) -> str:
        if node.type == "generic_name" and node.named_child_count:
            node = node.named_children[0]
        return self.text(node)
