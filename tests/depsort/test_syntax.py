import tree_sitter_python

from spark_udfs.depsort.syntax import Syntax


def test_the_nodes_of_a_capture_stand_in_order_of_the_text() -> None:
    syntax = Syntax(tree_sitter_python.language(), "(identifier) @variable (call) @call (identifier) @name")
    captures = syntax.captures(b"a = f(b)(c).d\n" * 500)
    assert captures is not None
    assert [len(captures[name]) for name in ("variable", "call")] == [2500, 1000]
    names = captures.pop("name")  # the one capture in no order
    assert {node.start_byte for node in names} == {node.start_byte for node in captures["variable"]}
    for nodes in captures.values():
        ranges = [(node.start_byte, node.end_byte) for node in nodes]
        assert ranges == sorted(ranges)
