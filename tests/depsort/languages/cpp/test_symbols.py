"""Symbols of one C++ file, and the files of a repository that its names lead to."""

from __future__ import annotations

from spark_udfs.depsort.languages.cpp.symbols import Cpp
from spark_udfs.depsort.model import FileSymbols
from tests.depsort.repositories import pairs

LANGUAGE = Cpp()


def extract(text: str, path: str = "a.cc") -> FileSymbols:
    return LANGUAGE.extract(text.encode(), path)


def test_a_class_announces_the_members_it_does_not_define() -> None:
    symbols = extract(
        "namespace n {\ntemplate <class T>\nclass API_EXPORT Box : public Base {\n public:\n"
        "  Box();\n  ~Box();\n  T open(int a) const;\n  int size() const { return n_; }\n"
        "  static int made;\n private:\n  int n_;\n};\nclass Other;\nint run(Box<int>* b);\n}\n",
        "a.hpp",
    )
    assert symbols.definitions.keys() == {"Box", "Box.size"}
    assert symbols.declarations.keys() == {"Box.Box", "Box.open", "Other", "run"}


def test_a_member_defined_outside_its_class_is_one_of_the_class() -> None:
    symbols = extract(
        "template <class T>\nT n::Box<T>::open(int a) const\n{\n  return a;\n}\n"
        "Box::Box(int a)\n    : a_(a),\n      b_(a) {\n  if (a) {\n  }\n}\nint run() { return 1; }\n"
    )
    assert symbols.definitions.keys() == {"Box.open", "Box.Box", "run"}


def test_static_functions_and_unnamed_namespaces_are_private() -> None:
    symbols = extract(
        "static int one() {\n  return 1;\n}\nnamespace {\nint two() {\n  return 2;\n}\n}\nint three;\n"
    )
    assert symbols.private == ("one", "two")


def test_a_name_behind_colons_may_be_a_member_or_stand_in_a_namespace() -> None:
    assert extract("int f() { return n::run(x->go()); }\n").references.keys() == {
        *("f", "n", "run", ".run", "x", ".go"),
    }


def test_methods_functions_and_types_lead_to_header_and_source() -> None:
    texts = {
        "include/lib/box.h": "namespace n {\nclass Box {\n public:\n  void open();\n};\nint run();\n}\n",
        "src/box.cc": '#include "lib/box.h"\nnamespace n {\nvoid Box::open() {\n  run();\n}\n}\n',
        "src/run.cc": '#include "lib/box.h"\nnamespace n {\nint run() {\n  return 1;\n}\n}\n',
        "src/use.cc": "#include <lib/box.h>\nvoid f(n::Box& box) {\n  box.open();\n}\n",
        "src/alone.cc": "void g(Unknown& box) {\n  box.open();\n}\n",
    }
    assert pairs(texts) == {
        ("src/box.cc", "include/lib/box.h"),
        ("src/box.cc", "src/run.cc"),
        ("src/run.cc", "include/lib/box.h"),
        ("src/use.cc", "include/lib/box.h"),
        ("src/use.cc", "src/box.cc"),
    }


def test_an_extern_prototype_behind_a_bare_macro_is_a_declaration() -> None:
    text = "class A {\n ADD(x)\n ADD(y)\n int z;\n};\nextern bool run(const char *name, void (*f)());\n"
    assert "run" in extract(text).declarations
