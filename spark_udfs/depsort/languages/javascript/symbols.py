"""The symbols of a JavaScript or TypeScript file: ES modules, CommonJS, and scripts that share globals.

A module's definitions are the names that it exports (such as `default`) and defines; a name that it
re-exports is an import. Its other top-level names are `private`. A file without imports and exports is a
script: its top-level names are global and its `package` is None. The `package` of a module is MODULE, or
GLOBAL for a module with `declare global`.

`require` and `import()` count if their argument is a string. Types count like other names, and an import of
types alone is an import: a reader needs it to understand the file. Names in comments do not count.
"""

from __future__ import annotations

import re
from abc import abstractmethod
from collections import Counter
from collections.abc import Iterator, Mapping

import tree_sitter_javascript
import tree_sitter_typescript
from tree_sitter import Node

from spark_udfs.depsort.languages.data import read_builtins, read_query
from spark_udfs.depsort.languages.javascript.imports import EXPORTS, NAME, JavaScriptImports, decoded
from spark_udfs.depsort.languages.javascript.modules import GLOBAL, MODULE, JavaScriptModules
from spark_udfs.depsort.model import FileSymbols, Import, Language, counted_imports
from spark_udfs.depsort.ranges import Ranges
from spark_udfs.depsort.syntax import Captures, Syntax
from spark_udfs.depsort.type_chains import EXTENSION

MAX_CHAIN = 8  # parts of a dotted reference
MAX_LINE = 5_000  # mean bytes per line; beyond is minified code without meaningful names

_TYPED = read_query(__package__, "common.scm", "typescript.scm")
_JAVASCRIPT = Syntax(
    tree_sitter_javascript.language(), read_query(__package__, "common.scm", "javascript.scm")
)
_TYPESCRIPT = Syntax(tree_sitter_typescript.language_typescript(), _TYPED)
_TSX = Syntax(tree_sitter_typescript.language_tsx(), _TYPED)
_CHAIN = re.compile(rb"[\w$\x80-\xff]+(?:\s*\??\.\s*[\w$\x80-\xff]+)*")
_PROTOTYPE = re.compile(rb"^([\w$]+)\s*\.\s*(?:prototype\s*\.\s*)?([\w$]+)$")
_ON_GLOBAL = re.compile(rb"^(?:window|globalThis|global|self)\s*\.\s*([\w$]+)$")


class _EcmaScript(Language):
    """The common part of JavaScript and TypeScript."""

    family = "javascript"
    manifests = ("package.json", "tsconfig.json", "jsconfig.json", "tsconfig.base.json")
    builtins, builtin_members = read_builtins(__package__)
    modules = JavaScriptModules

    def extract(self, source: bytes, path: str) -> FileSymbols:
        """The symbols of one file; empty where it is minified or its syntax tree is out of bounds."""
        if len(source) > MAX_LINE * (source.count(b"\n") + 1):
            return FileSymbols()
        captures = self._syntax(source, path).captures(source)
        return FileSymbols() if captures is None else _File(source, captures).symbols()

    @abstractmethod
    def _syntax(self, source: bytes, path: str) -> Syntax:
        """The grammar of a file, with its query."""


class JavaScript(_EcmaScript):
    """JavaScript with JSX, and with types where the file is marked `@flow`."""

    name = "javascript"
    suffixes = (".js", ".jsx", ".mjs", ".cjs", ".es6")

    def _syntax(self, source: bytes, path: str) -> Syntax:
        return _TSX if b"@flow" in source[:1_000] else _JAVASCRIPT


class TypeScript(_EcmaScript):
    """TypeScript, its declaration files, and TSX."""

    name = "typescript"
    suffixes = (".ts", ".tsx", ".mts", ".cts")

    def _syntax(self, source: bytes, path: str) -> Syntax:
        return _TSX if path.endswith("x") else _TYPESCRIPT


