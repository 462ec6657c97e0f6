"""The symbols of a Ruby file, by one tree-sitter query over its syntax tree.

Constants are known in every file once anything has loaded them, so a name resolves by who defines it. A
module that holds nothing but other modules and classes is a namespace: many files open it and none defines
it. Of `A::B` the last part is the reference; `.method` is one where a method is called on an object.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

import tree_sitter_ruby
from tree_sitter import Node

from spark_udfs.modules_ruby import RubyModules
from spark_udfs.queried_language import QueriedLanguage
from spark_udfs.symbols import FileSymbols, Import, Modules
from spark_udfs.syntax import Captures

_QUERY = """
(class name: (_) @type)
(module name: (_) @type)
(assignment left: (constant) @constant)
(method name: (_) @method)
(singleton_method name: (_) @method)
(constant) @name
(scope_resolution scope: (constant) @scope)
(call receiver: (_) method: (identifier) @member)
(call !receiver method: (identifier) @function arguments: (argument_list . (string) @argument))
(call !receiver method: (identifier) @function
  arguments: (argument_list . (simple_symbol) . (string) @argument))
"""

_REQUIRES = frozenset({"require", "require_relative", "load", "autoload"})
_BUILTINS = """
ARGV ArgumentError Array BasicObject Bignum Binding Class Comparable Complex Date DateTime Dir ENV EOFError
Encoding Enumerable Enumerator Errno Exception FalseClass Fiber File FileUtils Fixnum Float FloatDomainError
Forwardable FrozenError GC Hash IO IOError IndexError Integer Interrupt JSON Kernel KeyError LoadError
LocalJumpError Logger Marshal MatchData Math Method Module Monitor Mutex NameError NilClass NoMethodError
NotImplementedError Numeric Object ObjectSpace OpenStruct Pathname Proc Process Queue RUBY_ENGINE
RUBY_PLATFORM RUBY_VERSION Random Range RangeError Rational Regexp RegexpError RuntimeError STDERR STDIN
STDOUT ScriptError SecurityError Set Signal SignalException Singleton StandardError StopIteration String
StringIO StringScanner Struct Symbol SyntaxError SystemExit Tempfile Thread ThreadError Time Timeout
TrueClass TypeError URI ZeroDivisionError
"""
_MEMBERS = """
all any append bytes call chars clear collect compact concat count delete detect downcase dup each
each_with_index each_with_object empty encode end_with eql fetch find first flat_map flatten format freeze
frozen gsub has_key hash include index inject insert inspect instance_variable_get is_a join key keys
kind_of last length map match max merge min new nil name open options pop push puts read reduce reject
replace respond_to reverse rindex round scan select send set shift size slice sort sort_by split start_with
strip sub sum tap to_a to_h to_i to_s to_sym tr type uniq unshift upcase update value values write zip
"""


class Ruby(QueriedLanguage):
    """Ruby."""

    name = "ruby"
    suffixes: tuple[str, ...] = (".rb", ".rake", ".ru", ".gemspec")
    grammar = staticmethod(tree_sitter_ruby.language)
    query = _QUERY
    family = "ruby"
    builtins = frozenset(_BUILTINS.split())
    builtin_members = frozenset(_MEMBERS.split())
    shared_names = True

    def modules(
        self, paths: Sequence[str], files: Sequence[FileSymbols], manifests: Mapping[str, str]
    ) -> Modules:
        """Where required files lie among the files `paths`."""
        return RubyModules(paths)

    def read(self, source: bytes, captures: Captures) -> FileSymbols:
        """The symbols that the captures over one file amount to."""
        return _File(source, captures).symbols()


class _File:
    """The captures of one file, turned into symbols."""

    def __init__(self, source: bytes, captures: Captures) -> None:
        self._source = source
        self._captures = captures

    def symbols(self) -> FileSymbols:
        """Everything the file defines, requires and uses."""
        definitions: Counter[str] = Counter()
        for node in self._captures.get("type", ()):
            if not _is_namespace(node.parent):
                definitions[self._last(node)] += 1
        definitions.update(self._text(node) for node in self._captures.get("constant", ()))
        for node in self._captures.get("method", ()):
            around = node.parent
            while around is not None and around.type not in ("class", "module"):
                around = around.parent
            name = None if around is None else around.child_by_field_name("name")
            definitions[self._text(node) if name is None else f"{self._last(name)}.{self._text(node)}"] += 1
        imports = Counter(self._required())
        own = {
            node.start_byte for key in ("type", "constant", "scope") for node in self._captures.get(key, ())
        }
        references: Counter[str] = Counter(
            self._text(node) for node in self._captures.get("name", ()) if node.start_byte not in own
        )
        references.update("." + self._text(node) for node in self._captures.get("member", ()))
        return FileSymbols(
            definitions=dict(sorted(definitions.items())),
            imports=tuple(Import(module, None, "", count=n) for module, n in sorted(imports.items())),
            references=dict(sorted(references.items())),
        )

    def _required(self) -> Iterator[str]:
        for node in self._captures.get("argument", ()):
            arguments = node.parent
            call = None if arguments is None else arguments.parent
            function = None if call is None else call.child_by_field_name("method")
            name = "" if function is None else self._text(function)
            content = [child for child in node.named_children if child.type == "string_content"]
            if name in _REQUIRES and len(content) == 1 == len(node.named_children):
                module = self._text(content[0])
                yield f"./{module}" if name == "require_relative" else module

    def _last(self, node: Node) -> str:
        return self._text(node).rpartition("::")[2]

    def _text(self, node: Node) -> str:
        return self._source[node.start_byte : node.end_byte].decode("utf-8", "replace")


def _is_namespace(node: Node | None) -> bool:
    """Whether a module holds modules and classes alone."""
    body = None if node is None or node.type != "module" else node.child_by_field_name("body")
    return body is not None and all(
        child.type in ("class", "module", "comment") for child in body.named_children
    )
