"""`factory tokenizer export` writes a tokenizer that decodes the tokens it made."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from tokenizers import Tokenizer
from typer.testing import CliRunner, Result

from blender.catalog.blends import open_blends
from blender.records import Source
from factory.cli import main, tokenizer
from factory.cli import packed_rows as packed_rows_module
from factory.lake import names
from factory.lake.identity import tokenizer_id
from factory.lake.schemas.models import TOKENIZER
from factory.lake.schemas.packing import TOKENIZER_ID
from factory.lake.tables import Lake
from factory.models.tokenizer import train
from factory.settings import Settings
from tests.blender.lakes import make_lake, packed_rows, write_table
from tests.explain.lakes import publish

TEXT = "The quick brown fox, naïvely, jumps over 雪."


def trained(text: str, name: str, lake: Lake) -> str:
    """Publish a tokenizer trained on a text; return its content."""
    content = train(iter([text]), 300)
    row = {"name": name, "n_tokens": Tokenizer.from_str(content).get_vocab_size(), "tokenizer": content}
    publish(lake, names.model(name), TOKENIZER, [row])
    return content


@pytest.fixture
def lake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Lake:
    given = Settings(home=tmp_path / "lake")
    monkeypatch.setattr(tokenizer, "settings", lambda: given)
    return Lake(given)


@pytest.fixture
def exported(tmp_path: Path) -> Callable[..., Result]:
    """The command, with a file of the test's folder."""

    def run(*arguments: str) -> Result:
        return CliRunner().invoke(main.app, ["tokenizer", "export", str(tmp_path / "t.json"), *arguments])

    return run


def test_the_only_tokenizer_of_a_lake_decodes_its_text(
    lake: Lake, exported: Callable[..., Result], tmp_path: Path
) -> None:
    content = trained(TEXT, "web", lake)
    said = exported().stdout
    assert "tokens of models.web at snapshot" in said
    assert tokenizer_id(content) in said
    read = Tokenizer.from_file(str(tmp_path / "t.json"))
    assert read.decode(read.encode(TEXT).ids) == TEXT


def test_several_tokenizers_need_a_name(lake: Lake, exported: Callable[..., Result], tmp_path: Path) -> None:
    trained(TEXT, "web", lake)
    code = trained("def function(): return 1", "code", lake)
    refused = exported()
    assert (refused.exit_code, (tmp_path / "t.json").exists()) == (2, False)
    assert "has the tokenizers code, web. Choose one with --name" in refused.stderr
    assert exported("--name", "code").exit_code == 0
    assert (tmp_path / "t.json").read_text() == code
    assert exported("--name", "none").exit_code == 5


