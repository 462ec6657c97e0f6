"""`factory blend plan` prices the blends there are and those that are being considered, and makes none."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from blender.catalog.blends import open_blends
from blender.records import Schedule, Source
from factory.cli import main, root
from factory.lake.schemas.packing import N_TOKENS, SEQUENCE_LENGTH, TOKENIZER_ID
from factory.settings import Settings
from tests.blender.lakes import make_lake, packed_rows, write_table
from tests.terminal import in_columns


@pytest.fixture
def lake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Settings:
    """A lake with `packed.code` (40 rows) and `packed.prose` (300 rows), that the command works on."""
    made = make_lake(tmp_path / "lake", code=40, prose=300)
    monkeypatch.setattr(root, "lake_settings", lambda: made)
    return made


def planned(*arguments: str) -> Result:
    return in_columns(140, "blend", "plan", *arguments)


def test_a_considered_blend_is_priced_and_not_made(lake: Settings) -> None:
    found = planned("--table", "packed.code=2", "--table", "packed.prose=6", "--ranks", "4", "--json")
    choices = json.loads(found.stdout)
    assert [choice["shuffle"] for choice in choices if choice["source"] == "packed.prose"] == [
        "none",
        "page",
        "row",
    ]
    (none, _, row) = [choice for choice in choices if choice["source"] == "packed.prose"]
    assert (none["chosen"], row["chosen"]) == (True, False)
    assert none["score"] > 3 * row["score"]
    assert row["bytes_of_ranks"] >= none["bytes_of_ranks"] > none["bytes_per_step"] > 0
    assert open_blends(lake).list() == []


def test_a_blend_on_record_is_priced_with_its_own_shuffle_marked(lake: Settings) -> None:
    source = Source(
        table="packed.prose", weight=8, shuffle="page_window", page_rows=4, window_pages=16, oversample=True
    )
    made = open_blends(lake).create([source], seed=5)
    shown = planned(made.id, "--ranks", "2").stdout
    (marked,) = [line for line in shown.splitlines() if "* page_window" in line]
    assert marked.split()[2:4] == ["4/16", "64"]
    assert "bytes that 2 ranks read" in " ".join(shown.split())


@pytest.fixture
def unlike(lake: Settings) -> Settings:
    """The lake with rows of two lengths, whose tokens are counted."""
    for table, n, length in (("packed.code", 40, 32), ("packed.prose", 300, 8)):
        rows = packed_rows(table.removeprefix("packed."), n)
        n_tokens = sum(rows["n_tokens"].to_pylist())
        said = {SEQUENCE_LENGTH: str(length), N_TOKENS: str(n_tokens), TOKENIZER_ID: "ab" * 16}
        write_table(lake, table, rows, snapshot_properties=said)
    return lake


def test_a_plan_shows_shares_of_tokens_and_padding(unlike: Settings) -> None:
    asked = ("--table", "packed.code=1", "--table", "packed.prose=3")
    refused = planned(*asked)
    assert (refused.exit_code, refused.stdout) == (2, "")
    assert "75% of each shorter row would be padding" in " ".join(refused.stderr.split())
    shown = planned(*asked, "--pad").stdout.splitlines()
    assert shown[0].strip() == "tokens of a step, 76.6% of it padding"
    assert shown[2].split() == ["packed.code", "1", "7.5", "32", "25.0%", "76.6%"]
    assert shown[3].split() == ["packed.prose", "3", "7.5", "8", "75.0%", "76.6%"]
    choices = json.loads(planned(*asked, "--pad", "--json").stdout)
    assert {choice["source"]: choice["token_share"] for choice in choices} == {
        "packed.code": 0.25,
        "packed.prose": 0.75,
    }


def test_a_blend_is_described_with_its_tokenizers(unlike: Settings) -> None:
    sources = [Source(table=table, weight=1) for table in ("packed.code", "packed.prose")]
    made = open_blends(unlike).create(sources, pad=True)
    shown = CliRunner().invoke(main.app, ["blend", "show", made.id])
    lines = [line.split() for line in shown.stdout.splitlines()]
    assert lines[1][1:] == ["40", "1", "32", "300", "50.0%", "76.6%", "abababababab"]
    assert " ".join(lines[-1]) == f"Blend {made.id} has 40 steps; 76.6% of a step is padding."
    missing = CliRunner().invoke(main.app, ["blend", "show", "0" * 32])
    assert (missing.exit_code, missing.stdout) == (8, "")


SCHEDULED = """\
seed: 5
sources:
  - {table: packed.code, oversample: true}
  - {table: packed.prose, name: prose, shuffle: page_window, page_rows: 4, window_pages: 16}
