"""`factory loading plan`: a table, JSON, a picture, and a sentence for each wrong input."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from blender.catalog.blends import open_blends
from blender.loading.costs import Backbone
from blender.loading.spec import LoadingSpec
from blender.records import Source
from blender.spec.mesh import Mesh
from tests.blender.lakes import CODE, PROSE, make_lake
from tests.cli.command import factory_at, process


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """The home of a lake and a blend of 16 rows a step."""
    home = tmp_path_factory.mktemp("home")
    sources = [Source(CODE, 12, oversample=True), Source(PROSE, 4, oversample=True)]
    return home, open_blends(make_lake(home, code=40, prose=300)).create(sources).id


def planned(lake: tuple[Path, str], *arguments: str) -> str:
    home, blend = lake
    run = factory_at(home, "loading", "plan", blend, "--mesh", "dp=4,cp=2,tp=2", *arguments)
    assert run.exit_code == 0, run.output
    return run.stdout


def test_a_plan_is_shown_with_its_times_and_its_buckets(lake: tuple[Path, str]) -> None:
    shown = planned(lake, "--microbatches", "2").splitlines()
    assert shown[0].split() == [
        "ranks",
        "meet",
        "at",
        "each",
        "time",
        "as",
        "given",
        "as",
        "planned",
        "bound",
    ]
    assert [line.split()[0] for line in shown[1:4]] == ["step", "microbatch", "pipeline"]
    assert [line.split()[:3] for line in shown[6:10]] == [
        ["0", "0,", "2"],
        ["1", "4,", "6"],
        ["2", "8,", "10"],
        ["3", "12,", "14"],
    ]


def test_every_option_is_a_field_of_the_spec(lake: tuple[Path, str]) -> None:
    given = {
        "mesh": "dp=2,cp=2,pp=2",
        "order": "dp-cp-tp-pp",
        "model": "hidden=64,layers=3,topk=2,vocabulary=9",
        "microbatches": "3",
        "barrier": "step",
        "limit": "40",
        "group-size": "1",
        "strategy": "llm",
        "chunking": "document",
        "broadcast": "tp,pp/2",
    }
    words = [word for name, value in given.items() for word in (f"--{name}", value)]
    run = factory_at(lake[0], "loading", "plan", lake[1], *words, "--ragged", "--json")
    assert run.exit_code == 0, run.output
    spec = LoadingSpec(
        blend=lake[1],
        mesh=Mesh(dp=2, cp=2, pp=2, order="dp-cp-tp-pp"),
        model=Backbone(64, 3, 2, 9),
        microbatches=3,
        barrier="step",
        limit=40,
        equal_counts=False,
        group_size=1,
        chunking="document",
        broadcast=("tp", "pp/2"),
    )
    plan = json.loads(run.stdout)
    assert plan["spec"] == spec.id
    assert {rank["rank"]: rank["needs_tokens"] for rank in plan["ranks"]} == {
        0: True,
        1: True,
        2: True,
        3: True,
    }


def test_json_has_every_row_once_and_the_bytes_of_every_rank(lake: tuple[Path, str]) -> None:
    plan = json.loads(planned(lake, "--microbatches", "2", "--offset", "3", "--json"))
    rows = [row for bucket in plan["buckets"] for bin in bucket["bins"] for row in bin["rows"]]
    assert sorted(rows) == list(range(16))
    assert [rank["rank"] for rank in plan["ranks"]] == [0, 2, 4, 6, 8, 10, 12, 14]
    assert all(rank["bytes"] > 0 for rank in plan["ranks"])
    assert set(plan["times"]) == {"step", "microbatch", "pipeline"}


def test_an_index_is_made_once_and_shown(lake: tuple[Path, str]) -> None:
    home, blend = lake
    for path in (home / "page-index").rglob("*.lengths"):
        path.unlink()
    first, second = (factory_at(home, "loading", "index", blend) for _ in range(2))
    assert (first.exit_code, second.exit_code) == (0, 0), first.output + second.output
    rows = [line.split() for line in first.stdout.splitlines()]
    assert [row[:2] for row in rows] == [["source", "rows"], [CODE, "40"], [PROSE, "300"]]
    assert "before" not in first.stdout
    assert [line.split()[-2:] for line in second.stdout.splitlines()[1:]] == [["made", "before"]] * 2


@pytest.mark.parametrize("language, begin", [("mermaid", "flowchart LR"), ("dot", "digraph plan {")])
def test_a_picture_is_drawn_as_text(lake: tuple[Path, str], language: str, begin: str) -> None:
    assert planned(lake, "--draw", language).startswith(begin)


@pytest.mark.parametrize(
    "arguments, sentence",
    [
        (["--mesh", "dp=5"], "Step 0 has 16 rows, which 5 buckets of 1 microbatches do not share equally."),
        (["--mesh", "dp=two"], "`dp=two` in the mesh `dp=two` is not the extent of an axis."),
        (["--limit", "7"], "takes 8, and a microbatch may hold 7. Raise the limit"),
        (["--strategy", "vllm"], "There is no strategy `vllm`. Use `llm`, `vlm`, `dynamic_cp`, `plain`"),
        (["--strategy", "vlm"], "the spec has no `encoder`. Give both, or use `llm`."),
        (["--spec", "nowhere.yaml"], "`nowhere.yaml`, cannot be read (No such file or directory)"),
        (["--order", "tp-cp"], "`tp-cp` is not an order of a mesh."),
        (["--json", "--draw", "dot"], "--json and --draw print different things. Give one of them."),
        (["--limit", str(2**64)], "`limit` is 18446744073709551616: input should be less than"),
        (["--microbatches", str(10**18), "--ragged"], "`microbatches` is 1000000000000000000: input should"),
        (
            ["--mesh", "pp=20000", "--microbatches", "16"],
            "20,000 stages with 16 microbatches make 320,000 passes",
        ),
        (
            ["--mesh", "dp=999999999"],
            "has 999,999,999 ranks. Use extents whose product is at most 1,048,576.",
        ),
        (["--model", "hidden=5000000000000000,layers=32"], "are exact below 2^63"),
        (["--strategy", "os:path"], "The strategy `os:path` is a module. Name a function of a step"),
        (["--strategy", "os:getcwd"], "Strategy `os:getcwd` failed on step 0 (TypeError: "),
        (["--strategy", ":f"], "The strategy `:f` cannot be imported (ValueError: Empty module name)"),
        (["--strategy", "plain", "--limit", "8"], "as given fill a microbatch with"),
        (["--tree", "os:path"], "The tree `os:path` is a module. Name a function of a mesh"),
        (["--tree", "os:abort_"], "The tree `os:abort_` cannot be imported (AttributeError: "),
        (["--tree", "os:fspath"], "The tree `os:fspath` failed on mesh pp=1,dp=1,cp=1,tp=1 (TypeError: "),
    ],
)
def test_wrong_input_is_refused_in_a_sentence(
    lake: tuple[Path, str], arguments: list[str], sentence: str
) -> None:
    home, blend = lake
    run = factory_at(home, "loading", "plan", blend, *arguments)
    assert (run.exit_code, run.stdout) == (2, "")
    assert sentence in run.stderr
    assert "Traceback" not in run.stderr


def test_an_unknown_blend_is_named(lake: tuple[Path, str]) -> None:
    run = process(lake[0], "loading", "plan", "0" * 32)
    assert run.returncode != 0
    assert "0" * 32 in run.stderr
    assert "Traceback" not in run.stderr
