"""The symbols of a C file: declarations from its outline, by a tree-sitter query, and words from its text.

A definition is a function with a body, a variable, a type with its members, a `typedef`, an enumerator or a
macro. Types, macros, and static functions and variables are private to a `.c` file. A prototype, an `extern`
variable and `struct x` without members are declarations, defined elsewhere. Every other word is a reference,
except keywords and names that the file only binds as parameters, members or local variables.

A `.h` file that contains C++ is read as C++.
"""

from __future__ import annotations

import re
from functools import cached_property

import tree_sitter_c
from tree_sitter import Node

from factory import _native
from spark_udfs.depsort.captured_file import first_child
from spark_udfs.depsort.languages.c import text as c_text
from spark_udfs.depsort.languages.c.family import MAX_OUTLINE, CFamily, Outline, symbols_of
from spark_udfs.depsort.languages.cpp.symbols import Cpp
from spark_udfs.depsort.languages.data import read_names, read_query
from spark_udfs.depsort.model import FileSymbols
from spark_udfs.depsort.syntax import Captures, Syntax

_KEYWORDS = frozenset(keyword.encode() for keyword in read_names(__package__, "builtins.txt"))
_CPP_HEADER = re.compile(
    rb"^[ \t]*(?:class|namespace|template|using|public:|private:|protected:)\b|\bstd::", re.M
)


class C(CFamily):
    """C, and the headers of C++ that end in `.h`."""

    name = "c"
    suffixes = (".c", ".h")

    def extract(self, source: bytes, path: str) -> FileSymbols:
        """The symbols of one file; of its outline the first MAX_OUTLINE bytes are parsed."""
        text = _native.c_without_comments(source)
        if path.endswith(".h") and _CPP_HEADER.search(text):
            return self._cpp.read(text, path)
        return self.read(text, path)

    def read(self, text: bytes, path: str) -> FileSymbols:
        """The symbols of a text without comments."""
        text, macros, expansions = c_text.macros(text)
        outline, definitions, announced, static = _native.c_functions(text)
        declared = _Declared(outline, path.endswith(".c"))
        declared.read(self._syntax.captures(outline[:MAX_OUTLINE]) or {})
        declared.definitions.update(definitions)
        declared.declarations.update(announced)
        if declared.owns:
            declared.private.update(static, macros)
        for name in declared.private:
            del declared.declarations[name]
        declared.definitions.update(macros)
        return symbols_of(text, declared, expansions, _KEYWORDS)

    @cached_property
    def _cpp(self) -> Cpp:
        return Cpp()

    @cached_property
    def _syntax(self) -> Syntax:
        return Syntax(tree_sitter_c.language(), read_query(__package__))


class _Declared(Outline):
    def read(self, captures: Captures) -> None:
        for node in captures.get("type", ()):
            self.definitions[self.bytes_of(node)] += 1
        if self.owns:
            self.private |= self.definitions.keys()
        for node in captures.get("typedef", ()):
            for declarator in node.children_by_field_name("declarator"):
                if (name := _named(declarator)[0]) is not None:
                    self.definitions[self.bytes_of(name)] += 1
        for node in captures.get("function", ()):
            name, is_function = _named(node.child_by_field_name("declarator"))
            if name is not None:
                self._define(node, name)
        for node in captures.get("declaration", ()):
            if node.parent is None or node.parent.type == "compound_statement":
                continue
            external = self.is_stored(node, b"extern")
            for declarator in node.children_by_field_name("declarator"):
                name, is_function = _named(declarator)
                if name is None:
                    continue
                if is_function or (external and declarator.type != "init_declarator"):
                    self.declarations[self.bytes_of(name)] += 1
                else:
                    self._define(node, name)

    def _define(self, node: Node, name: Node) -> None:
        text = self.bytes_of(name)
        self.definitions[text] += 1
        if self.owns and self.is_stored(node, b"static"):
            self.private.add(text)


def _named(declarator: Node | None) -> tuple[Node | None, bool]:
    """The name a declarator declares, and whether it is a function's."""
    is_function = False
    while declarator is not None:
        if declarator.type in ("identifier", "type_identifier"):
            return declarator, is_function
        is_function = declarator.type == "function_declarator"
        inner = declarator.child_by_field_name("declarator")
        if inner is None and declarator.type in ("parenthesized_declarator", "attributed_declarator"):
            inner = first_child(declarator)
        declarator = inner
    return None, False