schedule:
  kind: KIND
  rows_per_step: 8
  knots:
    - {offset: 0, proportions: {packed.code: 3, prose: 1}}
    - {offset: 20, proportions: {prose: 1}}
"""


@pytest.mark.parametrize("kind", ["stepped", "linear", "cosine"])
def test_a_schedule_in_a_file_is_priced_at_a_step_as_it_is_when_made(
    lake: Settings, tmp_path: Path, kind: str
) -> None:
    file = tmp_path / "blend.yaml"
    file.write_text(SCHEDULED.replace("KIND", kind))
    found = {at: planned("--file", str(file), "--offset", at, "--json").stdout for at in ("0", "10", "30")}
    widths = {at: {load["source"]: load["rows_per_step"] for load in json.loads(found[at])} for at in found}
    assert widths["30"] == {"prose": 8}
    assert sum(widths["10"].values()) == 8
    assert (widths["10"] == widths["0"]) == (kind == "stepped")
    assert open_blends(lake).list() == []
    knots = ((0, {"packed.code": 3, "prose": 1}), (20, {"prose": 1}))
    shuffle = {"shuffle": "page_window", "page_rows": 4, "window_pages": 16}
    code = Source(table="packed.code", oversample=True)
    prose = Source(table="packed.prose", name="prose", **shuffle)
    made = open_blends(lake).create([code, prose], seed=5, schedule=Schedule(8, knots, kind))
    assert {at: planned(made.id, "--offset", at, "--json").stdout for at in found} == found


WRONG = [
    ("KIND", "sine", "blend.yaml, line 6, schedule.kind: Unknown value `sine`. Did you mean `cosine`?"),
    (
        "name: prose",
        "nme: prose",
        "blend.yaml, line 4, sources[1].nme: Unknown field `nme`. Did you mean `name`?",
    ),
    ("{prose: 1}", "{poetry: 1}", "names the unknown source `poetry`"),
    ("oversample: true", "weight: 0.5", "sources[0].weight: The weight is 0.5. Weights are whole rows"),
    ("oversample: true", "weight: 2", "has a schedule and weights that sum to 2 rows"),
    ("page_rows: 4, ", "", "line 4, sources[1]: Shuffle `page_window` needs `page_rows`"),
    ("rows_per_step: 8", "rows_per_step: 8.5", "line 7, schedule.rows_per_step: `8.5` does not fit"),
]


@pytest.mark.parametrize("old, new, words", WRONG)
def test_what_is_wrong_with_a_file_is_told(
    lake: Settings, tmp_path: Path, old: str, new: str, words: str
) -> None:
    file = tmp_path / "blend.yaml"
    file.write_text(SCHEDULED.replace(old, new).replace("KIND", "linear"))
    result = planned("--file", str(file))
    assert (result.exit_code, result.stdout) == (2, "")
    assert words in " ".join(result.stderr.split())


@pytest.mark.parametrize(
    "arguments, words",
    [
        ((), "Give one of three: the id of a blend"),
        (("0" * 32, "--table", "packed.code=1"), "or --file blend.yaml"),
        (("--file", "blend.yaml", "--table", "packed.code=1"), "is a whole blend. Leave out --table"),
        (("--file", "none.yaml"), "none.yaml cannot be read"),
        (("--table", "packed.code"), "`packed.code` names no rows per step"),
        (("--table", "packed.code=8", "--ranks", "3"), "cannot be shared evenly by 3 ranks"),
        (("--table", "packed.code=0"), "weights sum to 0"),
    ],
)
def test_what_cannot_be_planned_is_one_sentence(
    lake: Settings, arguments: tuple[str, ...], words: str
) -> None:
    result = planned(*arguments)
    assert (result.exit_code, result.stdout) == (2, "")
    assert words in result.stderr