def test_a_blend_gets_the_tokenizer_that_made_its_tokens(
    exported: Callable[..., Result], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = make_lake(tmp_path / "lake", code=40)
    monkeypatch.setattr(tokenizer, "settings", lambda: settings)
    lake = Lake(settings)
    first = trained(TEXT, "web", lake)
    at = lake.published(names.model("web")).snapshot_id
    said = {TOKENIZER_ID: tokenizer_id(first), "factory.upstream": f'{{"models.web": {at}}}'}
    write_table(settings, "packed.code", packed_rows("code", 40), snapshot_properties=said)
    made = open_blends(settings).create([Source("packed.code", weight=1)])
    assert trained(f"{TEXT} It was trained again.", "web", lake) != first
    result = exported("--blend", made.id)
    assert result.exit_code == 0, result.stderr
    assert (tmp_path / "t.json").read_text() == first


def test_an_impossible_export_is_refused_in_one_sentence(
    lake: Lake, exported: Callable[..., Result], tmp_path: Path
) -> None:
    assert exported().exit_code == 8
    publish(lake, names.model("web"), TOKENIZER, [])
    empty = exported()
    assert (empty.exit_code, "models.web is empty" in empty.stderr) == (5, True)
    both = exported("--name", "web", "--blend", "0" * 32)
    assert (both.exit_code, "exclude each other" in both.stderr) == (2, True)
    elsewhere = CliRunner().invoke(main.app, ["tokenizer", "export", str(tmp_path / "no" / "t.json")])
    assert (elsewhere.exit_code, "does not exist. Create it" in elsewhere.stderr) == (2, True)


def test_a_sample_of_sequences_shows_the_text_of_their_documents(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = make_lake(tmp_path / "lake", code=2)
    monkeypatch.setattr(main.root, "lake_settings", lambda: settings)
    lake = Lake(settings)
    sample = ["sample", "packed.code", "-n", "1"]
    unknown = CliRunner().invoke(main.app, sample)
    assert "The lake lacks the tokenizer that made the tokens of packed.code" in unknown.stderr
    assert "n_tokens" in unknown.stdout
    content = trained(TEXT, "web", lake)
    at = lake.published(names.model("web")).snapshot_id
    said = {TOKENIZER_ID: tokenizer_id(content), "factory.upstream": f'{{"models.web": {at}}}'}
    tokens = np.array(Tokenizer.from_str(content).encode(TEXT).ids, "<u2")
    segments = [
        {"doc_id": "a", "doc_offset": 0, "length": 2},
        {"doc_id": "b", "doc_offset": 7, "length": len(tokens) - 2},
    ]
    row = {"ordinal": 0, "tokens": tokens.tobytes(), "n_tokens": len(tokens), "segments": segments}
    row |= {"append": 0, "shard": 0, "chunk": 0}
    rows = pa.Table.from_pylist([row], schema=packed_rows("code", 1).schema)
    write_table(settings, "packed.code", rows, snapshot_properties=said)
    shown = CliRunner().invoke(main.app, sample)
    assert shown.exit_code == 0, shown.stderr
    first, *lines = shown.stdout.splitlines()
    assert first == "packed.code, sequence 0"
    assert lines[0] == f"{len(tokens)} tokens, 2 pieces of documents"
    borders = [number for number, line in enumerate(lines) if line.startswith("\u2500\u2500 ")]
    assert [lines[number] for number in borders] == [
        "\u2500\u2500 a, tokens 0 to 2",
        f"\u2500\u2500 b, tokens 7 to {7 + len(tokens) - 2}",
    ]
    assert "".join(line for line in lines[2:] if not line.startswith("\u2500\u2500")) == TEXT


def test_a_step_shows_the_text_of_its_documents(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    settings = make_lake(tmp_path / "lake", code=2)
    monkeypatch.setattr(main.root, "lake_settings", lambda: settings)
    lake, source = Lake(settings), Source("packed.code", weight=1, shuffle="none")
    before = open_blends(settings).create([source]).id
    unknown = CliRunner().invoke(main.app, ["trace", "batch", before, "0"])
    assert "The lake lacks the tokenizer that made the tokens of packed.code" in unknown.stderr
    assert "which no raw table holds" in unknown.stdout
    content = trained(TEXT, "web", lake)
    at = lake.published(names.model("web")).snapshot_id
    properties = {TOKENIZER_ID: tokenizer_id(content), "factory.upstream": f'{{"models.web": {at}}}'}
    encoder = Tokenizer.from_str(content)
    parts = [encoder.encode(text).ids for text in ("One sentence.", "Another one.")]
    row = {
        "ordinal": 0,
        "tokens": np.array([*parts[0], *parts[1]], "<u2").tobytes(),
        "n_tokens": len(parts[0]) + len(parts[1]),
        "segments": [
            {"doc_id": letter, "doc_offset": 0, "length": len(part)}
            for letter, part in zip("ab", parts, strict=True)
        ],
        **dict.fromkeys(("append", "shard", "chunk"), 0),
    }
    rows = pa.Table.from_pylist([row, row | {"ordinal": 1}], schema=packed_rows("code", 1).schema)
    write_table(settings, "packed.code", rows, snapshot_properties=properties)
    blend = open_blends(settings).create([replace(source, weight=2)]).id
    trace = ["trace", "batch", blend, "0"]
    shown = CliRunner().invoke(main.app, [*trace, "-n", "1"])
    assert shown.exit_code == 0, shown.stderr
    lines = [line.lstrip("\u2502\u251c\u2514\u2500 \xa0") for line in shown.stdout.splitlines()]
    assert lines[1:] == [
        "row 0: sequence 0 of packed.code (epoch 0)",
        f"tokens 0 to {len(parts[0])} of a, which no raw table holds",
        "One sentence.",
        f"tokens 0 to {len(parts[1])} of b, which no raw table holds",
        "Another one.",
        "... 1 more row: -n 2 shows all",
    ]
    assert "sentence" not in CliRunner().invoke(main.app, [*trace, "--no-text"]).stdout
    monkeypatch.setattr(packed_rows_module, "find_spec", lambda _name: None)
    without = CliRunner().invoke(main.app, trace)
    assert "install `tokenizers`" in without.stderr
    assert f"tokens 0 to {len(parts[1])} of b, which" in without.stdout
