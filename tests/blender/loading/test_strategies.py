"""Strategies of one's own: what cannot be imported or called is refused in a sentence, with its cause."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from blender.errors import InvalidRequest
from blender.loading.costs import Backbone
from blender.loading.spec import LoadingSpec
from blender.loading.strategies import plain, strategy
from blender.loading.tree import ClientPlaceTree
from blender.spec.mesh import Mesh
from tests.blender.loading.steps import step_of

MODULES = {
    "wrong_syntax": "def f(:\n",
    "divides": "1 // 0\n",
    "exits": "raise SystemExit(3)\n",
    "whole": "number = 3\n",
}


@pytest.fixture
def modules(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, text in MODULES.items():
        (tmp_path / f"strategy_{name}.py").write_text(text)
    monkeypatch.syspath_prepend(str(tmp_path))


@pytest.mark.usefixtures("modules")
@pytest.mark.parametrize(
    "name, cause",
    [
        ("strategy_wrong_syntax:f", SyntaxError),
        ("strategy_divides:f", ZeroDivisionError),
        ("strategy_exits:f", SystemExit),
        ("strategy_nowhere:f", ModuleNotFoundError),
        ("strategy_whole:f", AttributeError),
        (":f", ValueError),
        (".x:f", TypeError),
        ("strategy_whole:number:f", AttributeError),
    ],
)
def test_a_module_that_fails_is_named_with_its_cause(name: str, cause: type) -> None:
    sentence = rf"strategy `{name}` cannot be imported .{cause.__name__}"
    with pytest.raises(InvalidRequest, match=sentence) as refusal:
        strategy(name)
    assert isinstance(refusal.value.__cause__, cause)


@pytest.mark.usefixtures("modules")
@pytest.mark.parametrize("name, kind", [("strategy_whole:number", "int"), ("os:path", "module")])
def test_a_strategy_is_a_function(name: str, kind: str) -> None:
    with pytest.raises(InvalidRequest, match=rf"strategy `{name}` is a {kind}\. Name a function of a step"):
        strategy(name)


@pytest.mark.parametrize(
    "fields, sentence",
    [
        ({"limit": 4}, "as given fill a microbatch with 7, and it may hold 4"),
        ({"mesh": Mesh(dp=3)}, "do not share equally"),
    ],
)
def test_rows_as_given_keep_the_spec(fields: dict[str, Any], sentence: str) -> None:
    spec = LoadingSpec(**{"blend": "b", "mesh": Mesh(dp=2), "model": Backbone(8, 2), **fields})
    step = step_of([[1], [2], [3], [4]])
    with pytest.raises(InvalidRequest, match=sentence):
        plain(step, ClientPlaceTree(spec.mesh), spec)


def test_rows_as_given_are_planned_for_the_barrier_in_any_counts() -> None:
    spec = LoadingSpec(
        blend="b", mesh=Mesh(dp=3), model=Backbone(8, 2), barrier="step", equal_counts=False, limit=4
    )
    plan = plain(step_of([[1], [2], [3], [4]]), ClientPlaceTree(spec.mesh), spec)
    assert (plan.barrier, plan.equal_counts) == ("step", False)
    assert [plan.rows_of(bucket, 0).tolist() for bucket in range(3)] == [[0, 1], [2], [3]]
