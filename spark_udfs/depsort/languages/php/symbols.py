"""The symbols of a PHP file, by one tree-sitter query over its syntax tree.

A file refers to a class by `use`, by its name within the namespace, or by a name of several parts, `\\A\\B`
or `A\\B`, which is an import that binds nothing. References are names of classes, functions and constants,
and `.m` for `->m()` and `::m()`. Variables do not count.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

import tree_sitter_php

from spark_udfs.depsort.captured_file import CapturedFile, child_of_type, field_of
from spark_udfs.depsort.languages.data import read_builtins, read_query
from spark_udfs.depsort.languages.php.modules import PhpModules
from spark_udfs.depsort.languages.tree_sitter_language import TreeSitterLanguage
from spark_udfs.depsort.model import FileSymbols, Import, counted_imports
from spark_udfs.depsort.syntax import Captures


class _File(CapturedFile):
    """The captures of one PHP file, turned into symbols."""

    def __init__(self, source: bytes, captures: Captures) -> None:
        super().__init__(source, captures)
        names = [self.text(node).replace("\\", ".") for node in captures["namespace"]]
        self._package = names[0] if names else ""

    def symbols(self) -> FileSymbols:
        """Everything the file defines, uses and includes."""
        definitions: Counter[str] = Counter(
            self.text(node) for key in ("type", "constant") for node in self.captures[key]
        )
        for node in self.captures["method"]:
            body = None if node.parent is None else node.parent.parent
            owner = None if body is None else field_of(body.parent, "name")
            if owner is not None:
                definitions[f"{self.text(owner)}.{self.text(node)}"] += 1
        uses = list(self._used())
        imports = Counter([*uses, *self._whole_names(uses), *self._included()])
        references = Counter(self.text(node) for node in self.captures["name"])
        references.update("." + self.text(node) for node in self.captures["member"])
        return FileSymbols(
            definitions=dict(sorted(definitions.items())),
            imports=counted_imports(imports, lambda item: (item.written, item.alias or "")),
            references=dict(sorted(references.items())),
            package=self._package or None,
        )

    def _used(self) -> Iterator[Import]:
        for node in self.captures["use"]:
            group = node.parent.parent if node.parent is not None else None
            prefix = ""
            if group is not None and node.parent is not None and node.parent.type == "namespace_use_group":
                start = child_of_type(group, "namespace_name")
                prefix = "" if start is None else self.text(start) + "\\"
            name = child_of_type(node, "qualified_name", "name")
            alias = node.child_by_field_name("alias")
            if name is None:
                continue
            module, _, last = (prefix + self.text(name)).strip("\\").replace("\\", ".").rpartition(".")
            yield Import(module, last, last if alias is None else self.text(alias))

    def _whole_names(self, uses: Sequence[Import]) -> Iterator[Import]:
        """Names of several parts: `A\\B` starts at the import of `A`, else in the file's namespace."""
        begun = {use.alias: f"{use.module}.{use.name}".strip(".") for use in uses}
        for node in self.captures["qualified"]:
            if node.parent is not None and node.parent.type == "namespace_use_clause":
                continue
            text = self.text(node)
            module, _, last = text.strip("\\").replace("\\", ".").rpartition(".")
            if not text.startswith("\\"):
                first, dot, rest = module.partition(".")
                start = self._package if first == "namespace" else begun.get(first)
                below = f"{self._package}.{first}" if start is None else start
                module = f"{below}{dot}{rest}".strip(".")
            if module:
                yield Import(module, last, "")

    def _included(self) -> Iterator[Import]:
        for node in self.captures["include"]:
            pending, strings = [node], []
            while pending:
                part = pending.pop()
                if part.type == "string_content":
                    strings.append(self.text(part))
                pending.extend(part.named_children)
            if len(strings) == 1:
                yield Import("./" + strings[0].lstrip("/"), "*", None)


class Php(TreeSitterLanguage):
    """PHP."""

    name = "php"
    suffixes = (".php", ".inc", ".phtml")
    grammar = staticmethod(tree_sitter_php.language_php)
    query = read_query(__package__)
    family = "php"
    builtins, builtin_members = read_builtins(__package__)
    shared_names = True
    modules = PhpModules
    file = _File
