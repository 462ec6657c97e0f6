"""The imports of a JavaScript or TypeScript file: statements, calls, types and comments.

ES imports, `require` and `import()` with a string, `declare module "x"` in a module, `import("x")` and
`@import` of JSDoc, and the path references of scripts. The positions of imported names are recorded, because
they are not uses.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from functools import cached_property

from tree_sitter import Node

from spark_udfs.depsort.captured_file import CapturedFile
from spark_udfs.depsort.model import Import
from spark_udfs.depsort.ranges import Ranges
from spark_udfs.depsort.syntax import Captures

NAME = re.compile(rb"[\w$\x80-\xff]+")
_REFERENCE = re.compile(rb"""^///\s*<reference\s+path\s*=\s*["']([^"'\n]+)["']""", re.MULTILINE)
_TYPES = re.compile(rb"""^[ \t]*(?:/\*)?\*[^\n]*?\bimport\(\s*["']([^"'\n]+)["']\s*\)""", re.MULTILINE)
_TYPES_BY_NAME = re.compile(
    rb"""^[ \t]*/?\*[^\n]{0,500}?@import\s[^\n]{0,500}?\bfrom\s*["']([^"'\n]+)["']""", re.MULTILINE
)
EXPORTS = re.compile(rb"^(?:module\s*\.\s*)?exports(?:\s*\.\s*([\w$]+))?$")
_FUNCTIONS = {"function_declaration", "function_expression", "arrow_function", "method_definition"}


class JavaScriptImports(CapturedFile):
    """The captures of one file and the imports among them."""

    def __init__(self, source: bytes, captures: Captures) -> None:
        super().__init__(source, captures)
        self.imports: Counter[Import] = Counter()
        self.handled: set[int] = set()  # starts of names that are not uses
        self.is_module = bool(captures.get("import") or captures.get("export"))

    def read_imports(self) -> None:
        """Count every import, and find out whether the file is a module."""
        self._read_statements()
        self._read_requires()
        self._read_augmented()

    def nodes(self, name: str) -> list[Node]:
        return self.captures.get(name, [])

    def string(self, node: Node) -> str:
        return self.text(node)[1:-1]

    def field(self, node: Node, name: str) -> bytes | None:
        """The text of a child, without its quotes where it is a string."""
        child = node.child_by_field_name(name)
        if child is None:
            return None
        self.handled.add(child.start_byte)
        text = self.bytes_of(child)
        return text[1:-1] if child.type == "string" else text

    def _read_statements(self) -> None:
        for node in self.nodes("import"):
            source = node.child_by_field_name("source")
            clause = next((c for c in node.named_children if c.type.startswith("import_")), None)
            if clause is not None and clause.type == "import_require_clause":
                source = clause.child_by_field_name("source")
            if source is None:
                continue
            module = self.string(source)
            bindings = list(self._clause(module, clause)) if clause is not None else []
            self.imports.update(bindings or [Import(module, None, "")])
        for path in _REFERENCE.findall(self.source):
            text = decoded(path)
            self.imports[Import(text if text.startswith(".") else f"./{text}", "*", None)] += 1

        for mark, pattern in ((b"import(", _TYPES), (b"@import", _TYPES_BY_NAME)):
            if mark in self.source:
                paths = pattern.findall(self.source)
                self.imports.update(Import(decoded(path), None, "", True) for path in paths)

    def _clause(self, module: str, clause: Node) -> Iterator[Import]:
        for child in clause.named_children:
            if child.type == "identifier":
                self.handled.add(child.start_byte)
                name = None if clause.type == "import_require_clause" else "default"
                yield Import(module, name, self.text(child))
            elif child.type == "namespace_import" and child.named_children:
                self.handled.add(child.named_children[0].start_byte)
                yield Import(module, None, self.text(child.named_children[0]))
            elif child.type == "named_imports":
                yield from (
                    Import(module, decoded(name), decoded(alias)) for name, alias in self.specifiers(child)
                )

    def specifiers(self, clause: Node) -> Iterator[tuple[bytes, bytes]]:
        """The names of `{a, b as c}` with their aliases."""
        for child in clause.named_children:
            if child.type in ("import_specifier", "export_specifier"):
                name, alias = self.field(child, "name"), self.field(child, "alias")
                if name:
                    yield name, alias or name

    def _read_requires(self) -> None:
        """`require("x")` and `import("x")`, with the names that their results are bound to."""
        for node in self.nodes("required"):
            module = self.string(node)
            call = node.parent.parent if node.parent is not None else None
            if call is None or not module:
                continue
            self.is_module = True
            deferred = self._in_function(call.start_byte)
            bindings = list(self._result(module, call, deferred))
            self.imports.update(bindings or [Import(module, None, "", deferred)])

    def _read_augmented(self) -> None:
        """`declare module "x"`: a module with it adds to the exports of x."""
        if self.is_module:
            modules = (self.string(node) for node in self.nodes("augmented"))
            self.imports.update(Import(module, None, "") for module in modules)

    def _result(self, module: str, call: Node, deferred: bool) -> Iterator[Import]:
        expression, member = call, None
        above = expression.parent
        while above is not None and above.type in ("await_expression", "parenthesized_expression"):
            expression, above = above, above.parent
        if above is not None and above.type == "member_expression":
            member = self.field(above, "property")
            expression, above = above, above.parent
        if above is None:
            return
        name = None if member is None else decoded(member)
        if above.type == "variable_declarator":
            target = above.child_by_field_name("name")
        elif above.type == "assignment_expression":
            target = above.child_by_field_name("left")
            exported = None if target is None else EXPORTS.match(self.bytes_of(target))
            if exported and exported[1]:
                yield Import(module, name, decoded(exported[1]), deferred)
            elif exported and name is None:
                yield Import(module, "*", None, deferred)
                return
        elif above.type == "pair":
            key = self.field(above, "key")
            if key:
                yield Import(module, name, decoded(key), deferred)
            return
        else:
            return
        if target is not None and target.type == "identifier":
            self.handled.add(target.start_byte)
            yield Import(module, name, self.text(target), deferred)
        elif target is not None and target.type == "object_pattern" and name is None:
            for child in target.named_children:
                if child.type == "shorthand_property_identifier_pattern":
                    self.handled.add(child.start_byte)
                    yield Import(module, self.text(child), self.text(child), deferred)
                elif child.type == "pair_pattern":
                    key, bound = self.field(child, "key"), self.field(child, "value")
                    if key and bound and NAME.fullmatch(bound):
                        yield Import(module, decoded(key), decoded(bound), deferred)

    def _in_function(self, position: int) -> bool:
        return any(self.scopes.nodes[scope].type in _FUNCTIONS for scope in self.scopes.around(position))

    @cached_property
    def scopes(self) -> Ranges:
        return Ranges(self.nodes("scope"))


def decoded(name: bytes) -> str:
    return name.decode("utf-8", "replace")
