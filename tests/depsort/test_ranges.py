import tree_sitter_python
from hypothesis import given, settings
from hypothesis import strategies as st

from spark_udfs.depsort.ranges import Ranges
from spark_udfs.depsort.syntax import Syntax

LISTS = Syntax(tree_sitter_python.language(), "(list) @list")
NESTED = st.recursive(st.just([]), lambda inner: st.lists(inner, max_size=3), max_leaves=12)


@given(NESTED)
@settings(deadline=None)
def test_the_ranges_around_a_byte_come_innermost_first(nested: list[object]) -> None:
    source = repr(nested).encode()
    found = LISTS.captures(source)
    assert found is not None
    ranges = Ranges(reversed(found["list"]))
    spans = [(node.start_byte, node.end_byte) for node in ranges.nodes]
    assert spans == sorted(spans, key=lambda span: (span[0], -span[1]))
    for position in range(len(source) + 1):
        holding = [i for i, (start, end) in enumerate(spans) if start <= position < end]
        assert list(ranges.around(position)) == holding[::-1]
        assert ranges.innermost(position) == (holding[-1] if holding else -1)
