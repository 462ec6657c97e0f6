"""Every command of the command line, with arguments that lead it to the lake."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from typer.core import TyperGroup
from typer.main import get_command

from factory.cli import main
from tests.blender.lakes import CODE
from tests.cli.command import factory, process

BLEND = "<blend>"  # stands for the id of the lake's blend
FILE = "<file>"  # stands for a file that the command would write
ARGUMENTS = {
    "materialize": ["packed.code"],
    "work": ["code"],
    "tables": [],
    "sample": [CODE],
    "diff": [f"{CODE}@before", CODE],
    "trace document": ["code-1"],
    "trace batch": [BLEND, "0"],
    "demo": [],
    "serve": ["--port", "0"],
    "blend plan": [BLEND],
    "blend create": [FILE],
    "blend list": [],
    "blend show": [BLEND],
    "blend update": [BLEND, "--from", "1", "--weight", f"{CODE}=2"],
    "blend retire": [BLEND],
    "batches produce": [FILE, "--blend", BLEND],
    "loading index": [BLEND],
    "loading plan": [BLEND],
    "loading serve": [BLEND, "--port", "0"],
    "export": ["code", f"{FILE}.jsonl"],
    "report": [FILE],
    "tokenizer export": [FILE],
    "ui": ["--port", "0"],
    "bootstrap": [],
    "clean": [],
}
CALLS = [
    *([*name.split(), *rest] for name, rest in ARGUMENTS.items()),
    ["materialize", "packed.code", "--dry-run"],
]
OPEN_NO_LAKE = {
    "init",
    "check",
    "assets",
    "batches create",
    "batches end",
    "batches finish",
    "batches reclaim",
    "batches close",
    "batches status",
    "batches show",
    "batches probe",
}
REPORT_THE_COPY = {"doctor"}
MEND_THE_COPY = {"relocate"}


def names_of(group: TyperGroup, above: str = "") -> Iterator[str]:
    """The commands below a group, such as `trace document`."""
    for name, command in group.commands.items():
        path = f"{above} {name}".strip()
        if isinstance(command, TyperGroup):
            yield from names_of(command, path)
        else:
            yield path


def names() -> list[str]:
    """Every command, such as `trace document`."""
    group = get_command(main.app)
    assert isinstance(group, TyperGroup)
    return list(names_of(group))


def answer(call: list[str], home: Path, blend: str, file: Path) -> tuple[int, str]:
    """The exit code and the error of a call on the lake that the environment names."""
    file.write_text(f'{{"sources": [{{"table": "{CODE}", "weight": 1}}]}}')
    words = [word.replace(BLEND, blend).replace(FILE, str(file)) for word in call]
    if "serve" in call[:2]:  # which replaces its process
        served = process(home, *words)
        return served.returncode, served.stderr
    result = factory(*words)
    return result.exit_code, result.stderr
