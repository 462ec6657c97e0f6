"""The symbols of a Rust file, by one tree-sitter query over its syntax tree.

A `mod x;` is an import of the module it names. References are types, called functions and macros, paths
(`a::b` as `a.b`) and called methods. Variables do not count, so no scopes are needed. The arguments of a
macro are tokens without a tree: capitalized names and the starts of paths among them count.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence

import tree_sitter_rust
from tree_sitter import Node

from spark_udfs.depsort.captured_file import CapturedFile, first_child
from spark_udfs.depsort.languages.data import read_builtins, read_query
from spark_udfs.depsort.languages.rust.modules import RustModules
from spark_udfs.depsort.languages.tree_sitter_language import TreeSitterLanguage
from spark_udfs.depsort.model import FileSymbols, Import, counted_imports
from spark_udfs.depsort.ranges import Ranges
from spark_udfs.depsort.syntax import Captures

MAX_CHAIN = 8  # parts of a path
_CHAIN = re.compile(rb"\$?(?:r#)?\w+(?:\s*::\s*(?:r#)?\w+)*")


class _File(CapturedFile):
    """The captures of one Rust file, turned into symbols."""

    def __init__(self, source: bytes, captures: Captures) -> None:
        super().__init__(source, captures)
        self._inline = Ranges(captures["inline"])

    def symbols(self) -> FileSymbols:
        """Everything the file defines, imports and uses."""
        imports: Counter[Import] = Counter()
        for node in self.captures["module"]:
            name = self._identifier(node)
            if self._depth(node) == 0:
                imports[Import(f"self.{name}", None, name)] += 1
        imports.update(filter(None, map(self._extern_crate, self.captures["crate"])))
        for node in self.captures["use"]:
            for module, used_name, alias in self._used(node, ()):
                imports[Import(self._from_here(module, node), used_name, alias)] += 1
        definitions = self._definitions()
        return FileSymbols(
            definitions=dict(sorted(definitions.items())),
            imports=counted_imports(imports, lambda item: (item.written + (item.alias or ""),)),
            references=dict(sorted(self._references().items())),
        )

    def _extern_crate(self, node: Node) -> Import | None:
        """`extern crate a as b`; `self` is the crate itself."""
        name, alias = node.child_by_field_name("name"), node.child_by_field_name("alias")
        if name is None:
            return None
        module = self._identifier(name)
        bound = module if alias is None else self._identifier(alias)
        return Import("crate" if module == "self" else module, None, "" if bound == "_" else bound)

    def _definitions(self) -> Counter[str]:
        definitions: Counter[str] = Counter()
        nodes = [node for kind in ("type", "value", "function") for node in self.captures[kind]]
        functions = {node.start_byte for node in self.captures["function"]}
        for node in nodes:
            declaration = node.parent
            block = None if declaration is None else declaration.parent
            around = None if block is None else block.parent
            if block is not None and block.type == "block" and node.start_byte in functions:
                continue
            owner = None
            if around is not None and around.type in ("impl_item", "trait_item"):
                owner = around.child_by_field_name("type") or around.child_by_field_name("name")
            if owner is None:
                definitions[self._identifier(node)] += 1
            else:
                chain = _CHAIN.match(self.source, owner.start_byte)
                if chain is not None:
                    definitions[f"{_parts(chain[0])[-1]}.{self._identifier(node)}"] += 1
        return definitions

    def _used(
        self, node: Node, before: tuple[str, ...]
    ) -> Iterator[tuple[tuple[str, ...], str | None, str | None]]:
        """The (module, name, alias) of each name a `use` brings in."""
        pending: list[tuple[Node, tuple[str, ...]]] = [(node, before)]
        while pending:
            clause, prefix = pending.pop()
            if clause.type == "scoped_use_list":
                path, names = clause.child_by_field_name("path"), clause.child_by_field_name("list")
                prefix = prefix + self._path(path)
                clause = clause if names is None else names
            if clause.type in ("use_list", "scoped_use_list"):
                pending.extend((child, prefix) for child in clause.named_children)
            elif clause.type == "use_wildcard":
                yield prefix + self._path(first_child(clause)), "*", None
            elif clause.type == "use_as_clause":
                path, alias = clause.child_by_field_name("path"), clause.child_by_field_name("alias")
                yield from _named(prefix + self._path(path), "" if alias is None else self._identifier(alias))
            elif clause.type in ("identifier", "scoped_identifier", "self", "crate", "super"):
                yield from _named(prefix + self._path(clause), None)

    def _path(self, node: Node | None) -> tuple[str, ...]:
        return () if node is None else tuple(_parts(self.bytes_of(node)))

    def _from_here(self, module: Sequence[str], node: Node) -> str:
        """A module path relative to the file's module, for a node that may be in an inline module."""
        depth, parts = self._depth(node), list(module)
        while depth and parts and parts[0] == "super":
            depth, parts = depth - 1, parts[1:]
            if not parts or parts[0] != "super":
                parts.insert(0, "self")
        return ".".join(parts)

    def _depth(self, node: Node) -> int:
        return sum(1 for _ in self._inline.around(node.start_byte))

    def _references(self) -> Counter[str]:
        references: Counter[str] = Counter()
        uses = Ranges(self.captures["use"])
        own = {node.start_byte for capture in ("type", "generic") for node in self.captures[capture]}
        generic = {self._identifier(node) for node in self.captures["generic"]}
        for node in self.captures["name"]:
            if node.start_byte not in own and not self._behind_path(node):
                name = self._identifier(node)
                if name not in generic:
                    references[name] += 1
        for capture in ("start", "token"):
            for node in self.captures[capture]:
                if (capture == "start" and uses.innermost(node.start_byte) >= 0) or self._behind_path(node):
                    continue
                chain = _CHAIN.match(self.source, node.start_byte)
                parts = [] if chain is None else _parts(chain[0])
                if parts and parts[0].startswith("$") and (parts[0] != "$crate" or len(parts) < 2):
                    continue  # among a macro's variables only `$crate` is a module
                if capture == "token" and len(parts) < 2 and not self._identifier(node)[:1].isupper():
                    continue
                if parts and parts[0] not in generic:
                    references[self._from_here(parts[:MAX_CHAIN], node)] += 1
        references.update("." + self._identifier(node) for node in self.captures["member"])
        return references

    def _behind_path(self, node: Node) -> bool:
        return self.source[max(0, node.start_byte - 3) : node.start_byte].rstrip().endswith(b"::")

    def _identifier(self, node: Node) -> str:
        return self.text(node).removeprefix("r#")


def _named(
    path: tuple[str, ...], alias: str | None
) -> Iterator[tuple[tuple[str, ...], str | None, str | None]]:
    """One name of a `use`; `a::{self}` is `a`, `_` binds nothing."""
    if len(path) > 1 and path[-1] == "self":
        path = path[:-1]
    if alias == "_":
        alias = ""
    if len(path) == 1:
        yield path, None, path[0] if alias is None else alias
    elif path:
        yield path[:-1], path[-1], path[-1] if alias is None else alias


def _parts(path: bytes) -> list[str]:
    return [
        part.strip().removeprefix("r#")
        for part in path.decode("utf-8", "replace").split("::")
        if part.strip()
    ]


class Rust(TreeSitterLanguage):
    """Rust."""

    name = "rust"
    suffixes = (".rs",)
    grammar = staticmethod(tree_sitter_rust.language)
    query = read_query(__package__)
    family = "rust"
    manifests = ("Cargo.toml",)
    builtins, builtin_members = read_builtins(__package__)
    qualified_names = True
    shared_names = True
    short_names = True  # such as the macro `ok!`
    modules = RustModules
    file = _File