class _File(JavaScriptImports):
    """The captures of one file, turned into symbols."""

    def __init__(self, source: bytes, captures: Captures) -> None:
        super().__init__(source, captures)
        self._definitions: Counter[bytes] = Counter()
        self._exports: dict[bytes, None] = {}

    def symbols(self) -> FileSymbols:
        """Everything the file defines, imports and uses."""
        self.read_imports()
        bound = {binding.binds: binding for binding in self.imports if binding.binds}
        top = self._read_top()
        self._read_exports(bound)
        self._read_assignments(bound)
        self._read_members()
        global_names = {self.bytes_of(node) for node in self.nodes("global")}
        for name in global_names:
            self._definitions[name] += 1
        references = self._references({name.encode() for name in bound}, top | global_names)
        private = sorted(top - self._exports.keys() - global_names) if self.is_module else []
        return FileSymbols(
            {decoded(name): n for name, n in sorted(self._definitions.items())},
            counted_imports(self.imports),
            {decoded(name): n for name, n in sorted(references.items())},
            tuple(decoded(name) for name in self._exports if name != b"default") if self._exports else None,
            (GLOBAL if global_names else MODULE) if self.is_module else None,
            private=tuple(decoded(name) for name in private),
        )

    # Definitions

    def _read_top(self) -> set[bytes]:
        """The top-level names of the file without its imports."""
        imported = {binding.binds for binding in self.imports}
        names = set()
        for capture in ("top", "exported"):
            for node in self.nodes(capture):
                for name in self._pattern(node):
                    text = self.bytes_of(name)
                    self.handled.add(name.start_byte)
                    if decoded(text) in imported:
                        continue
                    names.add(text)
                    self._definitions[text] += 1
                    if capture == "exported":
                        self._exports[text] = None
        return names

    def _pattern(self, node: Node) -> Iterator[Node]:
        """The names that a declaration binds, several in a pattern `{a, b: [c]}`."""
        pending = [node]
        while pending:
            node = pending.pop()
            if node.type in ("object_pattern", "array_pattern", "rest_pattern"):
                pending.extend(reversed(node.named_children))
            elif node.type in ("pair_pattern", "assignment_pattern", "object_assignment_pattern"):
                part = node.child_by_field_name("value" if node.type == "pair_pattern" else "left")
                if part is not None:
                    pending.append(part)
            elif NAME.fullmatch(self.bytes_of(node)):
                yield node

    def _read_exports(self, bound: Mapping[str, Import]) -> None:
        for node in self.nodes("export"):
            source = node.child_by_field_name("source")
            module = None if source is None else self.string(source)
            kinds = {child.type: child for child in node.children}
            if module is not None and "namespace_export" in kinds:
                alias = self.bytes_of(kinds["namespace_export"].named_children[0])
                self._pass_on(Import(module, None, decoded(alias)), alias)
            elif module is not None and "*" in kinds:
                self.imports[Import(module, "*", None)] += 1
            elif "export_clause" in kinds:
                for name, alias in self.specifiers(kinds["export_clause"]):
                    if module is not None:
                        self._pass_on(Import(module, decoded(name), decoded(alias)), alias)
                    else:
                        self._export(name, alias, bound)
            elif "default" in kinds or "=" in kinds:
                default = node.child_by_field_name("value") or next(
                    (child for child in node.named_children if child.type == "identifier"), None
                )
                name = b"" if default is None or default.type != "identifier" else self.bytes_of(default)
                self._export(name, b"default", bound)

    def _export(self, name: bytes, alias: bytes, bound: Mapping[str, Import]) -> None:
        """Export the local `name` as `alias`."""
        binding = bound.get(decoded(name))
        if binding is not None:
            if name != alias:
                self._pass_on(Import(binding.module, binding.name, decoded(alias), binding.deferred), alias)
        elif name != alias:
            self._definitions[alias] += 1
        self._exports[alias] = None

    def _pass_on(self, binding: Import, alias: bytes) -> None:
        self.imports[binding] += 1
        self._exports[alias] = None

    def _read_assignments(self, bound: Mapping[str, Import]) -> None:
        """`exports.a = ...`, `module.exports = {a, b: c}`, `A.prototype.b = ...`, `window.a = ...`."""
        for node in self.nodes("assigned"):
            text = self.bytes_of(node)
            exported = EXPORTS.match(text)
            if exported is None:
                if match := _PROTOTYPE.match(text):
                    if _ON_GLOBAL.match(text) and not self.is_module:
                        self._definitions[match[2]] += 1
                    elif match[1] in self._definitions and match[1] != b"this":
                        self._definitions[b".".join(match.groups())] += 1
                continue
            self.is_module = True
            expression = None if node.parent is None else node.parent.child_by_field_name("right")
            if exported[1]:
                if decoded(exported[1]) not in bound:
                    self._definitions[exported[1]] += 1
            elif expression is not None and expression.type == "object":
                for child in expression.named_children:
                    name = child if child.type == "shorthand_property_identifier" else None
                    name = name or child.child_by_field_name("key") or child.child_by_field_name("name")
                    if name is not None and self.text(name) not in bound:
                        self._definitions[self.bytes_of(name)] += 1

    def _read_members(self) -> None:
        """The methods of top-level classes and interfaces."""
        classes = Ranges(self.nodes("class"))
        for node in self.nodes("method"):
            around = classes.innermost(node.start_byte)
            owner = None if around < 0 else classes.nodes[around].child_by_field_name("name")
            name = self.bytes_of(node)
            if owner is not None and name != b"constructor" and self.bytes_of(owner) in self._definitions:
                self._definitions[self.bytes_of(owner) + b"." + name] += 1
        self._read_augmentations()

    def _read_augmentations(self) -> None:
        """Functions that a module adds to another's interfaces; any file with such an object sees them."""
        added = Ranges(self.nodes("augmentation")) if self.is_module else None
        for node in self.nodes("offered") if added else ():
            if added is not None and added.innermost(node.start_byte) >= 0:
                self._definitions[f"{EXTENSION}.".encode() + self.bytes_of(node)] += 1

    # References

    def _references(self, roots: set[bytes], own: set[bytes]) -> Counter[bytes]:
        """Uses of imported and top-level names, and of names that the file does not bind."""
        bound = self.nodes("bound")
        local = {self.bytes_of(node) for node in bound if node.start_byte not in self.handled}
        handled = self.handled | {node.start_byte for node in bound}
        hiding: dict[bytes, set[int]] = {}
        for node in bound:
            if (name := self.bytes_of(node)) in roots and node.start_byte not in self.handled:
                hiding.setdefault(name, set()).add(self.scopes.innermost(node.start_byte))
        uses: Counter[bytes] = Counter()
        chain_ends = set()
        for node in self.nodes("name"):
            start = node.start_byte
            if start in handled:
                continue
            name = self.source[start : node.end_byte]
            if name in roots:
                if name in hiding and not hiding[name].isdisjoint(self.scopes.around(start)):
                    continue
                chain = _CHAIN.match(self.source, start)
                if chain and chain.end() > node.end_byte:
                    parts = NAME.findall(chain[0])
                    chain_ends.add(chain.end())
                    name = b".".join(parts[:MAX_CHAIN])
            elif name in local and name not in own:
                continue
            uses[name] += 1
        for node in self.nodes("called"):
            if node.end_byte not in chain_ends:
                uses[b"." + self.bytes_of(node)] += 1
        return uses
