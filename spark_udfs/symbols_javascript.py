"""The symbols of a JavaScript or TypeScript file: ES modules, CommonJS, and scripts that share globals.

A module's definitions are the names it exports (`default` among them), as far as it makes them itself; what
it passes on from other modules is an import. Its other top-level names are `private`. A file that imports
and exports nothing is a script: all its top-level names are global, and its `package` is None, where a
module's is `MODULE`. A module that says `declare global` has `GLOBAL`.

`require` and `import()` count where their argument is a string. Types are names like others, and an import
of types alone is an import: the file cannot be understood without it. Names in comments do not count.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property

import tree_sitter_javascript
import tree_sitter_typescript
from tree_sitter import Node

from spark_udfs.byte_ranges import Ranges
from spark_udfs.modules_javascript import GLOBAL, MODULE, JavaScriptModules
from spark_udfs.symbols import FileSymbols, Import, Language, Modules
from spark_udfs.syntax import Captures, Syntax

MAX_CHAIN = 8  # parts of a dotted reference
MAX_LINE = 5_000  # bytes a line, on average: more is minified code, which has no names to go by

_COMMON = """
(identifier) @name
(shorthand_property_identifier) @name
(call_expression function: (member_expression property: (property_identifier) @called))

(program (lexical_declaration (variable_declarator name: (_) @top)))
(program (variable_declaration (variable_declarator name: (_) @top)))
(program (function_declaration name: (_) @top))
(program (generator_function_declaration name: (_) @top))
(program (class_declaration name: (_) @top))
(export_statement declaration: (lexical_declaration (variable_declarator name: (_) @exported)))
(export_statement declaration: (variable_declaration (variable_declarator name: (_) @exported)))
(export_statement declaration: (function_declaration name: (_) @exported))
(export_statement declaration: (generator_function_declaration name: (_) @exported))
(export_statement declaration: (class_declaration name: (_) @exported))
(export_statement) @export
(import_statement) @import
(class_declaration) @class
(class) @class
(method_definition name: (_) @method)

(variable_declarator name: (identifier) @bound)
(shorthand_property_identifier_pattern) @bound
(array_pattern (identifier) @bound)
(pair_pattern value: (identifier) @bound)
(rest_pattern (identifier) @bound)
(assignment_pattern left: (identifier) @bound)
(arrow_function parameter: (identifier) @bound)
(for_in_statement left: (identifier) @bound)
(catch_clause parameter: (identifier) @bound)
(function_declaration name: (_) @bound)
(function_expression name: (_) @bound)
(class_declaration name: (_) @bound)

(function_declaration) @scope
(function_expression) @scope
(arrow_function) @scope
(method_definition) @scope
(statement_block) @scope
(for_statement) @scope
(for_in_statement) @scope

