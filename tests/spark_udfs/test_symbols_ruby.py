"""What is read off one Ruby file, and which files of a repository its names lead to."""

from __future__ import annotations

import pytest

from spark_udfs.symbols import FileSymbols
from spark_udfs.symbols_ruby import Ruby
from tests.depsort.repositories import Sorted

LANGUAGE = Ruby()


def extract(text: str) -> FileSymbols:
    return LANGUAGE.extract(text.encode(), "a.rb")


def edges(texts: dict[str, str]) -> set[tuple[str, str]]:
    return {(row["doc_id"], row["depends_on"]) for row in Sorted(texts).edges}


def test_classes_constants_and_methods_are_definitions_and_namespaces_are_not() -> None:
    symbols = extract(
        "module Space\n  class Box < Base\n    LIMIT = 3\n    def open; end\n    def self.make; end\n"
        "  end\nend\n"
        "module Helper\n  def help; end\nend\nclass A::B; end\ndef run; end\n"
    )
    assert symbols.definitions.keys() == {
        *("Box", "LIMIT", "Box.open", "Box.make", "Helper", "Helper.help", "B", "run"),
    }


def test_requires_are_imports_where_their_text_is_whole() -> None:
    symbols = extract(
        "require 'a/b'\nrequire_relative \"../c\"\nautoload :D, 'd'\nrequire \"#{x}/e\"\nputs 'f'\n"
        "object.load 'g'\n"
    )
    assert {i.module for i in symbols.imports} == {"a/b", "./../c", "d"}


def test_constants_and_called_methods_are_references() -> None:
    assert extract("x = Space::Box.new(Kind)\nx.open\nputs y\n").references.keys() == {
        *("Box", "Kind", ".new", ".open"),
    }


def test_constants_resolve_without_a_require_and_files_with_one() -> None:
    found = edges(
        {
            "lib/space.rb": "require 'space/box'\nmodule Space\nend\n",
            "lib/space/box.rb": "module Space\n  class Box\n    include Helper\n  end\nend\n",
            "lib/space/helper.rb": "module Space\n  module Helper\n    def help; end\n  end\nend\n",
            "test/box_test.rb": "require_relative 'setup'\nSpace::Box.new.help\n",
            "test/setup.rb": "",
        }
    )
    assert found == {
        ("lib/space.rb", "lib/space/box.rb"),
        ("lib/space/box.rb", "lib/space/helper.rb"),
        ("test/box_test.rb", "lib/space/box.rb"),
        ("test/box_test.rb", "test/setup.rb"),
    }


@pytest.mark.parametrize("text", ["", "\0", "class", "require", "def", "module A::", "'", "%w("])
def test_odd_files_raise_nothing(text: str) -> None:
    assert isinstance(extract(text), FileSymbols)
