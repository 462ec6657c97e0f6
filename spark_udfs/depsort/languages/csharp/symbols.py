"""The symbols of a C# file, by one tree-sitter query and one pass over its captures.

As in Java, names may be nested, inherited, or members of values (`spark_udfs.depsort.scopes`,
`spark_udfs.depsort.type_chains`). The members of a partial class may be spread over several files. An
extension method is also a member of every value. A file's namespace is the first that it declares.
"""

from __future__ import annotations

import tree_sitter_c_sharp
from tree_sitter import Node

from spark_udfs.depsort.captured_file import child_of_type, first_child
from spark_udfs.depsort.languages.chains import MAX_NESTING
from spark_udfs.depsort.languages.csharp.chains import CSharpChains
from spark_udfs.depsort.languages.csharp.modules import CSharpModules
from spark_udfs.depsort.languages.data import read_builtins, read_query
from spark_udfs.depsort.languages.tree_sitter_language import TreeSitterLanguage
from spark_udfs.depsort.model import Import
from spark_udfs.depsort.type_chains import A_TYPE, EXTENSION, INSIDE


class _File(CSharpChains):
    """The captures of one C# file, turned into symbols."""

    # Captures: declarations

    def on_namespace(self, node: Node) -> None:
        name = node.child_by_field_name("name")
        if name is not None:
            dotted = self._dotted(name)
            if self.package is None:
                self.package = dotted

    def _dotted(self, node: Node) -> str:
        """A dotted name in a declaration; its parts are not references."""
        parts = self.parts(node)
        self.taken.update(part.start_byte for part in parts)
        self._chained = node.end_byte
        names = [self.text(part) for part in parts]
        return ".".join(names[1:] if names[:1] == ["global"] else names)

    def on_using(self, node: Node) -> None:
        alias = node.child_by_field_name("name")
        targets = [child for child in node.named_children if child != alias]
        if not targets:
            return
        dotted = self._dotted(targets[-1])
        everywhere = any(child.type == "global" for child in node.children)
        if alias is None:
            self.imports[Import(dotted, "*", None, everywhere)] += 1
            return
        self.taken.add(alias.start_byte)
        module, _, name = dotted.rpartition(".")
        text = self.text(alias)
        self.imports[Import(module, name, text) if module else Import(name, None, text)] += 1

    def on_class(self, node: Node) -> None:
        name = self.take_name(node)
        if name is None:
            return
        dotted = self.nested(self.text(name))
        self.define_type(dotted)
        self.enter(node, {})
        body = node.child_by_field_name("body")
        if body is not None:
            self._bodies[body.start_byte] = dotted
        self.bind_type_parameters(node)
        bases = self.base_chains(
            first_child(base) if base.type == "primary_constructor_base_type" else base
            for child in node.named_children
            if child.type == "base_list"  # a file with syntax errors may have several
            for base in child.named_children
        )
        self.define_components(dotted, child_of_type(node, "parameter_list"))
        if bases or self._has_modifier(node, "partial"):  # another part of the class may have other members
            self.bases.setdefault(dotted, []).extend(bases)

    def _has_modifier(self, node: Node | None, word: str) -> bool:
        return node is not None and any(
            child.type == "modifier" and self.text(child) == word for child in node.children
        )

    def on_body(self, node: Node) -> None:
        dotted = self._bodies.get(node.start_byte)
        if dotted is not None:
            self.enter(node, {}, dotted)

    def on_delegate(self, node: Node) -> None:
        name = self.take_name(node)
        if name is not None:
            self.define_type(self.nested(self.text(name)), self.type_chain(node.child_by_field_name("type")))
        self.enter(node, {})

    def _define(self, name: Node, of_type: Node | None) -> None:
        self.define(self.nested(self.text(name)), self.type_chain(of_type))

    def on_method(self, node: Node) -> None:
        name, owner = self.take_name(node), self.owner
        local = node.type == "local_function_statement"
        returns = node.child_by_field_name("type" if local else "returns")
        if local and name is not None and self.scopes:
            self.scopes[-1][1][self.text(name)] = self.type_chain(returns)
        self.enter(node, {})
        self.bind_type_parameters(node)
        if name is None or node.type != "method_declaration":
            return
        chain = self.type_chain(returns)
        self.define(f"{owner}.{self.text(name)}", chain)
        if self._has_modifier(first_child(node.child_by_field_name("parameters")), "this"):
            self.define(f"{EXTENSION}.{self.text(name)}", chain)

    def on_property(self, node: Node) -> None:
        name = self.take_name(node)
        if name is not None:
            self._define(name, node.child_by_field_name("type"))

    def on_type_parameter(self, node: Node) -> None:
        name = node.child_by_field_name("name")
        if name is not None and name.start_byte not in self.taken:
            chain = self._constraint(node, self.text(name))
            self.bind(name, chain)
            if self.scopes:
                self.scopes[-1][1][A_TYPE + self.text(name)] = chain

    def _constraint(self, node: Node, name: str) -> str | None:
        """The bound of a type parameter, from `where T : Base`."""
        declaration = node.parent.parent if node.parent is not None else None
        for clause in declaration.named_children if declaration is not None else ():
            if clause.type == "type_parameter_constraints_clause" and clause.named_child_count > 1:
                parameter = clause.named_children[0]
                if self.text(parameter) == name:
                    self.taken.add(parameter.start_byte)
                    return self.type_chain(clause.named_children[1].child_by_field_name("type"))
        return None

    # Captures: code

    def on_lambda(self, node: Node) -> None:
        self.enter(node, {})

    def on_implicit(self, node: Node) -> None:
        self.bind(node, None)

    def on_block(self, node: Node) -> None:
        self.enter(node, {})
        if node.type == "foreach_statement":
            name = node.child_by_field_name("left")
            if name is not None and name.type == "identifier":
                self.bind(
                    name, self._declared(node.child_by_field_name("type"), node.child_by_field_name("right"))
                )

    def on_from(self, node: Node) -> None:
        name = node.child_by_field_name("name")
        if name is not None:
            self.bind(name, self.value_chain(node.named_children[-1]))

    def _declared(self, of_type: Node | None, expression: Node | None) -> str | None:
        """The chain of a declared type; with `var`, the chain of the value."""
        if of_type is None or of_type.type == "implicit_type":
            return self.value_chain(expression)
        return self.type_chain(of_type)

    def on_parameter(self, node: Node) -> None:
        name = node.child_by_field_name("name")
        if name is not None and name.type == "identifier":
            self.bind(name, self._declared(node.child_by_field_name("type"), None))

    def on_variable(self, node: Node) -> None:
        of_type, above = node.child_by_field_name("type"), node.parent
        is_member = above is not None and above.type in ("field_declaration", "event_field_declaration")
        for declarator in node.named_children:
            name = (
                declarator.child_by_field_name("name") if declarator.type == "variable_declarator" else None
            )
            if name is None or name.type != "identifier":
                continue
            self.taken.add(name.start_byte)
            if is_member:
                self._define(name, of_type)
            else:
                expression = declarator.named_children[-1] if declarator.named_child_count > 1 else None
                self.bind_after(declarator, {self.text(name): self._declared(of_type, expression)})

    def on_qualified(self, node: Node) -> None:
        if node.end_byte <= self._chained:
            return
        if (chain := self.written(node)) is not None:
            self.references[chain] += 1
        self.taken.update(part.start_byte for part in self.parts(node))
        self._chained = node.end_byte

    def on_chain(self, node: Node) -> None:
        name = self.member_name(node)
        if name is None:
            return
        self.taken.add(name.start_byte)
        if not self.count_chain(node, name, self.name(name)):
            return
        operand: Node | None = node
        for _ in range(MAX_NESTING):
            if operand is None or operand.type in ("identifier", "generic_name", "alias_qualified_name"):
                break
            below = operand.child_by_field_name("expression") or operand.child_by_field_name("condition")
            operand = below or operand.child_by_field_name("function")
        if operand is not None and operand.type != "generic_name":
            self.taken.update(part.start_byte for part in self.parts(operand))

    def on_attribute(self, node: Node) -> None:
        """`[Mark]` may mean a class `MarkAttribute`."""
        self.taken.add(node.start_byte)
        name, owner = self.text(node), self.owner
        for written in (name, f"{name}Attribute"):
            self.references[f"{owner}{INSIDE}{written}" if owner else written] += 1

    def on_typed(self, node: Node) -> None:
        """A name where only a type can stand."""
        if node.start_byte not in self.taken:
            self.taken.add(node.start_byte)
            self.refer(self.text(node), as_type=True)


class CSharp(TreeSitterLanguage):
    """C#, up to records and patterns."""

    name = "csharp"
    suffixes = (".cs",)
    grammar = staticmethod(tree_sitter_c_sharp.language)
    query = read_query(__package__)
    family = "csharp"
    builtins, builtin_members = read_builtins(__package__)
    typed_chains = True
    modules = CSharpModules
    file = _File
