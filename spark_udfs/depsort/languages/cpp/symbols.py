"""The symbols of a C++ file: declarations from its outline, by a tree-sitter query, and words from its text.

A member `Class.member` is a definition where it has a body, also outside its class, and a declaration where
the class only declares it. A class without a body is a declaration. Namespaces are left out of names.
Static functions and the content of unnamed namespaces are private. A name after `::` may be a member or
belong to a namespace, so it counts as both.
"""

from __future__ import annotations

import re
from functools import cached_property

import tree_sitter_cpp
from tree_sitter import Node

from factory import _native
from spark_udfs.depsort.captured_file import first_child
from spark_udfs.depsort.languages.c import text as c_text
from spark_udfs.depsort.languages.c.family import MAX_OUTLINE, CFamily, Outline, symbols_of
from spark_udfs.depsort.languages.data import read_builtins, read_query
from spark_udfs.depsort.model import FileSymbols
from spark_udfs.depsort.syntax import Captures, Syntax

_BUILTINS, _BUILTIN_MEMBERS = read_builtins(__package__)
_KEYWORDS = frozenset(builtin.encode() for builtin in _BUILTINS)
_MEMBERS = frozenset(member.encode() for member in _BUILTIN_MEMBERS)
_HEADERS = (".h", ".hh", ".hpp", ".hxx", ".h++", ".inl", ".ipp", ".tpp", ".tcc", ".inc")
_CLASSES = frozenset({"class_specifier", "struct_specifier", "union_specifier"})
_OUTSIDE = frozenset(
    {"translation_unit", "declaration_list", "template_declaration", "field_declaration_list"}
)
_NAMES = frozenset({"identifier", "type_identifier", "field_identifier", "destructor_name"})


class Cpp(CFamily):
    """C++, by the suffix of a file."""

    name = "cpp"
    suffixes = tuple(
        ".cc .cpp .cxx .c++ .hpp .hh .hxx .h++ .inl .ipp .tpp .tcc .ixx .cppm".split()  # noqa: SIM905
    )

    def extract(self, source: bytes, path: str) -> FileSymbols:
        """The symbols of one file; of its outline the first MAX_OUTLINE bytes are parsed."""
        return self.read(_native.c_without_comments(source), path)

    def read(self, text: bytes, path: str) -> FileSymbols:
        """The symbols of a text without comments."""
        text, macros, expansions = c_text.macros(text)
        outline = _native.c_outline(text)
        declared = _Declared(outline, not path.endswith(_HEADERS))
        declared.read(self._syntax.captures(outline[:MAX_OUTLINE]) or {})
        declared.definitions.update(macros)
        for name in _EXTERN.findall(outline):  # hidden from the tree by macros without a semicolon
            if name not in declared.definitions and name not in declared.declarations:
                declared.declarations[name] += 1
        return symbols_of(text, declared, expansions, _KEYWORDS, _MEMBERS)

    @cached_property
    def _syntax(self) -> Syntax:
        return Syntax(tree_sitter_cpp.language(), read_query(__package__))


class _Declared(Outline):
    def read(self, captures: Captures) -> None:
        for node in captures.get("type", ()):
            self.definitions[_last(self.bytes_of(node))] += 1
        for node in captures.get("typedef", ()):
            for declarator in node.children_by_field_name("declarator"):
                name, _, _ = self._named(declarator)
                if name:
                    self.definitions[name] += 1
        for node in captures.get("function", ()):
            name, owner, _ = self._named(node.child_by_field_name("declarator"))
            if name:
                self._define(node, name, owner)
        for node in captures.get("declaration", ()):
            self._declaration(node)
        for node in captures.get("named", ()):
            around = node.parent.parent if node.parent is not None else None
            if around is not None and around.type in _OUTSIDE:
                self.declarations[self.bytes_of(node)] += 1

    def _declaration(self, node: Node) -> None:
        around = node.parent
        if around is None or around.type == "compound_statement":
            return
        external = self.is_stored(node, b"extern")
        for declarator in node.children_by_field_name("declarator"):
            name, owner, is_function = self._named(declarator)
            if not name:
                continue
            if is_function or (external and declarator.type != "init_declarator"):
                owner = owner or self._class_around(node)
                self.declarations[owner + b"." + name if owner else name] += 1
            elif node.type == "declaration":
                self._define(node, name, owner)

    def _define(self, node: Node, name: bytes, owner: bytes) -> None:
        owner = owner or self._class_around(node)
        if owner:
            self.definitions[owner + b"." + name] += 1
            return
        self.definitions[name] += 1
        if self.owns and (self.is_stored(node, b"static") or self._unnamed_around(node)):
            self.private.add(name)

    def _class_around(self, node: Node) -> bytes:
        around = node.parent
        while around is not None and around.type in ("field_declaration_list", "template_declaration"):
            around = around.parent
        if around is None or around.type not in _CLASSES:
            return b""
        name = around.child_by_field_name("name")
        return b"" if name is None else _last(self.bytes_of(name))

    def _unnamed_around(self, node: Node) -> bool:
        around = node.parent
        while around is not None:
            if around.type == "namespace_definition" and around.child_by_field_name("name") is None:
                return True
            around = around.parent
        return False

    def _named(self, declarator: Node | None) -> tuple[bytes, bytes, bool]:
        """The declared name, the class before `::`, and whether it names a function."""
        is_function = False
        owner = b""
        while declarator is not None:
            kind = declarator.type
            if kind in _NAMES:
                return _last(self.bytes_of(declarator)), owner, is_function
            if kind == "qualified_identifier":
                scope = declarator.child_by_field_name("scope")
                owner = b"" if scope is None else _last(self.bytes_of(scope))
                declarator = declarator.child_by_field_name("name")
                continue
            if kind == "function_declarator":
                is_function = True
            elif kind in ("pointer_declarator", "reference_declarator", "parenthesized_declarator"):
                is_function = False
            inner = declarator.child_by_field_name("declarator") or declarator.child_by_field_name("name")
            if inner is None and kind in (
                "parenthesized_declarator",
                "reference_declarator",
                "attributed_declarator",
            ):
                inner = first_child(declarator)
            declarator = inner
        return b"", b"", False


_EXTERN = re.compile(rb"^[ \t]*+extern[ \t]++(?:[\w:*&<>]++[ \t]++){1,6}[*&]*+(\w++)[ \t]*+\([^;{}()]", re.M)
_ARGUMENTS = re.compile(rb"\s*<.*", re.DOTALL)


def _last(name: bytes) -> bytes:
    """The last part of `a::b<c>`, without arguments and `~`."""
    return _ARGUMENTS.sub(b"", name).rpartition(b"::")[2].strip().lstrip(b"~")
