"""Wrong arguments are refused before a command imports Spark, Dagster or PyIceberg, which takes seconds.

The modules are looked at, not the seconds, which depend on the machine.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.cli.every_command import names

HEAVY = ("pyspark", "dagster", "pyiceberg.table", "sqlalchemy")
WITH_A_FILE = ("dagster", "pandas", "pyiceberg.table", "sqlalchemy")  # its fields bring Spark's Python along
CALLS = """
import json, os, sys
from typer.testing import CliRunner
from factory.cli import main
from factory.settings import settings

calls, output, heavy = json.loads(sys.argv[1]), sys.argv[2], json.loads(sys.argv[3])
answers, environment = [], dict(os.environ)
for *words, variables in calls:
    os.environ.clear()
    os.environ.update(environment | variables)
    settings.cache_clear()
    result = CliRunner().invoke(main.app, words)
    answers.append([result.exit_code, result.stderr, [name for name in heavy if name in sys.modules]])
with open(output, "w") as file:
    json.dump(answers, file)
"""
NOWHERE = "does not exist"
EXTRA = "unexpected extra argument"
WRONG = {
    "init": {"nowhere": "is not a folder"},
    "check": {"nowhere": NOWHERE, "": "no datasets file to check", "FACTORY_DATASETS=nowhere": NOWHERE},
    "materialize": {
        "* --partition a --partitions a...b": "exclude each other",
        "* --partitions abc": "not a range of partitions",
        "* --tables": "Add --dry-run",
        "* -f nowhere.yaml": NOWHERE,
        "* FACTORY_DATASETS=nowhere": NOWHERE,
    },
    "work": {
        "": "Missing argument",
        "web": "no queue of a dataset `web`",
        "web --replicas 0": "greater than",
        "web -f nowhere.yaml": NOWHERE,
        "web FACTORY_DATASETS=nowhere": NOWHERE,
    },
    "assets": {"-f nowhere.yaml": NOWHERE, "FACTORY_DATASETS=nowhere": NOWHERE},
    "tables": {"--lake nowhere": "no lake", "more": EXTRA},
    "sample": {
        "web": "is not a table",
        "raws.web": "Unknown namespace",
        "raw.web": "no table raw.web",
        "raw.web@abc": "not a snapshot",
        "raw.web -n 0": "greater than",
        "raw.web --page --json": "Give one of them",
    },
    "diff": {"raw.web": "no table raw.web", "raw.web raw": "not a table", "raw.web@abc": "not a snapshot"},
    "trace document": {"": "Missing argument"},
    "trace batch": {"nonesuch 0": "Malformed blend id", "nowhere/run 0": "no namespace", "a x": "integer"},
    "demo": {"--steps 0": "greater than", "FACTORY_DATASETS=nowhere": NOWHERE},
    "blend create": {"nowhere.yaml": "cannot be read"},
    "blend list": {"more": EXTRA},
    "blend show": {"nonesuch": "Malformed blend id"},
    "blend plan": {
        "": "Give one of three",
        "--table packed.web": "names no rows per step",
        "--table packed.web=1": "no packed table at all",
        "--table web=1": "no packed table at all",
        "--file nowhere.yaml": "cannot be read",
        "nonesuch": "Malformed blend id",
    },
    "blend update": {
        "a --from 1": "Give the change",
        "a --from 1 --weight packed.web": "names no rows per step",
        "a --from 1 --file nowhere.yaml": "cannot be read",
    },
    "blend retire": {"nonesuch": "Malformed blend id"},
    "batches create": {
        "ns --mesh nonesuch": "not the extent of an axis",
        "s3:/x --mesh dp=1": "not the address",
    },
    "batches produce": {
        "ns --blend nonesuch": "Malformed blend id",
        "ns --blend a --lane abc": "not a range of lanes",
        "ns --blend a --server localhost:1 --strategy llm": "Give --strategy or --server",
    },
    "batches finish": {"nowhere 0": "no namespace"},
    "batches end": {"nowhere": "no namespace"},
    "batches reclaim": {"nowhere": "no namespace", "nowhere --every 0": "greater than or equal to 1"},
    "batches close": {"nowhere --run a": "no namespace", "nowhere": "--run"},
    "batches status": {"nowhere": "no namespace"},
    "batches show": {"nowhere 0": "no namespace", "nowhere x": "integer"},
    "batches probe": {"s3:/x": "not the address"},
    "loading index": {"nonesuch": "Malformed blend id"},
    "loading plan": {
        "nonesuch": "Malformed blend id",
        "a --mesh nonesuch": "not the extent of an axis",
        "a --model nonesuch": "not a size",
        "a --order nonesuch": "not an order",
        "a --spec nowhere": "cannot be read",
        "a --json --draw dot": "Give one of them",
    },
    "export": {
        "web web.csv": "names no format",
        "web nowhere/web.jsonl": NOWHERE,
        "web web.jsonl": "no table deduplicated.web",
    },
    "report": {
        "nowhere/report.html": NOWHERE,
        "report.html": "no tables to report",
        "report.html --run nonesuch": "0 runs have an id",
    },
    "tokenizer export": {
        "t.json --name a --blend b": "exclude each other",
        "nowhere/t.json": NOWHERE,
        "t.json": "no tokenizer",
        "t.json --name a": "no table models.a",
    },
    "ui": {"--port 70000": "out of range", "--port x": "integer", "FACTORY_DATASETS=nowhere": NOWHERE},
    "doctor": {"more": EXTRA},
    "bootstrap": {"more": EXTRA},
    "clean": {"--lake nowhere": "no lake", "more": EXTRA},
    "relocate": {"--lake nowhere": "no lake", "more": EXTRA},
}
MISTAKES = {  # in a datasets file: a line of it and another in its place
    "Unknown field `pahts`": ("paths: notes", "pahts: notes"),
    "Unknown value `proze`": ("kind: prose", "kind: proze"),
    "Unknown dataset `lettrs`": ("from: letters", "from: lettrs"),
    "this is not YAML": ("kind: prose", "kind: {prose"),
    "`notes/2025` does not exist": ("paths: notes", "paths: notes/2025"),
    "`stop_word` is not among the chosen rules": ("stop_words: 1", "stop_word: 1"),
    "Unknown tokenizer `other`": ("tokenizer: {vocabulary", "other: {vocabulary"),
    "Unknown group `prase`": ("groups: {prose", "groups: {prase"),
    "which begin the name of a variant": ("name: letters", "name: let__ters"),
}
CORRECT = """\
datasets:
  - name: letters
    kind: prose
    format: files
    paths: notes
    limits: {stop_words: 1}
  - name: pages
    kind: prose
    format: html
    from: letters
