"""The symbols of a Java file, by one tree-sitter query and one pass over its captures.

Types may be nested (`Outer.Inner.member`), a name in a class may be inherited (`Outer.Inner/name`, see
`spark_udfs.depsort.scopes`), and members of values are found by declared types
(`spark_udfs.depsort.type_chains`): with a local `Foo foo`, `foo.bar().baz` is the reference `Foo.bar.baz`.
Annotations, method references, class literals, patterns and type arguments count as uses. Anonymous and local
classes are named by a number; no other file can refer to their members.
"""

from __future__ import annotations

import tree_sitter_java
from tree_sitter import Node

from spark_udfs.depsort.captured_file import child_of_type, field_of, first_child, last_child
from spark_udfs.depsort.languages.data import read_builtins, read_query
from spark_udfs.depsort.languages.java.chains import JavaChains
from spark_udfs.depsort.languages.namespaces import NamespaceModules
from spark_udfs.depsort.languages.tree_sitter_language import TreeSitterLanguage
from spark_udfs.depsort.model import Import


class _File(JavaChains):
    """The captures of one Java file, turned into symbols."""

    # Captures: classes and their members

    def on_package(self, node: Node) -> None:
        if self.package is None:
            self.package = self._dotted(node)

    def on_import(self, node: Node) -> None:
        names = [child for child in node.named_children if child.type in ("identifier", "scoped_identifier")]
        if not names:
            return
        dotted = self._dotted(names[0])
        if any(child.type == "asterisk" for child in node.named_children):
            self.imports[Import(dotted, "*", None)] += 1
            return
        module, _, name = dotted.rpartition(".")
        if module:
            self.imports[Import(module, name, name)] += 1

    def _dotted(self, node: Node) -> str:
        """A dotted name in a declaration; its parts are not references."""
        pending = [node]
        for part in pending:
            self.taken.add(part.start_byte)
            pending.extend(part.named_children)
        self._chained = node.end_byte
        return "".join(self.text(node).split())

    def on_class(self, node: Node) -> None:
        name = self.take_name(node)
        if name is None:
            return
        is_local = node.parent is not None and node.parent.type == "block"
        dotted = self.named_class(self.text(name), is_local)
        self.enter(node, {})
        body = node.child_by_field_name("body")
        if body is not None:
            self._bodies[body.start_byte] = dotted
        bases = []
        for child in node.named_children:
            if child.type == "superclass":
                bases += child.named_children
            elif child.type in ("super_interfaces", "extends_interfaces"):
                bases += [base for types in child.named_children for base in types.named_children]
        self.bind_type_parameters(node)
        if chains := self.base_chains(bases):
            self.bases[dotted] = chains
        self.define_components(dotted, node.child_by_field_name("parameters"))

    def on_body(self, node: Node) -> None:
        """The body of a class, or of an anonymous class or enum constant."""
        dotted = self._bodies.get(node.start_byte)
        if dotted is None:
            dotted, above = self.unnamed(), node.parent
            if above is not None and above.type == "enum_constant":
                self.bases[dotted] = [self.owner]
            elif bases := self.base_chains([field_of(above, "type")]):
                self.bases[dotted] = bases
        self.enter(node, {}, dotted)

    def on_method(self, node: Node) -> None:
        name, owner = self.take_name(node), self.owner
        if name is None:
            return
        self.enter(node, {})
        self.bind_type_parameters(node)
        if node.type in ("method_declaration", "annotation_type_element_declaration"):
            self.define(f"{owner}.{self.text(name)}", self.type_chain(node.child_by_field_name("type")))

    def on_field(self, node: Node) -> None:
        chain = self.type_chain(node.child_by_field_name("type"))
        for declarator in node.children_by_field_name("declarator"):
            name = self.take_name(declarator)
            if name is not None:
                self.define(f"{self.owner}.{self.text(name)}", chain)

    def on_type_parameter(self, node: Node) -> None:
        name = child_of_type(node, "type_identifier", "identifier")
        if name is not None and name.start_byte not in self.taken:
            self.bind(name, self.type_chain(first_child(child_of_type(node, "type_bound"))))

    # Captures: code

    def on_lambda(self, node: Node) -> None:
        self.enter(node, {})
        parameters = node.child_by_field_name("parameters")
        if parameters is None:
            return
        if parameters.type == "identifier":
            self.bind(parameters, None)
        elif parameters.type == "inferred_parameters":
            for name in parameters.named_children:
                self.bind(name, None)

    def on_block(self, node: Node) -> None:
        self.enter(node, {})
        if node.type == "enhanced_for_statement":
            self._typed_name(node)

    def on_parameter(self, node: Node) -> None:
        if node.type == "spread_parameter":
            of_type = next(
                (
                    child
                    for child in node.named_children
                    if child.type not in ("modifiers", "variable_declarator")
                ),
                None,
            )
            name = field_of(last_child(node), "name")
            if name is not None:
                self.bind(name, self.type_chain(of_type))
        elif node.type == "catch_formal_parameter":
            name = node.child_by_field_name("name")
            if name is not None:
                self.bind(name, self.type_chain(first_child(child_of_type(node, "catch_type"))))
        else:
            self._typed_name(node)

    def _typed_name(self, node: Node) -> None:
        name, of_type = node.child_by_field_name("name"), node.child_by_field_name("type")
        if name is not None:
            self.bind(name, self._chain_of(of_type, node.child_by_field_name("value")))

    def _chain_of(self, of_type: Node | None, expression: Node | None) -> str | None:
        """The chain of a declared type; with `var`, the chain of the value."""
        if of_type is not None and of_type.type == "type_identifier" and self.text(of_type) in ("var", "val"):
            self.taken.add(of_type.start_byte)
            return self.value_chain(expression)
        return self.type_chain(of_type)

    def on_local(self, node: Node) -> None:
        of_type = node.child_by_field_name("type")
        for declarator in node.children_by_field_name("declarator"):
            name = declarator.child_by_field_name("name")
            if name is not None:
                self.bind(name, self._chain_of(of_type, declarator.child_by_field_name("value")))

    def on_pattern(self, node: Node) -> None:
        if node.type == "instanceof_expression":
            name, of_type = node.child_by_field_name("name"), node.child_by_field_name("right")
        else:
            if node.named_child_count < 2:
                return
            of_type, name = node.named_children[-2], node.named_children[-1]
        if name is not None and name.type == "identifier":
            self.bind(name, self._chain_of(of_type, None))

    def on_label(self, node: Node) -> None:
        """A constant of the enum in the switch."""
        above = node.parent
        while above is not None and above.type not in ("switch_expression", "switch_statement"):
            above = above.parent
        chain = self.value_chain(field_of(above, "condition"))
        self.taken.add(node.start_byte)
        if chain is not None:
            self.references[f"{chain}.{self.text(node)}"] += 1
        else:
            self.refer(self.text(node))

    def on_scoped(self, node: Node) -> None:
        if node.end_byte <= self._chained:
            return
        text = self.text(node)
        self.references[self.written(text)] += 1
        pending = [node]
        for part in pending:
            if part.type in ("identifier", "type_identifier"):
                self.taken.add(part.start_byte)
            pending.extend(child for child in part.named_children if child.type != "type_arguments")
        self._chained = node.end_byte

    def on_reference(self, node: Node) -> None:
        """`Foo::bar`."""
        parts = node.named_children
        if len(parts) == 2 and parts[1].type == "identifier":
            self.taken.add(parts[1].start_byte)
            chain = self.value_chain(parts[0])
            name = self.text(parts[1])
            self.references[f".{name}" if chain is None else f"{chain}.{name}"] += 1

    def on_call(self, node: Node) -> None:
        name = self.take_name(node)
        if name is not None:
            self._chain(node, name)

    def on_access(self, node: Node) -> None:
        name = self.take_name(node, "field")
        if name is not None and name.type != "this":
            self._chain(node, name)

    def _chain(self, node: Node, name: Node) -> None:
        if not self.count_chain(node, name, self.text(name)):
            return
        operand: Node | None = node
        while operand is not None and operand.type in ("field_access", "method_invocation"):
            operand = operand.child_by_field_name("object")
        if operand is not None and operand.type == "identifier":
            self.taken.add(operand.start_byte)


class Java(TreeSitterLanguage):
    """Java, up to records and patterns."""

    name = "java"
    suffixes = (".java",)
    grammar = staticmethod(tree_sitter_java.language)
    query = read_query(__package__)
    family = "jvm"
    builtins, builtin_members = read_builtins(__package__)
    typed_chains = True
    modules = NamespaceModules
    file = _File
