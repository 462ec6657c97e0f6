"""The symbols of a Kotlin file, by one tree-sitter query and one pass over its captures.

As in Java, names may be nested, inherited, or members of values (`spark_udfs.depsort.scopes`). In addition,
packages contain functions and properties, a companion's members belong to its class, and the type of a value
mostly comes from its initializer. An extension function is a definition of its package and, as `this.name`, a
member of every value (`spark_udfs.depsort.type_chains`).

An `expect` declaration at the top level is also a declaration, and its `actual` one refers to it. Java sees
the functions of a file with `@file:JvmName("Name")` as members of a class `Name`, which is a definition too.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import tree_sitter_kotlin
from tree_sitter import Node

from spark_udfs.depsort.captured_file import child_of_type, first_child, last_child
from spark_udfs.depsort.languages.data import read_builtins, read_query
from spark_udfs.depsort.languages.kotlin.chains import FIRST_CHILD, TYPES, KotlinChains
from spark_udfs.depsort.languages.namespaces import NamespaceModules
from spark_udfs.depsort.languages.tree_sitter_language import TreeSitterLanguage
from spark_udfs.depsort.model import FileSymbols, Import
from spark_udfs.depsort.scopes import Names
from spark_udfs.depsort.syntax import Captures
from spark_udfs.depsort.type_chains import EXPECTED, EXTENSION, HOLDS

MAX_BYTES = 250_000  # the grammar's time grows with the square of the number of one-line bodies: here 6 s


class _File(KotlinChains):
    """The captures of one Kotlin file, turned into symbols."""

    def __init__(self, source: bytes, captures: Captures) -> None:
        super().__init__(source, captures)
        self._expects: Counter[str] = Counter()
        self._java_class: str | None = None
        self._functions: set[str] = set()  # functions and properties of the package

    def symbols(self) -> FileSymbols:
        """Everything the file defines, imports and uses."""
        symbols = super().symbols()
        definitions = dict(symbols.definitions)
        if self._java_class is not None and self._functions:
            members = (f"{self._java_class}.{name}" for name in self._functions)
            definitions |= dict.fromkeys((self._java_class, *members), 1)
        return replace(
            symbols,
            definitions=dict(sorted(definitions.items())),
            declarations=dict(sorted(self._expects.items())),
        )

    # Captures: declarations

    def on_file_annotation(self, node: Node) -> None:
        """`@file:JvmName("Name")`."""
        call = first_child(node)
        annotation = first_child(call)
        if call is None or annotation is None or self.text(annotation) != "JvmName":
            return
        argument = first_child(last_child(call))
        content = first_child(first_child(argument))
        if content is not None and content.type == "string_content":
            self._java_class = self.text(content)

    def on_platform(self, node: Node) -> None:
        """`expect` or `actual` before a declaration at the top level."""
        modifiers = node.parent
        declaration = None if modifiers is None else modifiers.parent
        if declaration is None or declaration.parent is None or declaration.parent.type != "source_file":
            return
        name = declaration.child_by_field_name("name") or declaration.child_by_field_name("type")
        name = name or first_child(child_of_type(declaration, "variable_declaration"))
        if name is None:
            return
        if self.text(node) == "expect":
            self._expects[self.text(name)] += 1
        else:
            self.references[EXPECTED + self.text(name)] += 1

    def on_package(self, node: Node) -> None:
        self.package = self._dotted(node)

    def on_import(self, node: Node) -> None:
        children = node.named_children
        if not children:
            return
        dotted = self._dotted(children[0])
        alias = self._dotted(children[1]) if len(children) > 1 and children[1].type == "identifier" else None
        if self.text(node).rstrip().endswith("*"):
            self.imports[Import(dotted, "*", None)] += 1
            return
        module, _, name = dotted.rpartition(".")
        if module:
            self.imports[Import(module, name, alias or name)] += 1

    def _dotted(self, node: Node) -> str:
        self.taken.update([node.start_byte, *(part.start_byte for part in node.named_children)])
        return "".join(self.text(node).split()).replace("`", "")

    def on_class(self, node: Node) -> None:
        name = self.take_name(node)
        if name is None:
            return
        is_local = node.parent is not None and node.parent.type in ("block", "lambda_literal")
        dotted = self.named_class(self.text(name), is_local)
        self.enter(node, {})
        self.bind_type_parameters(node)
        for child in node.named_children:
            if child.type in ("class_body", "enum_class_body"):
                self._bodies[child.start_byte] = dotted
            elif child.type == "primary_constructor":
                self._properties(dotted, child)
        if bases := self.bases_of(node):
            self.bases[dotted] = bases

    def _properties(self, owner: str, node: Node) -> None:
        """Define the parameters of a primary constructor as members, with or without `val`."""
        for parameters in node.named_children:
            for parameter in parameters.named_children:
                name = child_of_type(parameter, "identifier")
                if name is not None:
                    chain = self.type_chain(child_of_type(parameter, *TYPES))
                    self.define(f"{owner}.{self.text(name)}", chain)

    def on_entry(self, node: Node) -> None:
        name = first_child(node)
        if name is not None and name.type == "identifier":
            self.define_constant(name)

    def on_body(self, node: Node) -> None:
        """The body of a class, of its companion, which adds to the class, or of an anonymous object."""
        dotted, above = self._bodies.get(node.start_byte), node.parent
        if dotted is None and above is not None and above.type == "companion_object":
            dotted = self.owner
            if bases := self.bases_of(above):
                self.bases.setdefault(dotted, []).extend(bases)
        if dotted is None:
            dotted = self.unnamed()
            bases = [] if above is None else self.bases_of(above)
            if above is not None and above.type == "enum_entry":
                bases = [self.owner]
            if bases:
                self.bases[dotted] = bases
        self.enter(node, {}, dotted)

    def _is_local(self, node: Node) -> bool:
        above = node.parent
        return above is not None and above.type not in ("source_file", "class_body", "enum_class_body")

    def on_function(self, node: Node) -> None:
        name = self.take_name(node)
        scope: Names = {}
        types: list[Node] = []
        receiver = None
        for child in node.named_children:
            if child.type in TYPES and name is not None and child.start_byte < name.start_byte:
                receiver = child
            elif child.type in TYPES:
                types.append(child)
        if name is not None and self._is_local(node):
            if self.scopes:
                self.scopes[-1][1][self.text(name)] = self.type_chain(types[0]) if types else None
            name = None
        owner = self.owner
        self.enter(node, scope)
        self.bind_type_parameters(node)
        chain = self.type_chain(types[0]) if types else None
        if receiver is not None and (receiver_chain := self.type_chain(receiver)):
            inside = self.unnamed()  # read the body as that of a class derived from the receiver's
            self.bases[inside] = [receiver_chain.lstrip(HOLDS)]
            self.scopes[-1] = (node.end_byte, scope, inside)
        if name is None:
            return
        body = last_child(node)
        if not types and body is not None and body.type == "function_body" and body.named_child_count == 1:
            chain = self.value_chain(body.named_children[0])
        self._member(owner, self.text(name), chain, receiver is not None)

    def _member(self, owner: str, name: str, chain: str | None, extends: bool) -> None:
        self.define(f"{owner}.{name}" if owner else name, chain)
        if not owner:
            self._functions.add(name)
        if extends:
            self.define(f"{EXTENSION}.{name}", chain)

    def on_property(self, node: Node) -> None:
        variable, of_type, expression, receiver = None, None, None, None
        for child in node.named_children:
            if child.type in ("variable_declaration", "multi_variable_declaration"):
                variable = child
            elif child.type in TYPES and variable is None:
                receiver = child
            elif child.type == "property_delegate":
                expression = None
            elif variable is not None and child.type not in ("getter", "setter", "type_constraints"):
                expression = child
        if variable is None:
            return
        names = [identifier for identifier in variable.named_children if identifier.type == "identifier"]
        for part in variable.named_children:
            if part.type == "variable_declaration" and part.named_child_count:
                names.append(part.named_children[0])
            elif part.type in TYPES:
                of_type = part
        chain = (
            self.value_chain(expression) if of_type is None and len(names) == 1 else self.type_chain(of_type)
        )
        for name in names:
            self.taken.add(name.start_byte)
        if self._is_local(node):
            self.bind_after(node, {self.text(name): chain for name in names})
        else:
            for name in names:
                self._member(self.owner, self.text(name), chain, receiver is not None)

    def on_alias(self, node: Node) -> None:
        name = self.take_name(node, "type")
        if name is not None:
            self.define(self.text(name), None)
            if chain := self.type_chain(node.named_children[-1]):
                self.bases[self.text(name)] = [chain]

    def on_type_parameter(self, node: Node) -> None:
        name = child_of_type(node, "identifier")
        if name is not None and name.start_byte not in self.taken:
            self.bind(name, self.type_chain(child_of_type(node, *TYPES)))

    # Captures: code

    def on_lambda(self, node: Node) -> None:
        self.enter(node, {"it": None})
        self._bind_variables(child_of_type(node, "lambda_parameters"), None)

    def _bind_variables(self, node: Node | None, chain: str | None) -> None:
        pending = list(node.named_children) if node is not None else []
        for variable in pending:
            if variable.type == "multi_variable_declaration":
                pending.extend(variable.named_children)
            elif variable.type == "variable_declaration" and variable.named_child_count:
                of_type = variable.named_children[-1]
                declared = self.type_chain(of_type) if of_type.type in TYPES else chain
                self.bind(variable.named_children[0], declared)

    def on_block(self, node: Node) -> None:
        self.enter(node, {})
        if node.type == "for_statement":
            expression = node.named_children[1] if node.named_child_count > 1 else None
            single = node.named_child_count > 0 and node.named_children[0].type == "variable_declaration"
            self._bind_variables(node, self.value_chain(expression) if single else None)
        elif node.type == "when_expression" and node.named_child_count:
            subject = node.named_children[0]
            if subject.type == "when_subject" and subject.named_child_count == 2:
                self._bind_variables(subject, self.value_chain(subject.named_children[1]))
        elif node.type == "catch_block" and node.named_child_count > 1:
            self.bind(node.named_children[0], self.type_chain(node.named_children[1]))

    def on_parameter(self, node: Node) -> None:
        name = child_of_type(node, "identifier")
        if name is not None:
            self.bind(name, self.type_chain(child_of_type(node, *TYPES)))

    def on_type(self, node: Node) -> None:
        names = [child for child in node.named_children if child.type == "identifier"]
        if not names:
            return
        self.taken.update(name.start_byte for name in names)
        texts = [self.text(name) for name in names]
        if len(names) == 1:
            self.refer(texts[0])
        elif (start := self.root(texts[0])) is not None:
            self.references[".".join([start, *texts[1:]])] += 1

    def on_key(self, node: Node) -> None:
        """The name of a named argument: no reference."""
        if node.parent is not None and any(child.type == "=" for child in node.parent.children):
            self.taken.add(node.start_byte)

    def on_reference(self, node: Node) -> None:
        """`Foo::bar`, `::bar`."""
        parts = node.named_children
        if len(parts) == 2 and parts[1].type == "identifier":
            self.taken.add(parts[1].start_byte)
            start = self.type_chain(parts[0]) if parts[0].type in TYPES else self.value_chain(parts[0])
            if start is not None:
                self.references[f"{start}.{self.text(parts[1])}"] += 1

    def on_chain(self, node: Node) -> None:
        if node.named_child_count != 2:
            return
        name = node.named_children[1]
        self.taken.add(name.start_byte)
        if not self.count_chain(node, name, self.text(name)):
            return
        operand: Node | None = node
        while operand is not None and (
            operand.type in FIRST_CHILD or operand.type == "navigation_expression"
        ):
            operand = first_child(operand)
        if operand is not None and operand.type == "identifier":
            self.taken.add(operand.start_byte)


class Kotlin(TreeSitterLanguage):
    """Kotlin, in one family with Java."""

    name = "kotlin"
    suffixes = (".kt", ".kts")
    grammar = staticmethod(tree_sitter_kotlin.language)
    query = read_query(__package__)
    max_bytes = MAX_BYTES
    family = "jvm"
    builtins, builtin_members = read_builtins(__package__)
    typed_chains = True
    modules = NamespaceModules
    file = _File