(call_expression function: (identifier) @_require arguments: (arguments . (string) @required)
  (#eq? @_require "require"))
(call_expression function: (import) arguments: (arguments . (string) @required))
(assignment_expression left: (member_expression) @assigned)
"""

_JAVASCRIPT = """
(formal_parameters (identifier) @bound)
"""

_TYPESCRIPT = """
(type_identifier) @name
(required_parameter pattern: (identifier) @bound)
(optional_parameter pattern: (identifier) @bound)
(type_parameter name: (_) @bound)
(interface_declaration) @class
(abstract_class_declaration) @class
(abstract_class_declaration name: (_) @bound)
(interface_declaration name: (_) @bound)
(type_alias_declaration name: (_) @bound)
(enum_declaration name: (_) @bound)
(method_signature name: (_) @method)
(abstract_method_signature name: (_) @method)
(program (interface_declaration name: (_) @top))
(program (abstract_class_declaration name: (_) @top))
(program (type_alias_declaration name: (_) @top))
(program (enum_declaration name: (_) @top))
(program (function_signature name: (_) @top))
(program (expression_statement (internal_module name: (_) @top)))
(program (ambient_declaration (_ name: (_) @top)))
(program (ambient_declaration (_ (variable_declarator name: (_) @top))))
(program (ambient_declaration (statement_block (_ name: (_) @global))))
(program (ambient_declaration (statement_block (_ (variable_declarator name: (_) @global)))))
(export_statement declaration: (interface_declaration name: (_) @exported))
(export_statement declaration: (abstract_class_declaration name: (_) @exported))
(export_statement declaration: (type_alias_declaration name: (_) @exported))
(export_statement declaration: (enum_declaration name: (_) @exported))
(export_statement declaration: (function_signature name: (_) @exported))
(export_statement declaration: (internal_module name: (_) @exported))
(export_statement declaration: (ambient_declaration (_ name: (_) @exported)))
(export_statement declaration: (ambient_declaration (_ (variable_declarator name: (_) @exported))))
(import_require_clause) @import_require
(ambient_declaration (module name: (string) @augmented))
"""

_CHAIN = re.compile(rb"[\w$\x80-\xff]+(?:\s*\??\.\s*[\w$\x80-\xff]+)*")
_NAME = re.compile(rb"[\w$\x80-\xff]+")
_REFERENCE = re.compile(rb"""^///\s*<reference\s+path\s*=\s*["']([^"'\n]+)["']""", re.MULTILINE)
_TYPES = re.compile(rb"""^[ \t]*(?:/\*)?\*[^\n]*?\bimport\(\s*["']([^"'\n]+)["']\s*\)""", re.MULTILINE)
_TYPES_BY_NAME = re.compile(
    rb"""^[ \t]*/?\*[^\n]{0,500}?@import\s[^\n]{0,500}?\bfrom\s*["']([^"'\n]+)["']""", re.MULTILINE
)
_EXPORTS = re.compile(rb"^(?:module\s*\.\s*)?exports(?:\s*\.\s*([\w$]+))?$")
_PROTOTYPE = re.compile(rb"^([\w$]+)\s*\.\s*(?:prototype\s*\.\s*)?([\w$]+)$")
_ON_GLOBAL = re.compile(rb"^(?:window|globalThis|global|self)\s*\.\s*([\w$]+)$")

_BUILTINS = """
AbortController AbortSignal AggregateError Array ArrayBuffer Atomics BigInt BigInt64Array BigUint64Array
Blob Boolean Buffer CustomEvent DOMException DataView Date Document Element Error EvalError Event
EventTarget File FinalizationRegistry Float32Array Float64Array FormData Function Headers HTMLElement
Infinity Int16Array Int32Array Int8Array Intl Iterator JSON Map Math MessageChannel MutationObserver NaN
Node Number Object Promise Proxy RangeError ReadableStream ReferenceError Reflect RegExp Request Response
Set SharedArrayBuffer String Symbol SyntaxError TextDecoder TextEncoder TypeError URIError URL
URLSearchParams Uint16Array Uint32Array Uint8Array Uint8ClampedArray WeakMap WeakRef WeakSet WebAssembly
WebSocket Window Worker XMLHttpRequest __dirname __filename alert any arguments as async atob await boolean
btoa cancelAnimationFrame clearImmediate clearInterval clearTimeout confirm console crypto customElements
decodeURI decodeURIComponent define document encodeURI encodeURIComponent escape eval exports fetch global
globalThis history isFinite isNaN keyof localStorage location module navigator never null number object
parseFloat parseInt performance process prompt queueMicrotask requestAnimationFrame require self
sessionStorage setImmediate setInterval setTimeout string structuredClone super symbol this undefined
unescape unknown void window Awaited Capitalize ConstructorParameters Exclude Extract InstanceType Iterable
IterableIterator NonNullable Omit OmitThisParameter Parameters Partial Pick PromiseLike Readonly
ReadonlyArray ReadonlyMap ReadonlySet Record Required ReturnType ThisParameterType ThisType Uncapitalize
Uppercase Lowercase
"""

_BUILTIN_MEMBERS = """
add addEventListener all allSettled any append appendChild apply assign at bind call catch charAt charCodeAt
clear close codePointAt concat createElement defineProperty delete describe done emit endsWith entries every
exec fill filter finally find findIndex findLast flat flatMap forEach freeze from fromEntries get
getAttribute getElementById getOwnPropertyNames getPrototypeOf has hasOwnProperty includes indexOf is
isArray isInteger isPrototypeOf join keys lastIndexOf length localeCompare log map match matchAll max min
next now of on once padEnd padStart parse pop preventDefault push querySelector querySelectorAll race raw
reduce reduceRight reject remove removeEventListener repeat replace replaceAll resolve reverse search set
setAttribute shift slice some sort splice split startsWith stopPropagation stringify substr substring test
then toFixed toISOString toLocaleString toLowerCase toString toUpperCase trim trimEnd trimStart unshift
valueOf values warn write
"""


_FUNCTIONS = {"function_declaration", "function_expression", "arrow_function", "method_definition"}


class _EcmaScript(Language):
    """What JavaScript and TypeScript have in common."""

    family = "javascript"
    manifests = ("package.json", "tsconfig.json", "jsconfig.json", "tsconfig.base.json")
    builtins = frozenset(_BUILTINS.split())
    builtin_members = frozenset(_BUILTIN_MEMBERS.split())

    def modules(
        self, paths: Sequence[str], files: Sequence[FileSymbols], manifests: Mapping[str, str]
    ) -> Modules:
        """Where modules lie among the files `paths`."""
        return JavaScriptModules(paths, files, manifests)

    def extract(self, source: bytes, path: str) -> FileSymbols:
        """The symbols of one file; empty where it is minified or its syntax tree is out of bounds."""
        if len(source) > MAX_LINE * (source.count(b"\n") + 1):
            return FileSymbols()
        captures = self._syntax(source, path).captures(source)
        return FileSymbols() if captures is None else _File(source, captures).symbols()

    def _syntax(self, source: bytes, path: str) -> Syntax:
        raise NotImplementedError


class JavaScript(_EcmaScript):
    """JavaScript with JSX; with types where the file says that Flow checks it."""

    name = "javascript"
    suffixes = (".js", ".jsx", ".mjs", ".cjs", ".es6")

    def _syntax(self, source: bytes, path: str) -> Syntax:
        return self._typed if b"@flow" in source[:1_000] else self._plain

    @cached_property
    def _plain(self) -> Syntax:
        return Syntax(tree_sitter_javascript.language(), _COMMON + _JAVASCRIPT)

    @cached_property
    def _typed(self) -> Syntax:
        return Syntax(tree_sitter_typescript.language_tsx(), _COMMON + _TYPESCRIPT)


class TypeScript(_EcmaScript):
    """TypeScript, its declaration files, and TSX."""

    name = "typescript"
    suffixes = (".ts", ".tsx", ".mts", ".cts")

    def _syntax(self, source: bytes, path: str) -> Syntax:
        return self._with_jsx if path.endswith("x") else self._plain

    @cached_property
    def _plain(self) -> Syntax:
        return Syntax(tree_sitter_typescript.language_typescript(), _COMMON + _TYPESCRIPT)

    @cached_property
    def _with_jsx(self) -> Syntax:
        return Syntax(tree_sitter_typescript.language_tsx(), _COMMON + _TYPESCRIPT)


class _File:
    """The captures of one file, turned into symbols."""

    def __init__(self, source: bytes, captures: Captures) -> None:
        self._source = source
        self._captures = captures
        self._imports: Counter[Import] = Counter()
        self._definitions: Counter[bytes] = Counter()
        self._exports: dict[bytes, None] = {}
        self._handled: set[int] = set()  # where names stand that are no uses
        self._is_module = bool(captures.get("import") or captures.get("export"))

    def symbols(self) -> FileSymbols:
        """Everything the file defines, imports and uses."""
        self._read_imports()
        self._read_requires()
        self._read_augmented()
        bound = {item.binds: item for item in self._imports if item.binds}
        top = self._read_top()
        self._read_exports(bound)
        self._read_assignments(bound)
        self._read_members()
        global_names = {self._text(node) for node in self._nodes("global")}
        for name in global_names:
            self._definitions[name] += 1
        references = self._references({item.encode() for item in bound}, top | global_names)
        private = sorted(top - self._exports.keys() - global_names) if self._is_module else []
        return FileSymbols(
            {_decoded(name): n for name, n in sorted(self._definitions.items())},
            tuple(
                Import(i.module, i.name, i.alias, i.deferred, n)
                for i, n in sorted(self._imports.items(), key=lambda it: _import_key(it[0]))
            ),
            {_decoded(name): n for name, n in sorted(references.items())},
            tuple(_decoded(name) for name in self._exports if name != b"default") if self._exports else None,
            (GLOBAL if global_names else MODULE) if self._is_module else None,
            private=tuple(_decoded(name) for name in private),
        )

    def _nodes(self, name: str) -> list[Node]:
        return self._captures.get(name, [])

    def _text(self, node: Node) -> bytes:
        return self._source[node.start_byte : node.end_byte]

    def _string(self, node: Node) -> str:
        return _decoded(self._text(node)[1:-1])

    def _field(self, node: Node, name: str) -> bytes | None:
        """The text of a child, without its quotes where it is a string."""
        child = node.child_by_field_name(name)
        if child is None:
            return None
        self._handled.add(child.start_byte)
        text = self._text(child)
        return text[1:-1] if child.type == "string" else text

    # Imports

    def _read_imports(self) -> None:
        for node in self._nodes("import"):
            source = node.child_by_field_name("source")
            clause = next((c for c in node.named_children if c.type.startswith("import_")), None)
            if clause is not None and clause.type == "import_require_clause":
                source = clause.child_by_field_name("source")
            if source is None:
                continue
            module = self._string(source)
            found = list(self._clause(module, clause)) if clause is not None else []
            self._imports.update(found or [Import(module, None, "")])
        for path in _REFERENCE.findall(self._source):
            text = _decoded(path)
            self._imports[Import(text if text.startswith(".") else f"./{text}", "*", None)] += 1

        for mark, said in ((b"import(", _TYPES), (b"@import", _TYPES_BY_NAME)):
            if mark in self._source:
                paths = said.findall(self._source)
                self._imports.update(Import(_decoded(path), None, "", True) for path in paths)

    def _clause(self, module: str, clause: Node) -> Iterator[Import]:
        for child in clause.named_children:
            if child.type == "identifier":
                self._handled.add(child.start_byte)
                name = None if clause.type == "import_require_clause" else "default"
                yield Import(module, name, _decoded(self._text(child)))
            elif child.type == "namespace_import" and child.named_children:
                self._handled.add(child.named_children[0].start_byte)
                yield Import(module, None, _decoded(self._text(child.named_children[0])))
            elif child.type == "named_imports":
                yield from (
                    Import(module, _decoded(name), _decoded(alias)) for name, alias in self._specifiers(child)
                )

    def _specifiers(self, clause: Node) -> Iterator[tuple[bytes, bytes]]:
        """The names of `{a, b as c}` with what they become."""
        for child in clause.named_children:
            if child.type in ("import_specifier", "export_specifier"):
                name, alias = self._field(child, "name"), self._field(child, "alias")
                if name:
                    yield name, alias or name

    def _read_requires(self) -> None:
        """`require("x")` and `import("x")`, with what their surroundings call the result."""
        for node in self._nodes("required"):
            module = self._string(node)
            call = node.parent.parent if node.parent is not None else None
            if call is None or not module:
                continue
            self._is_module = True
            deferred = self._in_function(call.start_byte)
            found = list(self._result(module, call, deferred))
            self._imports.update(found or [Import(module, None, "", deferred)])

    def _read_augmented(self) -> None:
        """`declare module "x"`: a module that says so adds to what x exports."""
        if self._is_module:
            modules = (self._string(node) for node in self._nodes("augmented"))
            self._imports.update(Import(module, None, "") for module in modules)

    def _result(self, module: str, call: Node, deferred: bool) -> Iterator[Import]:
        value, member = call, None
        above = value.parent
        while above is not None and above.type in ("await_expression", "parenthesized_expression"):
            value, above = above, above.parent
        if above is not None and above.type == "member_expression":
            member = self._field(above, "property")
            value, above = above, above.parent
        if above is None:
            return
        name = None if member is None else _decoded(member)
        if above.type == "variable_declarator":
            target = above.child_by_field_name("name")
        elif above.type == "assignment_expression":
            target = above.child_by_field_name("left")
            exported = None if target is None else _EXPORTS.match(self._text(target))
            if exported and exported[1]:
                yield Import(module, name, _decoded(exported[1]), deferred)
            elif exported and name is None:
                yield Import(module, "*", None, deferred)
                return
        elif above.type == "pair":
            key = self._field(above, "key")
            if key:
                yield Import(module, name, _decoded(key), deferred)
            return
        else:
            return
        if target is not None and target.type == "identifier":
            self._handled.add(target.start_byte)
            yield Import(module, name, _decoded(self._text(target)), deferred)
        elif target is not None and target.type == "object_pattern" and name is None:
            for child in target.named_children:
                if child.type == "shorthand_property_identifier_pattern":
                    self._handled.add(child.start_byte)
                    yield Import(module, _decoded(self._text(child)), _decoded(self._text(child)), deferred)
                elif child.type == "pair_pattern":
                    key, bound = self._field(child, "key"), self._field(child, "value")
                    if key and bound and _NAME.fullmatch(bound):
                        yield Import(module, _decoded(key), _decoded(bound), deferred)

    # Definitions

    def _read_top(self) -> set[bytes]:
        """The names that stand at the top of the file, without those it imports."""
        imported = {item.binds for item in self._imports}
        found = set()
        for capture in ("top", "exported"):
            for node in self._nodes(capture):
                for name in self._pattern(node):
                    text = self._text(name)
                    self._handled.add(name.start_byte)
                    if _decoded(text) in imported:
                        continue
                    found.add(text)
                    self._definitions[text] += 1
                    if capture == "exported":
                        self._exports[text] = None
        return found

    def _pattern(self, node: Node) -> Iterator[Node]:
        """The names a declaration binds: itself, or those in `{a, b: [c]}`."""
        pending = [node]
        while pending:
            node = pending.pop()
            if node.type in ("object_pattern", "array_pattern", "rest_pattern"):
                pending.extend(reversed(node.named_children))
            elif node.type in ("pair_pattern", "assignment_pattern", "object_assignment_pattern"):
                part = node.child_by_field_name("value" if node.type == "pair_pattern" else "left")
                if part is not None:
                    pending.append(part)
            elif _NAME.fullmatch(self._text(node)):
                yield node

    def _read_exports(self, bound: Mapping[str, Import]) -> None:
        for node in self._nodes("export"):
            source = node.child_by_field_name("source")
            module = None if source is None else self._string(source)
            kinds = {child.type: child for child in node.children}
            if module is not None and "namespace_export" in kinds:
                alias = self._text(kinds["namespace_export"].named_children[0])
                self._pass_on(Import(module, None, _decoded(alias)), alias)
            elif module is not None and "*" in kinds:
                self._imports[Import(module, "*", None)] += 1
            elif "export_clause" in kinds:
                for name, alias in self._specifiers(kinds["export_clause"]):
                    if module is not None:
                        self._pass_on(Import(module, _decoded(name), _decoded(alias)), alias)
                    else:
                        self._export(name, alias, bound)
            elif "default" in kinds or "=" in kinds:
                value = node.child_by_field_name("value") or next(
                    (child for child in node.named_children if child.type == "identifier"), None
                )
                name = b"" if value is None or value.type != "identifier" else self._text(value)
                self._export(name, b"default", bound)

    def _export(self, name: bytes, alias: bytes, bound: Mapping[str, Import]) -> None:
        """The local `name` is seen as `alias` from outside."""
        item = bound.get(_decoded(name))
        if item is not None:
            if name != alias:
                self._pass_on(Import(item.module, item.name, _decoded(alias), item.deferred), alias)
        elif name != alias:
            self._definitions[alias] += 1
        self._exports[alias] = None

    def _pass_on(self, item: Import, alias: bytes) -> None:
        self._imports[item] += 1
        self._exports[alias] = None

    def _read_assignments(self, bound: Mapping[str, Import]) -> None:
        """`exports.a = ...`, `module.exports = {a, b: c}`, `A.prototype.b = ...`, `window.a = ...`."""
        for node in self._nodes("assigned"):
            text = self._text(node)
            exported = _EXPORTS.match(text)
            if exported is None:
                if found := _PROTOTYPE.match(text):
                    if _ON_GLOBAL.match(text) and not self._is_module:
                        self._definitions[found[2]] += 1
                    elif found[1] in self._definitions and found[1] != b"this":
                        self._definitions[b".".join(found.groups())] += 1
                continue
            self._is_module = True
            value = None if node.parent is None else node.parent.child_by_field_name("right")
            if exported[1]:
                if _decoded(exported[1]) not in bound:
                    self._definitions[exported[1]] += 1
            elif value is not None and value.type == "object":
                for child in value.named_children:
                    name = child if child.type == "shorthand_property_identifier" else None
                    name = name or child.child_by_field_name("key") or child.child_by_field_name("name")
                    if name is not None and _decoded(self._text(name)) not in bound:
                        self._definitions[self._text(name)] += 1

    def _read_members(self) -> None:
        """The methods of named classes and interfaces that stand at the top."""
        classes = Ranges(self._nodes("class"))
        for node in self._nodes("method"):
            around = classes.innermost(node.start_byte)
            owner = None if around < 0 else classes.nodes[around].child_by_field_name("name")
            name = self._text(node)
            if owner is not None and name != b"constructor" and self._text(owner) in self._definitions:
                self._definitions[self._text(owner) + b"." + name] += 1

    # References

    def _references(self, roots: set[bytes], own: set[bytes]) -> Counter[bytes]:
        """Uses of imported and own top-level names, and of names that nothing in the file binds."""
        bound = self._nodes("bound")
        local = {self._text(node) for node in bound if node.start_byte not in self._handled}
        handled = self._handled | {node.start_byte for node in bound}
        hiding: dict[bytes, set[int]] = {}
        for node in bound:
            if (name := self._text(node)) in roots and node.start_byte not in self._handled:
                hiding.setdefault(name, set()).add(self._scopes.innermost(node.start_byte))
        found: Counter[bytes] = Counter()
        chain_ends = set()
        for node in self._nodes("name"):
            start = node.start_byte
            if start in handled:
                continue
            name = self._source[start : node.end_byte]
            if name in roots:
                if name in hiding and not hiding[name].isdisjoint(self._scopes.around(start)):
                    continue
                chain = _CHAIN.match(self._source, start)
                if chain and chain.end() > node.end_byte:
                    parts = _NAME.findall(chain[0])
                    chain_ends.add(chain.end())
                    name = b".".join(parts[:MAX_CHAIN])
            elif name in local and name not in own:
                continue
            found[name] += 1
        for node in self._nodes("called"):
            if node.end_byte not in chain_ends:
                found[b"." + self._text(node)] += 1
        return found

    def _in_function(self, position: int) -> bool:
        return any(self._scopes.nodes[scope].type in _FUNCTIONS for scope in self._scopes.around(position))

    @cached_property
    def _scopes(self) -> Ranges:
        return Ranges(self._nodes("scope"))


def _decoded(name: bytes) -> str:
    return name.decode("utf-8", "replace")


def _import_key(item: Import) -> tuple[str, str, str, bool]:
    return item.module, item.name or "", item.alias or "", item.deferred
