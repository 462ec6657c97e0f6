"""Plans of a blend: golden, the same everywhere, and made without a token."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from blender.catalog.blends import Blends, open_blends
from blender.errors import EndOfData, InvalidRequest
from blender.loading import balance
from blender.loading.columns import StepColumns
from blender.loading.costs import Backbone, tokens
from blender.loading.graph import DGraph
from blender.loading.plan import Plan
from blender.loading.planner import Planner
from blender.loading.spec import LoadingSpec
from blender.loading.strategies import plain
from blender.loading.tree import ClientPlaceTree, Level
from blender.opened.blend import Blend
from blender.records import Schedule, Source
from blender.rows.counts import BYTES, COUNTS
from blender.spec.mesh import Mesh
from blender.trainer.local import LocalBlender
from factory.settings import Settings
from tests.blender.lakes import CODE, PROSE, ROOT

MODEL = Backbone(hidden=16, layers=2)


def mixed(blends: Blends) -> Blend:
    """12 rows of code and 4 of prose in a step."""
    sources = [Source(CODE, 12, oversample=True, shuffle="row"), Source(PROSE, 4, oversample=True)]
    return blends.open(blends.create(sources, seed=7).id)


def spec_of(blend: Blend, **fields: object) -> LoadingSpec:
    given = {"mesh": Mesh(dp=4, cp=2, tp=2), "model": MODEL, "microbatches": 2} | fields
    return LoadingSpec(blend=blend.id, **given)


def in_another_process(lake: Settings, program: str, *arguments: str, path: Path | None = None) -> str:
    environment = {**os.environ, "FACTORY_HOME": str(lake.home), "PYTHONPATH": f"{path or ''}:{ROOT}"}
    command = [sys.executable, "-c", program, *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=True, env=environment).stdout


@pytest.mark.invariant(
    "A loading plan is a function of its spec and a step, reads no token, and has every row of the step once."
)
def test_ids_and_plans_of_a_blend_never_change(blends: Blends) -> None:
    blend = mixed(blends)
    spec = spec_of(blend)
    assert spec.canonical_json().decode() == (
        f'{{"blend":"{blend.id}","format":2,"mesh":{{"cp":2,"dp":4,"tp":2}},"microbatches":2,'
        '"model":{"hidden":16,"layers":2}}'
    )
    assert LoadingSpec.from_json(spec.canonical_json()) == spec
    plan = Planner(blend, spec).plan(3)
    assert (spec.id, f"{plan.hash:016x}") == GOLDEN
    assert plan.constructor_do_plan(0)[0].tolist() == plan.rows_of(0, 0).tolist()


def test_a_plan_of_every_field_never_changes(blends: Blends) -> None:
    fields = {"mesh": Mesh(pp=2, dp=4), "group_size": 2, "limit": 24, "equal_counts": False}
    plan = Planner(blend := mixed(blends), spec_of(blend, **fields)).plan(3)
    assert f"{plan.hash:016x}" == "b835b2a70d866bec"
    assert plan.stages == 2
    assert plan.barrier == "pipeline"
    assert [consumer.rank for consumer in plan.consumers] == list(range(8))
    assert plan.step.token_bytes == 2
    assert int(plan.sums_of(plan.step.facts["n_tokens"]).max()) <= 24


GOLDEN = ("c9d605184bad7e5485c54b237548f742", "6638e285f220cd0a")


@pytest.mark.invariant(
    "A loading plan is a function of its spec and a step, reads no token, and has every row of the step once."
)
def test_a_plan_is_the_same_on_any_number_of_threads_and_in_another_process(
    lake: Settings, blends: Blends, monkeypatch: pytest.MonkeyPatch
) -> None:
    blend = mixed(blends)
    spec = spec_of(blend, group_size=2)
    hashes = set()
    for threads in (1, 2, 8):
        monkeypatch.setattr(balance, "THREADS", threads)
        hashes.add(Planner(blend, spec).plan(9).hash)
    program = (
        "import sys; from blender.loading import LoadingSpec, open_planner\n"
        "print(open_planner(LoadingSpec.from_json(sys.argv[1].encode())).plan(9).hash)"
    )
    other = in_another_process(lake, program, spec.canonical_json().decode())
    assert hashes == {int(other)}


def test_the_module_of_the_page_plans_as_printed(lake: Settings, blends: Blends, tmp_path: Path) -> None:
    blocks = re.findall("```python\n(.*?)```", (ROOT / "docs/loading.md").read_text(), re.DOTALL)
    (module,) = [block for block in blocks if "by_pairs" in block]
    (tmp_path / "my_loading.py").write_text(module)
    sources = [Source(CODE, 24, oversample=True), Source(PROSE, 8, oversample=True)]
    blend = blends.create(sources).id
    program = "import my_loading, sys; print(my_loading.plan_of(sys.argv[1], 3).bucket.tolist())"
    bucket = json.loads(in_another_process(lake, program, blend, path=tmp_path))
    spec = LoadingSpec(blend=blend, mesh=Mesh(dp=8), model=Backbone(2048, 32), microbatches=4, group_size=2)
    assert bucket == Planner(blends.open(blend), spec).plan(3).bucket.tolist(), "`llm` in groups of two"


def test_the_rows_of_a_plan_are_those_that_explain_names(blends: Blends) -> None:
    blend = mixed(blends)
    plan = Planner(blend, spec_of(blend)).plan(5)
    explained = blend.explain(5)
    lengths = [sum(segment.length for segment in row.segments) for row in explained]
    assert plan.step.facts["n_tokens"].tolist() == lengths
    assert plan.step.facts["squared_lengths"].tolist() == [
        sum(segment.length**2 for segment in row.segments) for row in explained
    ]
    prepared = np.concatenate([plan.loader_do_plan(source) for source in range(2)])
    assert sorted(prepared.tolist()) == sorted(row.ordinal for row in explained)


@pytest.mark.invariant(
    "A loading plan is a function of its spec and a step, reads no token, and has every row of the step once."
)
def test_a_plan_reads_no_byte_of_the_tables_once_they_are_indexed(blends: Blends) -> None:
    blend = mixed(blends)
    planner = Planner(blend, spec_of(blend))
    before = {key: value for key, value in COUNTS.sums().items() if key[0] == BYTES}
    for offset in range(20):
        planner.plan(offset)
    assert {key: value for key, value in COUNTS.sums().items() if key[0] == BYTES} == before


def test_another_mixture_is_an_update_made_with_the_spec(lake: Settings, blends: Blends) -> None:
    blend = mixed(blends)
    schedule = Schedule(16, ((4, {CODE: 1.0}), (8, {PROSE: 1.0})), "stepped")
    spec = spec_of(blend).scheduled(LocalBlender(lake), 4, schedule)
    assert spec.blend != blend.id
    planner = Planner(open_blends(lake).open(spec.blend), spec)
    assert planner.plan(3).hash != planner.plan(9).hash
    assert set(planner.summary_buffer(9).source.tolist()) == {1}
    assert (
        planner.summary_buffer(3).ordinal == Planner(blend, spec_of(blend)).summary_buffer(3).ordinal
    ).all()


def test_bad_input_is_refused_in_a_sentence(lake: Settings, blends: Blends) -> None:
    blend = mixed(blends)
    with pytest.raises(
        InvalidRequest, match=r"`microbatches` is 0: input should be greater than or equal to 1"
    ):
        spec_of(blend, microbatches=0)
    with pytest.raises(InvalidRequest, match=r"plans blend 0, and blend"):
        Planner(blend, LoadingSpec(blend="0", mesh=Mesh(), model=MODEL))
    with pytest.raises(InvalidRequest, match=r"16 rows, which 5 buckets of 1 microbatches"):
        Planner(blend, spec_of(blend, mesh=Mesh(dp=5), microbatches=1)).plan(0)
    with pytest.raises(InvalidRequest, match=r"This spec has format 1"):
        LoadingSpec.from_json(json.dumps({"format": 1}).encode())
    ending = blends.open(blends.create([Source(PROSE, 4)]).id)
    with pytest.raises(EndOfData):
        Planner(ending, LoadingSpec(blend=ending.id, mesh=Mesh(), model=MODEL)).plan(75)


def test_a_plan_of_arrays_is_checked(blends: Blends) -> None:
    blend = mixed(blends)
    planner = Planner(blend, spec_of(blend))
    given = planner.plan(3)
    assert planner.plan_raw(3, given.bucket, given.bin).hash == given.hash
    bucket, bin = given.bucket.copy(), given.bin.copy()
    copied = planner.plan_raw(3, bucket, bin)
    bucket[:] = bin[:] = 0
    assert copied.hash == given.hash
    with pytest.raises(InvalidRequest, match=r"Plan each row once"):
        planner.plan_raw(3, given.bucket[1:], given.bin[1:])
    for wrong in (given.bin + 0.9, given.bin * np.nan, ["a"] * 16, None, 0, [[1], [1, 2]]):
        with pytest.raises(InvalidRequest, match=r"gives|is not an array"):
            planner.plan_raw(3, given.bucket, wrong)  # type: ignore[arg-type]
    with pytest.raises(InvalidRequest, match=r"`plan_raw` put 0 to 16 rows of step 3 in a microbatch"):
        planner.plan_raw(3, given.bucket * 0, given.bin * 0)
    ragged = Planner(blend, spec_of(blend, equal_counts=False, limit=100))
    with pytest.raises(InvalidRequest, match=r"`plan_raw` put \d+ tokens of step 3 in a microbatch"):
        ragged.plan_raw(3, given.bucket * 0, given.bin * 0)


@pytest.mark.parametrize("offset", [1.5, "1", None, -1])
def test_a_step_is_a_whole_number(blends: Blends, offset: Any) -> None:
    blend = mixed(blends)
    with pytest.raises(InvalidRequest, match=f"`offset` is {offset}. Give a whole number, 0 or more"):
        Planner(blend, spec_of(blend)).plan(offset)


def test_a_plan_of_an_offset_of_numpy_is_described_as_json(blends: Blends) -> None:
    blend = mixed(blends)
    planner = Planner(blend, spec_of(blend))
    described = planner.plan(np.int64(1)).described()  # type: ignore[arg-type]
    assert json.loads(json.dumps(described)) == json.loads(json.dumps(planner.plan(1).described()))


def graph_of(step: StepColumns, tree: ClientPlaceTree, spec: LoadingSpec, level: Level = "DP") -> DGraph:
    graph = DGraph.of(step, tree, ("n_tokens", "squared_lengths"))
    graph.distribute(level)
    graph.cost(spec.model, memory=tokens)
    return graph


def no_plan(*_: Any) -> Any:
    return 42


def failing(*_: Any) -> Any:
    return {}["key"]


def ending(*_: Any) -> Any:
    raise EndOfData("over")


def of_another_step(step: StepColumns, tree: ClientPlaceTree, spec: LoadingSpec) -> Plan:
    return plain(replace(step, offset=step.offset + 1), tree, spec)


def of_some_rows(step: StepColumns, tree: ClientPlaceTree, spec: LoadingSpec) -> Plan:
    facts = {name: values[:8] for name, values in step.facts.items()}
    some = replace(step, source=step.source[:8], epoch=step.epoch[:8], ordinal=step.ordinal[:8], facts=facts)
    return plain(some, tree, spec)


def of_one_bucket(step: StepColumns, tree: ClientPlaceTree, spec: LoadingSpec) -> Plan:
    return plain(step, ClientPlaceTree(Mesh()), spec)


def of_four_bins(step: StepColumns, tree: ClientPlaceTree, spec: LoadingSpec) -> Plan:
    graph = graph_of(step, tree, spec)
    graph.fill(bins=4)
    return graph.plan()


def of_floats(step: StepColumns, tree: ClientPlaceTree, spec: LoadingSpec) -> Plan:
    return Plan(step, np.zeros(len(step)), np.zeros(len(step)), spec.model(step.facts), 4, 2)  # type: ignore[arg-type]


def of_lists(step: StepColumns, tree: ClientPlaceTree, spec: LoadingSpec) -> Plan:
    zeros: Any = [0] * len(step)
    return Plan(step, zeros, zeros, spec.model(step.facts), 4, 2)


def of_context_parallel_ranks(step: StepColumns, tree: ClientPlaceTree, spec: LoadingSpec) -> Plan:
    graph = graph_of(step, tree, spec, "CP")
    graph.balance("greedybinpacking", **spec.balancing)
    return graph.plan()


def without_limit(step: StepColumns, tree: ClientPlaceTree, spec: LoadingSpec) -> Plan:
    graph = graph_of(step, tree, spec)
    graph.balance("greedybinpacking", bins=spec.microbatches, equal_counts=False, reorder=False)
    return graph.plan()


@pytest.mark.parametrize(
    "function, sentence",
    [
        ("no_plan", "returned a int for step 3. Return a `Plan`"),
        ("failing", "failed on step 3 .KeyError: 'key'.. Correct its function"),
        ("of_another_step", "planned other rows than those of step 3 of blend"),
        ("of_some_rows", "planned other rows than those of step 3 of blend"),
        (
            "of_one_bucket",
            "made 1 buckets of 2 microbatches, and mesh .* has 4 at level DP, 8 at level CP,",
        ),
        ("of_four_bins", "made 4 buckets of 4 microbatches, and mesh .* with 2 microbatches each"),
        ("of_lists", "put 0 to 16 rows of step 3 in a microbatch, and the spec has equal counts"),
    ],
)
def test_a_strategy_that_breaks_the_spec_is_named(blends: Blends, function: str, sentence: str) -> None:
    blend = mixed(blends)
    planner = Planner(blend, spec_of(blend, strategy=f"{__name__}:{function}"))
    with pytest.raises(InvalidRequest, match=rf"^Strategy `{__name__}:{function}` {sentence}") as refusal:
        planner.plan(3)
    assert isinstance(refusal.value.__cause__, KeyError | None)


def test_a_strategy_that_ignores_the_limit_is_named(blends: Blends) -> None:
    blend = mixed(blends)
    for strategy, limit in (("without_limit", 9), ("of_lists", 64)):
        spec = spec_of(blend, strategy=f"{__name__}:{strategy}", limit=limit, equal_counts=False)
        with pytest.raises(InvalidRequest, match=rf"`{__name__}:{strategy}` put \d+ tokens of step 3"):
            Planner(blend, spec).plan(3)


def test_a_strategy_may_plan_any_level_of_the_mesh_and_end_the_data(blends: Blends) -> None:
    blend = mixed(blends)
    spec = spec_of(blend, strategy=f"{__name__}:of_context_parallel_ranks", microbatches=1)
    assert Planner(blend, spec).plan(3).buckets == 8
    with pytest.raises(EndOfData, match="over"):
        Planner(blend, spec_of(blend, strategy=f"{__name__}:ending")).plan(3)
    with pytest.raises(InvalidRequest, match="gives float64 as bucket"):
        Planner(blend, spec_of(blend, strategy=f"{__name__}:of_floats")).plan(3)
