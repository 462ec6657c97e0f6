"""What only functions use weighs less than what loading a file needs, however often they use it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spark_udfs.depsort.late_uses import late_weight
from spark_udfs.depsort.weights import DEFERRED
from tests.depsort.repositories import Sorted

WEIGHTS = st.floats(0, 1e6)


@given(st.floats(0, DEFERRED), WEIGHTS, WEIGHTS)
def test_late_weights_grow_with_the_uses_and_stay_below_an_import(
    imported: float, used: float, more: float
) -> None:
    fewest, most = sorted((used, used + more))
    assert imported <= late_weight(imported, fewest) + 1e-12
    assert late_weight(imported, fewest) <= late_weight(imported, most) < 1
    assert late_weight(imported, 0) == pytest.approx(imported)


def edge_weight(files: dict[str, str], dependent: str, dependency: str) -> float:
    weights = [
        edge["weight"]
        for edge in Sorted(files).edges
        if (edge["doc_id"], edge["depends_on"]) == (dependent, dependency)
    ]
    assert len(weights) == 1
    return float(weights[0])


def shared_module() -> dict[str, str]:
    """A gem whose every file opens the module of its root file, and asks it for a logger in a method.

    The root requires every third file and autoloads the others.
    """
    classes = [f"Part{number}" for number in range(30)]
    requires = "".join(f'require "gem/{name.lower()}"\n' for name in classes[::3])
    autoloads = "".join(
        f'  autoload :{name}, "gem/{name.lower()}"\n' for number, name in enumerate(classes) if number % 3
    )
    log = '      Gem.logger.warn "x"\n' * 13
    return {
        "lib/gem.rb": f"module Gem\n{autoloads}  def self.logger\n    Log.new\n  end\nend\n{requires}",
        **{
            f"lib/gem/{name.lower()}.rb": f"module Gem\n  class {name}\n    def call\n{log}"
            "    end\n  end\nend\n"
            for name in classes
        },
    }


def test_no_require_of_a_root_file_is_broken_by_late_uses_of_its_module() -> None:
    edges = Sorted(shared_module()).edges
    required = [edge for edge in edges if edge["doc_id"] == "lib/gem.rb" and edge["weight"] >= 1]
    assert len(required) == 10
    assert [edge["depends_on"] for edge in required if not edge["satisfied"]] == []
    late = {edge["weight"] for edge in edges if edge["depends_on"] == "lib/gem.rb"}
    assert len(late) == 1
    assert 0.5 < late.pop() < 1


def test_a_require_precedes_any_number_of_uses_in_methods() -> None:
    late = "def f\n  require 'b'\n" + "  B.go\n" * 40 + "end\n"
    files = {"lib/a.rb": late, "lib/b.rb": "require 'a'\nmodule B\n  def self.go\n  end\nend\n"}
    assert 0.9 < edge_weight(files, "lib/a.rb", "lib/b.rb") < 1 <= edge_weight(files, "lib/b.rb", "lib/a.rb")
    assert Sorted(files).order == ["lib/a.rb", "lib/b.rb"]


@pytest.mark.parametrize(
    "code, bounded",
    [
        ("class C < B\n  def f\n    B.go; B.go; B.go; B.go\n  end\nend\n", False),
        ("B.go\ndef f\n  B.go; B.go; B.go; B.go\nend\n", False),
        ("def f\n  B.go; B.go; B.go; B.go\nend\n", True),
        ("def self.f\n  B.go; B.go; B.go; B.go\nend\n", True),
        ("F = -> { B.go; B.go; B.go; B.go }\n", True),
    ],
)
def test_one_use_at_load_time_lifts_the_bound(code: str, bounded: bool) -> None:
    files = {"b.rb": "class B\n  def self.go\n  end\nend\n", "c.rb": code}
    assert (edge_weight(files, "c.rb", "b.rb") < 1) == bounded
