"""The symbols of a Python file, by one tree-sitter query over its syntax tree.

A name bound in a function (a parameter, a target, a loop variable) hides the imported or module-level name
of the same spelling there, and is not a reference. Names inside strings and comments do not count. Files with
syntax errors give the symbols that parse.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence

import tree_sitter_python
from tree_sitter import Node

from spark_udfs.depsort.captured_file import CapturedFile
from spark_udfs.depsort.languages.data import read_builtins, read_query
from spark_udfs.depsort.languages.python.modules import PythonModules
from spark_udfs.depsort.languages.tree_sitter_language import TreeSitterLanguage
from spark_udfs.depsort.model import FileSymbols, Import, counted_imports
from spark_udfs.depsort.ranges import Ranges
from spark_udfs.depsort.syntax import Captures

MAX_CHAIN = 8  # parts of a dotted reference
_CHAIN = re.compile(rb"[\w\x80-\xff]+(?:\.[\w\x80-\xff]+)*")
_DOT, _CALL = ord("."), (b"(", b" (")
_DOT_AND_GAP = re.compile(rb"(?<![.\d])\.[\s\\]+(?=[\w\x80-\xff])")  # a member may follow
_STRING = re.compile(r"""^[rRuU]?(['"])(\w+)\1$""")


class _File(CapturedFile):
    """The captures of one Python file, turned into symbols."""

    def __init__(self, source: bytes, captures: Captures) -> None:
        super().__init__(source, captures)
        self._scopes = _Scopes(captures)

    def symbols(self) -> FileSymbols:
        """Everything the file defines, imports and uses."""
        imports = self._imports()
        definitions = self._definitions()
        return FileSymbols(
            {name.decode("utf-8", "replace"): n for name, n in sorted(definitions.items())},
            imports,
            {
                name.decode("utf-8", "replace"): n
                for name, n in sorted(self._references(imports, definitions).items())
            },
            self._exports(),
        )

    # Definitions

    def _definitions(self) -> Counter[bytes]:
        """Functions, classes and assigned names of the module, and the methods of its classes."""
        definitions: Counter[bytes] = Counter()
        for capture in ("function", "class"):
            for node in self.captures[capture]:
                owners = self._scopes.classes_around(node.start_byte, self.source)
                if owners is not None:
                    definitions[b".".join((*owners, self.bytes_of(node)))] += 1
        for node in self.captures["assigned"]:
            if self._scopes.innermost(node.start_byte) < 0:
                definitions[self.bytes_of(node)] += 1
        return definitions

    def _exports(self) -> tuple[str, ...] | None:
        """The strings of `__all__`; None where there is none, or part of it is computed."""
        lists = [
            node.parent.child_by_field_name("right")
            for capture in ("assigned", "augmented")
            for node in self.captures[capture]
            if self.bytes_of(node) == b"__all__" and node.parent is not None
        ]
        names: list[str] = []
        for node in lists:
            if node is None or node.type not in ("list", "tuple"):
                return None
            for element in node.named_children:
                text = _STRING.match(self.bytes_of(element).decode("utf-8", "replace"))
                if text:
                    names.append(text[2])
                elif element.type != "comment":
                    return None
        return tuple(dict.fromkeys(names)) if lists else None

    # Imports

    def _imports(self) -> tuple[Import, ...]:
        guarded = Ranges(self.captures["guarded"])
        imports: Counter[Import] = Counter()
        for capture in ("import", "from"):
            for node in self.captures[capture]:
                start = node.start_byte
                deferred = self._scopes.in_function(start) or guarded.innermost(start) >= 0
                imports.update(self._imported(node, deferred))
        return counted_imports(imports)

    def _imported(self, node: Node, deferred: bool) -> Iterable[Import]:
        module_node = node.child_by_field_name("module_name")
        module = None if module_node is None else self._dotted(module_node)
        for name_node in node.children_by_field_name("name"):
            alias = None
            if name_node.type == "aliased_import":
                alias_node, item_node = (
                    name_node.child_by_field_name("alias"),
                    name_node.child_by_field_name("name"),
                )
                if alias_node is None or item_node is None:
                    continue
                alias, name_node = self._dotted(alias_node), item_node
            name = self._dotted(name_node)
            if not name:
                continue  # a node inserted by error recovery
            if module is None:
                yield Import(name, None, alias, deferred)
            else:
                yield Import(module, name, alias or name, deferred)
        if module and any(child.type == "wildcard_import" for child in node.children):
            yield Import(module, "*", None, deferred)

    def _dotted(self, node: Node) -> str:
        return b"".join(self.bytes_of(node).split()).decode("utf-8", "replace")

    # References

    def _references(self, imports: Sequence[Import], definitions: Counter[bytes]) -> Counter[bytes]:
        """Uses of names that the file does not bind itself, and of its module-level names."""
        roots = {(i.alias or i.module.partition(".")[0]).encode() for i in imports if i.name != "*"}
        hiding = self._hiding_scopes()
        excluded = {
            node.start_byte
            for capture in ("keyword", "function", "class", "assigned", "bound", "imported")
            for node in self.captures[capture]
        }
        source, scopes = self.source, self._scopes
        behind_gap = {gap.end() for gap in _DOT_AND_GAP.finditer(source)}
        uses: Counter[bytes] = Counter()
        called: list[tuple[bytes, int]] = []
        chain_ends = set()
        for node in self.captures["name"]:
            start = node.start_byte
            if start in excluded:
                continue
            end = node.end_byte
            name = source[start:end]
            if source[start - 1] == _DOT or (start in behind_gap and _is_member(node)):
                if source.startswith(_CALL, end) and not name.startswith(b"__"):
                    called.append((name, end))
                continue
            if name in hiding and (
                scopes.within(start, hiding[name])
                or (-1 in hiding[name] and name not in roots and name not in definitions)
            ):
                continue
            if name in roots and (chain := _CHAIN.match(source, start)):
                parts = chain[0].split(b".")
                chain_ends.add(chain.end())
                name = b".".join(parts[:MAX_CHAIN])
            uses[name] += 1
        uses.update(b"." + name for name, end in called if end not in chain_ends)
        return uses

    def _hiding_scopes(self) -> dict[bytes, set[int]]:
        """The functions that bind each local name; scope -1, the module, hides nothing."""
        hiding: dict[bytes, set[int]] = {}
        for capture in ("bound", "assigned", "function", "class"):
            for node in self.captures[capture]:
                start = node.start_byte
                inside = self._scopes.innermost(start)
                if capture in ("function", "class") and inside >= 0:
                    inside = self._scopes.parents[inside]  # its name is bound around it
                if inside >= 0 or capture == "bound":
                    hiding.setdefault(self.bytes_of(node), set()).add(inside)
        return hiding


class _Scopes(Ranges):
    """The functions and classes of a file."""

    def __init__(self, captures: Captures) -> None:
        names = [name for capture in ("function", "class") for name in captures[capture]]
        super().__init__(name.parent for name in names if name.parent is not None)
        self._is_function = [node.type == "function_definition" for node in self.nodes]

    def in_function(self, position: int) -> bool:
        """Whether any function contains a byte."""
        return any(self._is_function[scope] for scope in self.around(position))

    def within(self, position: int, scopes: set[int]) -> bool:
        """Whether a function among `scopes` contains a byte, or the innermost scope is a class among them."""
        innermost = scope = self.innermost(position)
        while scope >= 0:
            if scope in scopes and (self._is_function[scope] or scope == innermost):
                return True
            scope = self.parents[scope]
        return False

    def classes_around(self, position: int, source: bytes) -> tuple[bytes, ...] | None:
        """The classes around a definition's name, outermost first; None inside a function."""
        scope = self.parents[self.innermost(position)]
        names: list[bytes] = []
        while scope >= 0:
            name = self.nodes[scope].child_by_field_name("name")
            if self._is_function[scope] or name is None:
                return None
            names.append(source[name.start_byte : name.end_byte])
            scope = self.parents[scope]
        return tuple(reversed(names))


def _is_member(name: Node) -> bool:
    before = name.prev_sibling
    return before is not None and before.type == "."


class Python(TreeSitterLanguage):
    """Python 3, and the part of Python 2 that its grammar reads."""

    name = family = "python"
    suffixes = (".py", ".pyi", ".pyw")
    grammar = staticmethod(tree_sitter_python.language)
    query = read_query(__package__)
    underscore_hides = True
    shared_names = True  # scripts may be run in one namespace
    builtins, builtin_members = read_builtins(__package__)
    modules = PythonModules
    file = _File
