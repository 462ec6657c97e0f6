"""The symbols of a Go file, by one tree-sitter query and one pass over its captures.

The pass tracks the names bound in the surrounding functions and blocks, each with the chain of its type
(`spark_udfs.depsort.type_chains`): with a parameter `c *Context`, `c.engine.Run` is the reference
`Context.engine.Run`. A collection has the chain of its elements, a function the chain of its first result.

Chains have at most MAX_CHAIN members; `spark_udfs.depsort.syntax` bounds the rest.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

import tree_sitter_go
from tree_sitter import Node

from spark_udfs.depsort.captured_file import field_of, first_child
from spark_udfs.depsort.languages.chains import MAX_NESTING
from spark_udfs.depsort.languages.data import read_builtins, read_query
from spark_udfs.depsort.languages.go.build_constraints import build_line
from spark_udfs.depsort.languages.go.chains import GoChains
from spark_udfs.depsort.languages.go.modules import GoModules
from spark_udfs.depsort.languages.tree_sitter_language import TreeSitterLanguage
from spark_udfs.depsort.model import FileSymbols, Import
from spark_udfs.depsort.scopes import Names
from spark_udfs.depsort.syntax import Captures

_VERSION = re.compile(r"^v\d+$")
_STEM = re.compile(r"[\w]+")


class _File(GoChains):
    """The captures of one Go file, turned into symbols."""

    def __init__(self, source: bytes, captures: Captures) -> None:
        super().__init__(source, captures)
        self._chained = 0  # end of the last chain
        self._switched: list[tuple[int, str]] = []  # type switches around: end, bound name

    def symbols(self) -> FileSymbols:
        """Everything the file defines, imports and uses, and the condition under which it is built."""
        return replace(super().symbols(), build=build_line(self.source))

    # Captures

    def on_package(self, node: Node) -> None:
        self.package = self.text(node)

    def on_import(self, node: Node) -> None:
        path, name = node.child_by_field_name("path"), node.child_by_field_name("name")
        if path is None:
            return
        module = self.text(path).strip('"`')
        if not module or module == "C":
            return
        alias = None if name is None else self.text(name)
        if alias == ".":
            self.imports[Import(module, "*", None)] += 1
        else:
            self.imports[Import(module, None, "" if alias == "_" else alias or _package_name(module))] += 1

    def on_function(self, node: Node) -> None:
        name = node.child_by_field_name("name")
        scope: Names = {}
        if node.type == "method_declaration":
            owner = self._receiver(node, scope)
            if owner and name is not None and not self.scopes:
                self._define(f"{owner}.{self.text(name)}", node.child_by_field_name("result"))
        elif name is not None:
            self.taken.add(name.start_byte)
            if not self.scopes and (text := self.text(name)) not in ("init", "_"):
                self._define(text, node.child_by_field_name("result"))
        self.enter(node, scope)

    def _define(self, name: str, result: Node | None) -> None:
        self.define(name, self.type_chain(self.first_result(result)))

    def _receiver(self, node: Node, scope: Names) -> str | None:
        """The type that a method belongs to; binds its type parameters in the method."""
        of_type = field_of(first_child(node.child_by_field_name("receiver")), "type")
        while of_type is not None and of_type.type in ("pointer_type", "parenthesized_type"):
            of_type = first_child(of_type)
        if of_type is not None and of_type.type == "generic_type":
            arguments = of_type.child_by_field_name("type_arguments")
            for argument in arguments.named_children if arguments is not None else ():
                scope[self.text(argument)] = None
            of_type = of_type.child_by_field_name("type")
        return self.text(of_type) if of_type is not None and of_type.type == "type_identifier" else None

    def on_block(self, node: Node) -> None:
        scope: Names = {}
        if node.type == "type_switch_statement":
            alias = node.child_by_field_name("alias")
            if alias is not None and alias.named_child_count:
                self.taken.add(alias.named_children[0].start_byte)
                self._switched.append((node.end_byte, self.text(alias)))
        elif node.type in ("type_case", "default_case"):
            while self._switched and self._switched[-1][0] <= node.start_byte:
                self._switched.pop()
            if self._switched:
                types = node.children_by_field_name("type")
                scope[self._switched[-1][1]] = self.type_chain(types[0]) if len(types) == 1 else None
        self.enter(node, scope)

    def on_type_spec(self, node: Node) -> None:
        name, of_type = node.child_by_field_name("name"), node.child_by_field_name("type")
        if name is None or of_type is None:
            return
        self.taken.add(name.start_byte)
        text = self.text(name)
        if self.scopes:
            self.scopes[-1][1][text] = None
            self.enter(node, {})
            return
        self.enter(node, {})
        self.bind_type_parameters(node)
        self.definitions[text] += 1
        bases = self.bases.setdefault(text, [])
        if of_type.type == "struct_type":
            self._fields(text, of_type, bases)
        elif of_type.type == "interface_type":
            self._methods(text, of_type, bases)
        elif (chain := self.type_chain(of_type)) is not None:
            bases.append(chain)
        if not bases:
            del self.bases[text]

    def _fields(self, owner: str, node: Node, bases: list[str]) -> None:
        for fields in node.named_children:
            for field in fields.named_children:
                if field.type != "field_declaration":
                    continue
                chain = self.type_chain(field.child_by_field_name("type"))
                names = [self.text(name) for name in field.children_by_field_name("name")]
                if not names and chain:
                    bases.append(chain)
                    names = [chain.rpartition(".")[2]]
                for name in names:
                    self.define(f"{owner}.{name}", chain)

    def _methods(self, owner: str, node: Node, bases: list[str]) -> None:
        for element in node.named_children:
            name = element.child_by_field_name("name")
            if element.type == "method_elem" and name is not None:
                self._define(f"{owner}.{self.text(name)}", element.child_by_field_name("result"))
            elif element.type == "type_elem" and element.named_child_count == 1:
                chain = self.type_chain(element)
                if chain:
                    bases.append(chain)

    def on_type_parameter(self, node: Node) -> None:
        if not self.scopes:
            return
        chain = self.type_chain(node.child_by_field_name("type"))
        for name in node.children_by_field_name("name"):
            self.bind(name, chain)

    def on_parameter(self, node: Node) -> None:
        names = node.children_by_field_name("name")
        chain = self.type_chain(node.child_by_field_name("type")) if names else None
        for name in names:
            self.bind(name, chain)

    def on_short(self, node: Node) -> None:
        self._bind_values(node, node.child_by_field_name("left"), node.child_by_field_name("right"))

    def _bind_values(self, node: Node, left: Node | None, right: Node | None) -> None:
        names = [] if left is None else left.named_children
        values = [] if right is None else right.named_children
        bound: Names = {}
        for position, name in enumerate(names):
            if name.type != "identifier":
                continue
            self.taken.add(name.start_byte)
            bound[self.text(name)] = self._value_at(position, len(names), values)
        self.bind_after(node, bound)

    def _value_at(self, position: int, n_names: int, values: Sequence[Node]) -> str | None:
        """The chain of the value of one name; of a call with several results only the first is known."""
        is_known = position < len(values) and (position == 0 or len(values) == n_names)
        return self.value_chain(values[position]) if is_known else None

    def on_spec(self, node: Node) -> None:
        names = node.children_by_field_name("name")
        of_type, expression_list = node.child_by_field_name("type"), node.child_by_field_name("value")
        values = [] if expression_list is None else expression_list.named_children
        bound: Names = {}
        for position, name in enumerate(names):
            if name.type != "identifier":
                continue  # commas carry the same field name
            self.taken.add(name.start_byte)
            if of_type is not None:
                chain = self.type_chain(of_type)
            else:
                chain = self._value_at(position, len(names), values)
            text = self.text(name)
            if self.scopes:
                bound[text] = chain
            elif text != "_":
                self.define(text, chain)
        if bound:
            self.bind_after(node, bound)

    def on_range(self, node: Node) -> None:
        left, right = node.child_by_field_name("left"), node.child_by_field_name("right")
        if left is None or not any(child.type == ":=" for child in node.children):
            return
        names = left.named_children
        chain = self.value_chain(right)
        bound: Names = {}
        for position, name in enumerate(names):
            self.taken.add(name.start_byte)
            bound[self.text(name)] = chain if position == 1 else None
        self.bind_after(node, bound)

    def on_receive(self, node: Node) -> None:
        if any(child.type == ":=" for child in node.children):
            self._bind_values(node, node.child_by_field_name("left"), None)

    def on_key(self, node: Node) -> None:
        """A key of a composite literal: a field of the literal's type, unless that is a map."""
        above = node.parent
        for _ in range(MAX_NESTING):
            if above is None:
                return
            if above.type == "composite_literal":
                break
            if above.type not in ("literal_element", "keyed_element", "literal_value"):
                return
            above = above.parent
        if above is None:
            return
        of_type = above.child_by_field_name("type")
        if of_type is not None and of_type.type == "map_type":
            return
        chain = self.type_chain(of_type)
        name = self.text(node)
        self.taken.add(node.start_byte)
        if chain:
            self.references[f"{chain}.{name}"] += 1

    def on_selector(self, node: Node) -> None:
        field = node.child_by_field_name("field")
        if field is None or field.end_byte <= self._chained:
            return
        chain = self.value_chain(node)
        if chain is None:
            self.references[f".{self.text(field)}"] += 1
            return
        self.references[chain] += 1
        operand: Node | None = node
        while operand is not None and operand.type == "selector_expression":
            operand = operand.child_by_field_name("operand")
        if operand is not None and operand.type == "identifier":
            self.taken.add(operand.start_byte)
            self._chained = field.end_byte

    def on_qualified(self, node: Node) -> None:
        self.references[self.text(node)] += 1
        self.take_name(node)

    def on_name(self, node: Node) -> None:
        name = self.text(node)
        if name != "_":
            self.refer(name)


def _package_name(module: str) -> str:
    """The name of a package, guessed from its path: `a/b/v2` and `gopkg.in/b.v2` are b."""
    parts = module.split("/")
    last = parts[-2] if len(parts) > 1 and _VERSION.match(parts[-1]) else parts[-1]
    stem = _STEM.match(last.removeprefix("go-"))
    return stem[0] if stem else last


class Go(TreeSitterLanguage):
    """Go with generics."""

    name = "go"
    suffixes = (".go",)
    grammar = staticmethod(tree_sitter_go.language)
    query = read_query(__package__)
    family = "go"
    manifests = ("go.mod",)
    builtins, builtin_members = read_builtins(__package__)
    typed_chains = True
    modules = GoModules
    file = _File
