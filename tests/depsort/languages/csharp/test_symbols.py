"""Symbols of one C# file, and the files of a repository that its names lead to."""

from __future__ import annotations

import pytest

from spark_udfs.depsort.languages.csharp.symbols import CSharp
from spark_udfs.depsort.model import FileSymbols
from tests.depsort.repositories import dependencies, pairs

CSHARP = CSharp()


def extract(text: str) -> FileSymbols:
    return CSHARP.extract(text.encode(), "a.cs")


def uses(code: str) -> list[str]:
    """The references of a method's body in a class without a base, its parameter's type left out."""
    return sorted(set(extract(f"class A {{ void F(Box b) {{ {code} }} }}").references) - {"Box"})


def test_classes_and_their_members_are_definitions_with_their_types() -> None:
    symbols = extract(
        "namespace N.M; public partial class Box<T> : Base<T>, IOpen where T : Lid {\n"
        "  int n, m; public Item First { get; set; } List<Item> all; Box(int n) {} T Any() => null;\n"
        "  Item Get(int local) { var x = 1; return null; } enum Kind { Big, Small } event Done Ended;\n"
        "  struct Pair { } interface IOpen { Box Open(); } record Row(Item Left);\n"
        "  delegate Item Make(int i);\n"
        "  public static Item Ext(this Box b) { return null; } }"
    )
    assert symbols.package == "N.M"
    assert " ".join(sorted(symbols.definitions)) == (
        "Box Box.Any Box.Ended Box.Ext Box.First Box.Get Box.IOpen "
        "Box.IOpen.Open Box.Kind Box.Kind.Big Box.Kind.Small Box.Make Box.Pair Box.Row Box.Row.Left Box.all "
        "Box.m Box.n this.Ext"
    )
    assert symbols.bases == {"Box": ("Base", "IOpen")}
    assert symbols.types["Box.First"] == symbols.types["Box.Get"] == symbols.types["this.Ext"] == "Box/:Item"
    assert (symbols.types["Box.Any"], symbols.types["Box.all"]) == ("Lid", "~Box/:Item")


@pytest.mark.parametrize(
    "text, expected",
    [
        ("using A.B;", ("A.B", "*", None, False)),
        ("using static A.B.C;", ("A.B.C", "*", None, False)),
        ("using X = A.B.C;", ("A.B", "C", "X", False)),
        ("global using A.B;", ("A.B", "*", None, True)),
    ],
)
def test_usings_are_read_as_written(text: str, expected: tuple[str, str, str | None, bool]) -> None:
    assert [(i.module, i.name, i.alias, i.deferred) for i in extract(text).imports] == [expected]


@pytest.mark.parametrize(
    "code, expected",
    [
        ("b.Lid().Open();", ["Box.Lid.Open"]),
        ("var x = Maker.Make(); x.Run();", ["Maker.Make", "Maker.Make.Run"]),
        ("foreach (var i in b.Items) i.Go();", ["Box.Items", "Box.Items.Go"]),
        ("var l = new Lid { Size = 1 }; l.Close();", ["Lid", "Lid.Close"]),
        ("b?.Lid?.Open();", ["Box.Lid.Open"]),
        ("if (o is Item i) i.Go();", ["Item", "Item.Go", "o"]),
        ("((Item)o).Go(); (o as Item).Go();", ["Item", "Item.Go", "o"]),
        ("try {} catch (Bad e) { e.Say(); }", ["Bad", "Bad.Say"]),
        ("if (b.Try(out Item i)) i.Go();", ["Box.Try", "Item", "Item.Go"]),
        ("xs.Map(x => x.Go());", [".Go", "xs.Map"]),
        ("N.M.C.Run(); global::N.M.C.Go();", ["N.M.C.Go", "N.M.C.Run"]),
        ("var t = typeof(Item);", ["Item"]),
        ("Call(name: b);", ["Call"]),
    ],
)
def test_a_use_is_written_from_the_declared_type_on(code: str, expected: list[str]) -> None:
    assert uses(code) == expected


REPOSITORY = {
    "Tool.cs": "namespace A { public partial class Tool { public void Run() {} } }",
    "ToolMore.cs": "namespace A { public partial class Tool { public Lid Lid; } }",
    "Lid.cs": "namespace A.Parts { public class Lid { public static int Max; public class In { } } }",
    "Base.cs": "namespace B; public class Base { protected A.Tool Tool() => null; }",
    "Ext.cs": "namespace X; public static class Ext { public static void Shout(this string s) {} }",
    "MarkAttribute.cs": "namespace A; public class MarkAttribute { }",
}


@pytest.mark.parametrize(
    "text, expected",
    [
        ("using A; class X { Tool t; }", {"Tool.cs", "ToolMore.cs"}),
        ("class X { A.Parts.Lid l; }", {"Lid.cs"}),
        ("namespace A.Parts.Deep { class X { Lid l; Lid.In i; } }", {"Lid.cs"}),
        ("using static A.Parts.Lid; class X { int i = Max; }", {"Lid.cs"}),
        ("using L = A.Parts.Lid; class X { L l; }", {"Lid.cs"}),
        ("using B; class X : Base { void F() { Tool().Run(); } }", {"Base.cs", "Tool.cs"}),
        ("using X; class Y { void F(string s) { s.Shout(); } }", {"Ext.cs"}),
        ("using A; [Mark] class X { }", {"MarkAttribute.cs"}),
        ("using A; class X<Tool> { Tool t; }", set()),
        ("using A; class X<Tool> { void F(int Tool) { Tool t; } }", set()),
        ("using A; class X { void F(int Tool) { Tool t; } }", {"Tool.cs", "ToolMore.cs"}),
        ("using A; class X { int Tool; object F() => new List<Tool>(); }", {"Tool.cs", "ToolMore.cs"}),
        ("using A; class X { int Tool; object F(object o) => o is Tool; }", {"Tool.cs", "ToolMore.cs"}),
        ("using A; class Up { Up Tool; } class X : Up { Tool t; }", {"Tool.cs", "ToolMore.cs"}),
        ("using A; class X { int Tool; int F() => Tool; class Lid { } Lid l; }", set()),
        ("namespace A; partial class Tool { void Go() { Run(); } }", {"Tool.cs"}),
        ("class X { Tool t; }", set()),
    ],
)
def test_a_name_leads_to_the_file_that_defines_it(text: str, expected: set[str]) -> None:
    assert dependencies({**REPOSITORY, "X.cs": text}, "X.cs") == expected


def test_a_global_using_counts_below_its_folder() -> None:
    texts = {**REPOSITORY, "p/Usings.cs": "global using B;", "p/q/X.cs": "class X : Base { }"}
    assert ("p/q/X.cs", "Base.cs") in pairs(texts)
    outside = pairs({**texts, "o/Y.cs": "class Y : Base { }"})
    assert not any(of == "o/Y.cs" for of, _ in outside)
