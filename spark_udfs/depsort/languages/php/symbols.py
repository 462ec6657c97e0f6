"""The symbols of a PHP file, by one tree-sitter query over its syntax tree.

A file refers to a class by `use`, by its name within the namespace, or by a name of several parts, `\\A\\B`
or `A\\B`, which is an import that binds nothing. References are names of classes, functions and constants,
and `.m` for `->m()` and `::m()`. Variables do not count.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

import tree_sitter_php
from tree_sitter import Node

from spark_udfs.depsort.languages.data import read_builtins, read_query
from spark_udfs.depsort.languages.php.modules import PhpModules
from spark_udfs.depsort.languages.tree_sitter_language import TreeSitterLanguage
from spark_udfs.depsort.model import FileSymbols, Import, Modules
from spark_udfs.depsort.syntax import Captures


class Php(TreeSitterLanguage):
    """PHP."""

    name = "php"
    suffixes: tuple[str, ...] = (".php", ".inc", ".phtml")
    grammar = staticmethod(tree_sitter_php.language_php)
    query = read_query(__package__)
    family = "php"
    builtins, builtin_members = read_builtins(__package__)
    shared_names = True

    def modules(
        self, paths: Sequence[str], files: Sequence[FileSymbols], manifests: Mapping[str, str]
    ) -> Modules:
        """The namespaces and included files of one repository."""
        return PhpModules(paths, files)

    def read(self, source: bytes, captures: Captures) -> FileSymbols:
        """The symbols of one file from its captured nodes."""
        return _File(source, captures).symbols()


class _File:
    """The captures of one file, turned into symbols."""

    def __init__(self, source: bytes, captures: Captures) -> None:
        self._source = source
        self._captures = captures
        names = [self._text(node).replace("\\", ".") for node in captures.get("namespace", ())]
        self._package = names[0] if names else ""

    def symbols(self) -> FileSymbols:
        """Everything the file defines, uses and includes."""
        definitions: Counter[str] = Counter(
            self._text(node) for key in ("type", "constant") for node in self._captures.get(key, ())
        )
        for node in self._captures.get("method", ()):
            body = None if node.parent is None else node.parent.parent
            owner = None if body is None or body.parent is None else body.parent.child_by_field_name("name")
            if owner is not None:
                definitions[f"{self._text(owner)}.{self._text(node)}"] += 1
        used = list(self._used())
        imports = Counter([*used, *self._whole_names(used), *self._included()])
        references = Counter(self._text(node) for node in self._captures.get("name", ()))
        references.update("." + self._text(node) for node in self._captures.get("member", ()))
        return FileSymbols(
            definitions=dict(sorted(definitions.items())),
            imports=tuple(
                Import(i.module, i.name, i.alias, i.deferred, n)
                for i, n in sorted(imports.items(), key=lambda item: (item[0].written, item[0].alias or ""))
            ),
            references=dict(sorted(references.items())),
            package=self._package or None,
        )

    def _used(self) -> Iterator[Import]:
        for node in self._captures.get("use", ()):
            group = node.parent.parent if node.parent is not None else None
            prefix = ""
            if group is not None and node.parent is not None and node.parent.type == "namespace_use_group":
                start = next((child for child in group.children if child.type == "namespace_name"), None)
                prefix = "" if start is None else self._text(start) + "\\"
            name = next((c for c in node.named_children if c.type in ("qualified_name", "name")), None)
            alias = node.child_by_field_name("alias")
            if name is None:
                continue
            module, _, last = (prefix + self._text(name)).strip("\\").replace("\\", ".").rpartition(".")
            yield Import(module, last, last if alias is None else self._text(alias))

    def _whole_names(self, used: Sequence[Import]) -> Iterator[Import]:
        """Names of several parts: `A\\B` starts at the import of `A`, else in the file's namespace."""
        begun = {it.alias: f"{it.module}.{it.name}".strip(".") for it in used}
        for node in self._captures.get("qualified", ()):
            if node.parent is not None and node.parent.type == "namespace_use_clause":
                continue
            text = self._text(node)
            module, _, last = text.strip("\\").replace("\\", ".").rpartition(".")
            if not text.startswith("\\"):
                first, dot, rest = module.partition(".")
                start = self._package if first == "namespace" else begun.get(first)
                below = f"{self._package}.{first}" if start is None else start
                module = f"{below}{dot}{rest}".strip(".")
            if module:
                yield Import(module, last, "")

    def _included(self) -> Iterator[Import]:
        for node in self._captures.get("include", ()):
            pending, strings = [node], []
            while pending:
                item = pending.pop()
                if item.type == "string_content":
                    strings.append(self._text(item))
                pending.extend(item.named_children)
            if len(strings) == 1:
                yield Import("./" + strings[0].lstrip("/"), "*", None)

    def _text(self, node: Node) -> str:
        return self._source[node.start_byte : node.end_byte].decode("utf-8", "replace")
