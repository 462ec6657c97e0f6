"""The symbols of a Ruby file, by one tree-sitter query over its syntax tree.

Definitions of constants have their full name, `A::B`. A reference to a constant includes the classes and
modules open around it: `A/B::C/D::E` is `D::E` inside `class B::C` inside `module A`
(`spark_udfs.depsort.nested_constants`). A module that contains only modules and classes is a namespace: many
files open it, so it is a declaration, and a definition only where it has other content. A method called
on an object is the reference `.method`.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator

import tree_sitter_ruby
from tree_sitter import Node

from spark_udfs.depsort.captured_file import CapturedFile, field_of
from spark_udfs.depsort.languages.data import read_builtins, read_names, read_query
from spark_udfs.depsort.languages.ruby.modules import RubyModules
from spark_udfs.depsort.languages.tree_sitter_language import TreeSitterLanguage
from spark_udfs.depsort.model import FileSymbols, Import
from spark_udfs.depsort.nested_constants import OPENED, SCOPE, whole_name
from spark_udfs.depsort.ranges import Ranges
from spark_udfs.depsort.syntax import Captures

_CORE, _MEMBERS = read_builtins(__package__)
_CHAIN = re.compile(r"(?:::)?[A-Z]\w*(?:\s*::\s*[A-Z]\w*)*")
_PART = re.compile(rb"::|[A-Z]")
_MAX_NESTING = 400  # characters of the open modules around a name
_MAX_CHAIN = 300
_MIXES = frozenset({"include", "prepend"})
_REQUIRES = frozenset({"require", "require_relative", "load", "autoload"})


class _File(CapturedFile):
    """The captures of one Ruby file, turned into symbols."""

    def __init__(self, source: bytes, captures: Captures) -> None:
        super().__init__(source, captures)
        self._bodies = Ranges(captures["body"])
        self._nestings: list[str] = []  # of each body: the open modules as in references
        for body, parent in zip(self._bodies.nodes, self._bodies.parents, strict=True):
            opened = self._written(field_of(body.parent, "name"))
            around = self._nestings[parent] if parent >= 0 else ""
            nesting = f"{around}{OPENED}{opened}" if around and opened else opened or around
            self._nestings.append(nesting if len(nesting) <= _MAX_NESTING else around)
        self._read: set[int] = set()  # starts of constants that are not plain references
        self._references: Counter[str] = Counter()
        self._functions = Ranges(captures["function_body"])
        self._at_load: set[str] = set()

    def symbols(self) -> FileSymbols:
        """Everything the file defines, requires and uses."""
        definitions: Counter[str] = Counter()
        declarations: Counter[str] = Counter()
        for node in self.captures["type"]:
            if (name := self._defined(node)) and name not in _CORE:
                (declarations if _is_namespace(node.parent) else definitions)[name] += 1
        for node in self.captures["constant"]:
            if name := self._defined(node):
                definitions[name] += 1
        for node in self.captures["method"]:
            owner = whole_name(self._nesting(node))
            definitions[f"{owner}.{self.text(node)}" if owner else self.text(node)] += 1
        imports = Counter(self._required())
        self._refer()
        return FileSymbols(
            definitions=dict(sorted(definitions.items())),
            imports=tuple(Import(module, None, "", late, n) for (module, late), n in sorted(imports.items())),
            references=dict(sorted(self._references.items())),
            declarations=dict(sorted((declarations - definitions).items())),
            bases=self._bases(),
            at_load=tuple(sorted(self._at_load)),
        )

    def _use(self, name: str, node: Node) -> None:
        """Count a reference at `node`."""
        self._references[name] += 1
        if not self._is_late(node):
            self._at_load.add(name)

    def _is_late(self, node: Node) -> bool:
        """Whether the code at `node` is in a function, which runs after the file is loaded."""
        return self._functions.innermost(node.start_byte) >= 0

    def _defined(self, node: Node) -> str:
        """The full name of a constant defined or opened here; `A::B` is also a use of `A`."""
        written, nesting = self._written(node), self._nesting(node)
        self._pass(node)
        if not written:
            return ""
        scope, _, _ = written.rpartition(SCOPE)
        if scope:
            self._use(_reference(nesting, scope), node)
        return whole_name(_reference(nesting, written))

    def _bases(self) -> dict[str, tuple[str, ...]]:
        """The superclass and included modules of each class and module."""
        by_name: dict[str, dict[str, None]] = {}
        for node in self.captures["base"]:
            owner = node.parent.parent if node.parent is not None else None
            name = self._written(field_of(owner, "name"))
            if name and (base := self._written(node)):
                nesting = self._nesting(node)
                whole = whole_name(_reference(nesting, name))
                by_name.setdefault(whole, {})[_reference(nesting, base)] = None
        for node in self.captures["given"]:
            call = node.parent.parent if node.parent is not None else None
            method = field_of(call, "method")
            if method is None or self.text(method) not in _MIXES or call is None:
                continue
            if call.child_by_field_name("receiver") is None and (base := self._written(node)):
                nesting = self._nesting(node)
                by_name.setdefault(whole_name(nesting), {})[_reference(nesting, base)] = None
        return {name: tuple(bases) for name, bases in sorted(by_name.items())}

    def _refer(self) -> None:
        """Count every use of a constant, `A::B` once."""
        for node in sorted(self.captures["chain"], key=lambda chain: (chain.start_byte, -chain.end_byte)):
            name = node.child_by_field_name("name")
            if node.start_byte in self._read or name is None or name.start_byte in self._read:
                continue
            if written := self._written(node):
                self._use(_reference(self._nesting(node), written), node)
                self._pass(node)
            else:
                self._read.add(name.start_byte)  # the constant of a computed module
        for node in self.captures["name"]:
            if node.start_byte not in self._read:
                self._use(_reference(self._nesting(node), self.text(node)), node)
        for node in self.captures["member"]:
            self._use("." + self.text(node), node)

    def _required(self) -> Iterator[tuple[str, bool]]:
        """Every required file, and whether loading it is deferred: by `autoload`, or in a function."""
        for node in self.captures["argument"]:
            arguments = node.parent
            function = None if arguments is None else field_of(arguments.parent, "method")
            name = "" if function is None else self.text(function)
            content = [child for child in node.named_children if child.type == "string_content"]
            if name in _REQUIRES and len(content) == 1 == len(node.named_children):
                module = self.text(content[0])
                deferred = name == "autoload" or self._is_late(node)
                yield f"./{module}" if name == "require_relative" else module, deferred

    def _pass(self, node: Node) -> None:
        """Mark the constants of a chain as counted."""
        text = self.source[node.start_byte : min(node.end_byte, node.start_byte + _MAX_CHAIN)]
        self._read.update(node.start_byte + part.start() for part in _PART.finditer(text))

    def _nesting(self, node: Node) -> str:
        scope = self._bodies.innermost(node.start_byte)
        return self._nestings[scope] if scope >= 0 else ""

    def _written(self, node: Node | None) -> str:
        """The source of a chain of constants; empty for any other node."""
        if node is None or node.end_byte - node.start_byte > _MAX_CHAIN:
            return ""
        text = self.text(node)
        return "".join(text.split()) if _CHAIN.fullmatch(text) else ""


def _reference(nesting: str, written: str) -> str:
    if written.startswith(SCOPE):
        return written.removeprefix(SCOPE)
    return f"{nesting}{OPENED}{written}" if nesting else written


def _is_namespace(node: Node | None) -> bool:
    """Whether a module, or a class without superclass, contains only modules and classes."""
    if node is None or node.child_by_field_name("superclass") is not None:
        return False
    body = node.child_by_field_name("body")
    return body is not None and all(
        child.type in ("class", "module", "comment") for child in body.named_children
    )


class Ruby(TreeSitterLanguage):
    """Ruby."""

    name = "ruby"
    suffixes = (".rb", ".rake", ".ru", ".gemspec")
    grammar = staticmethod(tree_sitter_ruby.language)
    query = read_query(__package__)
    family = "ruby"
    builtins, builtin_members = _CORE | read_names(__package__, "library.txt"), _MEMBERS
    nested_constants = True
    modules = RubyModules
    file = _File
