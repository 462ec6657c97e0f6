"""`factory init`, `factory check` and `factory assets`, and the errors of a datasets file."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from factory.errors import ConfigurationError
from factory.lake.tables import Lake
from tests.cli.command import factory, process


def test_init_writes_a_file_that_check_accepts_and_writes_over_none(tmp_path: Path) -> None:
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "a.md").write_text("One note.")
    written = factory("init", str(tmp_path))
    assert written.exit_code == 0, written.stderr
    checked = factory("check", str(tmp_path / "datasets.yaml"))
    assert checked.exit_code == 0
    assert checked.stdout.splitlines()[1].split() == ["notes", "prose", "files", "1"]
    assert written.stdout.endswith(checked.stdout)
    (tmp_path / "notes" / "a.md").unlink()
    (tmp_path / "b.txt").touch()
    again, empty = factory("init", str(tmp_path)), factory("check", str(tmp_path / "datasets.yaml"))
    assert (again.exit_code, "exists already" in again.stderr) == (2, True)
    assert (empty.exit_code, "line 12, datasets[0].paths: No file exists" in empty.stderr) == (2, True)


def test_init_and_check_offer_a_key_and_exit_with_0(tmp_path: Path) -> None:
    (tmp_path / "web").mkdir()
    records = [{"ID#": number, "text": f"text {number}"} for number in range(3)]
    (tmp_path / "web" / "a.jsonl").write_text("\n".join(map(json.dumps, records)))
    written = factory("init", str(tmp_path))
    offer = '`web` has no `key`, and `ID#` differs in each of the first 3 records. With `key: "ID#"` a'
    assert (written.exit_code, offer in written.stdout) == (0, True)
    text = (tmp_path / "datasets.yaml").read_text()
    (tmp_path / "datasets.yaml").write_text(text.replace('# key: "ID#"', 'key: "ID#"'))
    checked = factory("check", str(tmp_path / "datasets.yaml"))
    assert (checked.exit_code, "has no `key`" in checked.stdout) == (0, False)


def test_check_refuses_all_that_first_records_show_at_once(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text('{"body": "a text"}\n')
    (tmp_path / "site").mkdir()
    (tmp_path / "site" / "index.html").write_text("<p>")
    (tmp_path / "my.yaml").write_text(
        "datasets:\n- {name: web, kind: prose, format: jsonl, paths: a.jsonl}\n"
        "- {name: site, kind: prose, format: files, paths: site}\n"
    )
    checked = factory("check", str(tmp_path / "my.yaml"))
    first, second = checked.stderr.splitlines()
    assert (checked.exit_code, checked.stdout) == (ConfigurationError.exit_code, "")
    assert first.startswith("my.yaml, line 2, datasets[0].text: The first records of `a.jsonl` have no field")
    assert second.startswith("my.yaml, line 3, datasets[1].paths: The file is a web page (`index.html`)")


def test_without_the_extra_pages_are_left_out_of_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("factory.ingest.html_extra._MODULES", ("no_such_module",))
    (tmp_path / "site").mkdir()
    (tmp_path / "site" / "a.html").write_text("<p>")
    alone = factory("init", str(tmp_path))
    install = "Reading web pages needs no_such_module. Install it: pip install 'corpus-factory[html]'."
    assert (alone.exit_code, alone.stderr.strip().endswith(f"and nothing else. {install}")) == (2, True)
    assert not (tmp_path / "datasets.yaml").exists()
    (tmp_path / "site" / "b.md").write_text("text")
    written = factory("init", str(tmp_path))
    left_out = f"Left out 1 file of web pages: site. {install}"
    assert (written.exit_code, left_out in written.stdout) == (0, True)
    assert "html" not in (tmp_path / "datasets.yaml").read_text()


def test_check_without_a_file_says_which_to_name(lake: Lake) -> None:
    assert factory("check").exit_code == 2
    assert "factory init" in factory("check").stderr


@pytest.mark.process
def test_assets_are_listed_by_dataset(tmp_path: Path) -> None:
    file = tmp_path / "my.yaml"
    file.write_text("datasets: [{name: notes, kind: prose, format: files, paths: .}]")
    done = process(tmp_path, "assets", "--json", FACTORY_DATASETS=str(file))
    found = {(load["kind"], load["name"]): load["assets"] for load in json.loads(done.stdout)}
    assert list(found) == [("dataset", "notes"), ("dedup group", "prose"), ("models", "")]
    assert found["dataset", "notes"][0] == "raw.notes"
    assert "packed.notes" in found["dataset", "notes"]


@pytest.mark.process
@pytest.mark.parametrize("command", [("ui", "--port", "0"), ("demo",), ("materialize", "*")])
def test_a_wrong_file_of_datasets_is_told_with_its_line(tmp_path: Path, command: tuple[str, ...]) -> None:
    (tmp_path / "my.yaml").write_text("datasets:\n- {name: a, kind: prose, format: files, pahts: .}\n")
    done = process(tmp_path, *command, FACTORY_DATASETS=str(tmp_path / "my.yaml"))
    assert (done.returncode, done.stdout) == (ConfigurationError.exit_code, "")
    assert done.stderr.splitlines() == [
        "my.yaml, line 2, datasets[0].pahts: Unknown field `pahts`. Did you mean `paths`?",
    ]


@pytest.mark.process
def test_weights_that_no_blend_takes_are_told_before_the_line_runs(tmp_path: Path) -> None:
    file = tmp_path / "my.yaml"
    dataset = "{name: notes, kind: prose, format: files, paths: .}"
    file.write_text(f"datasets: [{dataset}]\nblend: {{weights: {{notes: {10**20}}}}}\n")
    ended = process(tmp_path / "lake", "demo", FACTORY_DATASETS=str(file))
    assert (ended.returncode, ended.stdout) == (2, "")
    assert ended.stderr.endswith("rows a step. Use at most 1,048,576.\n")


def test_init_and_check_count_what_no_dataset_reads(tmp_path: Path) -> None:
    for name in ("notes/a.md", "notes/b.pdf", "notes/c.ipynb", "exports/d.csv", "exports/e.csv", "f.xml"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("One note.")
    (tmp_path / "exports" / "g.ndjson").write_text('{"text": "a text"}\n')
    written = factory("init", str(tmp_path))
    assert written.exit_code == 0, written.stderr
    lines = written.stdout.splitlines()
    guide = "(docs/conversions.md of the repository)."
    start = lines.index("No dataset reads 5 other files:")
    assert lines[start + 1 : start + 5] == [
        f"  2 .csv. Convert tables to JSON lines or Parquet {guide}",
        "  1 .ipynb. Convert notebooks to scripts, as with `jupyter nbconvert --to script`.",
        "  1 .pdf. Convert books and documents of word processors to Markdown or plain text.",
        f"  1 .xml. Extract the texts of XML to JSON lines or Parquet {guide}",
    ]
    checked = factory("check", str(tmp_path / "datasets.yaml"))
    sentence = f"`exports` leaves out 2 files: 2 .csv. Convert tables to JSON lines or Parquet {guide}"
    assert (checked.exit_code, sentence in checked.stdout.splitlines()) == (0, True)
    assert "`notes` leaves out" not in checked.stdout  # `include` chooses its files
    plain = json.loads(factory("check", str(tmp_path / "datasets.yaml"), "--json").stdout)
    assert [dataset["left_out"] for dataset in plain["datasets"]] == [{".csv": 2}, {}]


def test_files_that_another_dataset_of_the_file_reads_are_not_left_out(tmp_path: Path) -> None:
    (tmp_path / "both").mkdir()
    (tmp_path / "both" / "a.jsonl").write_text('{"text": "a text"}\n')
    (tmp_path / "both" / "b.md").write_text("A note.")
    (tmp_path / "my.yaml").write_text(
        "datasets:\n- {name: web, kind: prose, format: jsonl, paths: both}\n"
        "- {name: notes, kind: prose, format: files, paths: both, include: '*.md'}\n"
    )
    assert "leaves out" not in factory("check", str(tmp_path / "my.yaml")).stdout


def test_check_says_what_becomes_of_notebooks_among_code(tmp_path: Path) -> None:
    (tmp_path / "repo").mkdir()
    (tmp_path / "repo" / "a.py").write_text("x = 1\n")
    (tmp_path / "repo" / "b.ipynb").write_text('{"cells": []}')
    (tmp_path / "my.yaml").write_text("datasets:\n- {name: code, kind: code, format: files, paths: repo}\n")
    checked = factory("check", str(tmp_path / "my.yaml"))
    assert "1 of the 2 files of `code` is a notebook, such as `b.ipynb`. A notebook is JSON" in checked.stdout


def test_init_says_which_fields_it_took_for_the_text_and_why(tmp_path: Path) -> None:
    (tmp_path / "alpaca").mkdir()
    record = {"instruction": "Add.", "input": "1, 2", "output": "3"}
    (tmp_path / "alpaca" / "a.jsonl").write_text(f"{json.dumps(record)}\n" * 3)
    written = factory("init", str(tmp_path))
    assert written.exit_code == 0, written.stderr
    assert written.stdout.splitlines()[1] == (
        "`alpaca`: each text is made of `instruction`, `input`, `output`, because no field holds all of it."
    )
    assert (
        'text: "{instruction}\\n{input}\\n{output}" # a template' in (tmp_path / "datasets.yaml").read_text()
    )