tokenizers: {tokenizer: {vocabulary: 1000}}
groups: {prose: {threshold: 0.7}}
"""
OF_THE_FILE = ("check", "materialize *", "materialize * --dry-run", "assets", "demo", "ui --port 0")
REPLACE_THE_PROCESS = {"serve": "--port x", "loading serve": "--port x"}


def call(command: str, text: str) -> list[object]:
    """The words of a call, then its variables of the environment."""
    words = [word for word in text.split() if not word.startswith("FACTORY_")]
    variables = dict(word.split("=") for word in text.split() if word.startswith("FACTORY_"))
    return [*command.split(), *words, variables]


def refuse_all(folder: Path, wrong: Sequence[tuple[str, str, str]], heavy: Sequence[str]) -> None:
    """Run commands with wrong words in one process; each says its sentence, and none imports `heavy`."""
    calls = json.dumps([call(command, text) for command, text, _ in wrong])
    environment = {name: value for name, value in os.environ.items() if not name.startswith("FACTORY_")}
    subprocess.run(
        [sys.executable, "-c", CALLS, calls, str(folder / "answers.json"), json.dumps(heavy)],
        cwd=folder,
        env=environment | {"FACTORY_HOME": str(folder / "lake")},
        check=True,
        timeout=120,
    )
    answers = json.loads((folder / "answers.json").read_text())
    for (command, text, said), (exit_code, stderr, imported) in zip(wrong, answers, strict=True):
        assert exit_code not in (0, 1), f"{command} {text}: {stderr}"
        assert said in stderr, f"{command} {text}: {stderr}"
        assert not imported, f"{command} {text} imports {imported}"


@pytest.mark.process
def test_wrong_arguments_are_refused_before_heavy_packages_are_imported(tmp_path: Path) -> None:
    assert WRONG.keys() | REPLACE_THE_PROCESS.keys() == set(names())
    wrong = [(command, text, said) for command, texts in WRONG.items() for text, said in texts.items()]
    refuse_all(tmp_path, wrong, HEAVY)


@pytest.mark.process
def test_a_mistake_in_a_datasets_file_is_refused_before_dagster_is_imported(tmp_path: Path) -> None:
    (tmp_path / "notes").mkdir()
    wrong = []
    for number, (sentence, (line, mistake)) in enumerate(MISTAKES.items()):
        file = tmp_path / f"{number}.yaml"
        file.write_text(CORRECT.replace(line, mistake, 1))
        wrong += [(command, f"-f {file.name}", sentence) for command in OF_THE_FILE]
        wrong.append(("check", file.name, sentence))
    refuse_all(tmp_path, wrong, WITH_A_FILE)


@pytest.mark.process
@pytest.mark.parametrize("command", REPLACE_THE_PROCESS)
def test_a_server_refuses_wrong_arguments_before_it_imports_heavy_packages(
    tmp_path: Path, command: str
) -> None:
    words = [*command.split(), *REPLACE_THE_PROCESS[command].split()]
    done = subprocess.run(
        [sys.executable, "-m", "factory.cli.main", *words],
        env=os.environ | {"FACTORY_HOME": str(tmp_path), "PYTHONPROFILEIMPORTTIME": "1"},
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == 2
    imported = set(re.findall(r"^import time:.*\| +([\w.]+)$", done.stderr, re.MULTILINE))
    assert "blender" in imported
    assert not imported & set(HEAVY)
