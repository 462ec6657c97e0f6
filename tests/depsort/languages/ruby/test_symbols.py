"""Symbols of one Ruby file, and the files of a repository that its names lead to."""

from __future__ import annotations

import pytest

from spark_udfs.depsort.languages.ruby.symbols import Ruby
from spark_udfs.depsort.model import FileSymbols
from tests.depsort.repositories import Sorted, pairs

LANGUAGE = Ruby()


def extract(text: str) -> FileSymbols:
    return LANGUAGE.extract(text.encode(), "a.rb")


def test_classes_constants_and_methods_are_definitions_not_namespaces() -> None:
    symbols = extract(
        "module Space\n  class Box < Base\n    LIMIT = 3\n    def open; end\n    def self.make; end\n"
        "  end\nend\n"
        "module Helper\n  def help; end\nend\nclass A::B; end\ndef run; end\n"
    )
    assert symbols.definitions.keys() == {
        *("Space::Box", "Space::Box::LIMIT", "Space::Box.open", "Space::Box.make"),
        *("Helper", "Helper.help", "A::B", "run"),
    }
    assert symbols.declarations.keys() == {"Space"}


def test_requires_are_imports_where_their_text_is_whole() -> None:
    symbols = extract(
        "require 'a/b'\nrequire_relative \"../c\"\nautoload :D, 'd'\nrequire \"#{x}/e\"\nputs 'f'\n"
        "object.load 'g'\n"
    )
    assert {i.module for i in symbols.imports} == {"a/b", "./../c", "d"}


def test_constants_and_called_methods_are_references() -> None:
    assert extract("x = Space::Box.new(Kind)\nx.open\nputs y\n").references.keys() == {
        *("Space::Box", "Kind", ".new", ".open"),
    }


def test_functions_run_after_their_file_is_loaded() -> None:
    symbols = extract(
        "require 'a'\nclass C < A\n  B\n  def f\n    require 'b'\n    D.new\n    B\n  end\n  def self.g = E\n"
        "  H = ->(x) { I }\n  lazy { J }\nend\n"
    )
    assert {(item.module, item.deferred) for item in symbols.imports} == {("a", False), ("b", True)}
    assert symbols.references.keys() - {*(symbols.at_load or ())} == {"C/D", "C/E", "C/I", ".new"}
    assert FileSymbols.from_json(symbols.to_json()) == symbols
    assert extract("def f\n  D\nend\n").at_load == ()


def test_constants_resolve_without_a_require_and_files_with_one() -> None:
    texts = {
        "lib/space.rb": "require 'space/box'\nmodule Space\nend\n",
        "lib/space/box.rb": "module Space\n  class Box\n    include Helper\n  end\nend\n",
        "lib/space/helper.rb": "module Space\n  module Helper\n    def help; end\n  end\nend\n",
        "test/box_test.rb": "require_relative 'setup'\nSpace::Box.new.help\n",
        "test/setup.rb": "",
    }
    assert pairs(texts) == {
        ("lib/space.rb", "lib/space/box.rb"),
        ("lib/space/box.rb", "lib/space/helper.rb"),
        ("test/box_test.rb", "lib/space/box.rb"),
        ("test/box_test.rb", "test/setup.rb"),
    }


@pytest.mark.parametrize(
    "code, expected",
    [
        ("X", "A/B::C/X"),
        ("X::Y.new", "A/B::C/X::Y"),
        ("::X::Y", "X::Y"),
        ("x.y::Z; X", "A/B::C/X"),
        ("class X < Y; end", "A/B::C/Y"),
        ("class << self; X; end", "A/B::C/X"),
        ("class X::Y; end", "A/B::C/X"),
        ("class X; def f; Y; end; end", "A/B::C/X/Y"),
        ("X, Y = 1, Z", "A/B::C/Z"),
        ("X ||= Y", "A/B::C/Y"),
        ("begin; rescue X; end", "A/B::C/X"),
        ('"#{X}"', "A/B::C/X"),
    ],
)
def test_a_constant_says_what_is_open_around_it(code: str, expected: str) -> None:
    symbols = extract(f"module A\n  class B::C\n    {code}\n  end\nend\n")
    assert [reference for reference in symbols.references if not reference.startswith(".")] == sorted(
        {expected, "A/B"}
    )


NESTED = {
    "lib/a.rb": "require 'a/b'\nmodule A\n  LIMIT = 1\nend\n",
    "lib/a/b.rb": "module A\n  class B\n    MAX = 2\n    def go; end\n  end\nend\n",
    "lib/a/b/c.rb": "module A\n  class B\n    class C; def f; end; end\n  end\nend\n",
    "lib/a/mixed.rb": "module A\n  module Mixed\n    class In; def f; end; end\n    def g; end\n  end\nend\n",
    "lib/c.rb": "class C\n  def top; end\nend\n",
    "lib/other/b.rb": "module Other\n  class B\n    def go; end\n  end\nend\n",
    "lib/core.rb": "class String\n  def shout; end\nend\nclass A::B\n  def more; end\nend\n",
}


@pytest.mark.parametrize(
    "text, expected",
    [
        ("module A\n  B\nend", {"lib/a/b.rb"}),
        ("module Other\n  B\nend", {"lib/other/b.rb"}),
        ("B", set()),
        ("A::B::C", {"lib/a/b/c.rb"}),
        ("A::B::Unknown", {"lib/a/b.rb"}),
        ("A::LIMIT", {"lib/a.rb"}),
        ("module A\n  class D < B\n    MAX\n    C\n  end\nend", {"lib/a/b.rb", "lib/a/b/c.rb"}),
        ("module A\n  class D < B\n    ::C\n  end\nend", {"lib/a/b.rb", "lib/c.rb"}),
        ("class E\n  include A::Mixed\n  In\nend", {"lib/a/mixed.rb"}),
        ("class A::D\n  B\nend", {"lib/a.rb"}),
        ("class A::D < A::B\n  B\n  MAX\nend", {"lib/a.rb", "lib/a/b.rb"}),
        ("class F < F\n  C\nend", {"lib/c.rb"}),
        ("String.new", set()),
    ],
)
def test_a_constant_is_found_by_nesting_then_ancestors_then_at_the_top(text: str, expected: set[str]) -> None:
    found = Sorted({**NESTED, "test/x.rb": text}).uses_of("test/x.rb")
    assert {target for targets in found.values() for target in targets} - {"test/x.rb"} == expected | (
        {"lib/a.rb"} if text.startswith("module A") else set()
    )


def test_a_file_that_reopens_a_class_follows_the_file_named_after_it() -> None:
    order = Sorted(NESTED).order
    assert order.index("lib/a/b.rb") < min(order.index("lib/a/b/c.rb"), order.index("lib/core.rb"))
    assert order.index("lib/a/b.rb") < order.index("lib/a.rb")  # which requires it


def test_a_line_of_ancestors_may_be_longer_than_the_stack_is_deep() -> None:
    classes = "".join(f"class A{n} < A{n - 1}\n  Z\nend\n" for n in range(5_000, 0, -1))
    found = pairs({"a.rb": classes, "b.rb": "class A0\n  def f\n  end\nend\n"})
    assert ("a.rb", "b.rb") in found
