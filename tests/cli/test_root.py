"""The datasets file and the lake as options, at any place of a command; help in the order of use."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from factory.errors import ConfigurationError
from factory.settings import settings
from tests.blender.lakes import CODE, make_lake
from tests.cli.command import factory, process
from tests.cli.every_command import names


@pytest.fixture
def lake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The folder of a lake that only an option names."""
    home = make_lake(tmp_path / "lake", code=4, prose=4).home
    for name in ("FACTORY_HOME", "FACTORY_DATASETS"):
        monkeypatch.setenv(name, "")  # so that what a command sets is undone
        monkeypatch.delenv(name)
    settings.cache_clear()
    yield str(home)
    settings.cache_clear()


@pytest.mark.parametrize("place", [0, 1, 2, 3])
def test_a_lake_is_named_at_any_place_and_in_either_form(lake: str, tmp_path: Path, place: int) -> None:
    for option in (["--lake", lake], [f"--lake={lake}"]):
        words = ["sample", CODE, "--json"]
        words[place:place] = option
        sampled = factory(*words)
        assert (sampled.exit_code, sampled.stderr) == (0, "")
    assert factory("blend", "--lake", lake, "list", "--json").stdout == "[]\n"
    assert os.environ["FACTORY_HOME"] == lake  # for processes that the command starts


@pytest.mark.parametrize(
    "words", [["-f", "F", "check"], ["check", "-f", "F"], ["check", "-fF"], ["-fF", "check"]]
)
def test_a_datasets_file_is_named_at_any_place(lake: str, tmp_path: Path, words: list[str]) -> None:
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "a.md").write_text("A note.")
    file = tmp_path / "d.yaml"
    file.write_text("datasets: [{name: notes, kind: prose, format: files, paths: notes}]")
    checked = factory(*(word.replace("F", str(file)) for word in words))
    assert (checked.exit_code, checked.stderr) == (0, "")
    assert os.environ["FACTORY_DATASETS"] == str(file)


WRONG = [
    (["check", "-f", "absent.yaml"], "The datasets file absent.yaml does not exist. Correct -f; "),
    (["check", "absent.yaml"], "The datasets file absent.yaml does not exist. Correct it; `factory init"),
    (["check", "."], "The datasets file . is a folder. Correct it; `factory init FOLDER` writes one."),
    (["init", "absent"], "`absent` is not a folder. Name the folder of your files."),
    (["-f", ".", "check"], "The datasets file . is a folder. "),
    (["tables", "--lake", "absent"], "There is no lake in absent. Correct --lake; "),
    (["--lake", ".", "blend", "list"], "There is no lake in .. Correct --lake; "),
    (["trace", "document", "a", "--lake", "file"], "--lake is file, which is a file. "),
]


@pytest.mark.parametrize("words, sentence", WRONG)
def test_a_wrong_path_is_one_sentence_and_makes_nothing(
    lake: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: list[str], sentence: str
) -> None:
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    Path("file").touch()
    refused = factory(*words)
    assert (refused.exit_code, refused.stdout) == (ConfigurationError.exit_code, "")
    (line,) = refused.stderr.splitlines()
    assert line.startswith(sentence)
    assert list(Path().iterdir()) == [Path("file")]


@pytest.mark.process
def test_a_lake_that_is_not_there_yet_is_named_behind_a_command_of_python(tmp_path: Path) -> None:
    ended = process(tmp_path, "materialize", "--lake", str(tmp_path / "new"), "--dry-run", "raw.*")
    assert (ended.returncode, ended.stdout.splitlines()[-1][:15]) == (0, "Nothing was run")


def test_what_needs_no_lake_runs_without_one(
    lake: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert factory("--lake", "absent", "tables", "--help").exit_code == 0
    Path("notes").mkdir()
    Path("notes/a.md").write_text("A note.")
    assert factory("--lake", "absent", "init", "notes").exit_code == 0
    assert not Path("absent").exists()


@pytest.mark.process
@pytest.mark.parametrize(
    "words, command",
    [("factory blnd ", "tables"), ("factory blends ", "tables"), ("factory blend lst ", "list")],
)
def test_a_shell_offers_commands_after_a_wrong_word(tmp_path: Path, words: str, command: str) -> None:
    asked = {"_FACTORY_COMPLETE": "complete_bash", "COMP_WORDS": words, "COMP_CWORD": str(words.count(" "))}
    program = Path(sys.executable).with_name("factory")
    completed = subprocess.run(
        [program],
        env=os.environ | asked,
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert command in completed.stdout.split()
    assert completed.stderr == ""


@pytest.mark.process
def test_a_server_inherits_the_lake_of_the_option(lake: str, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    served = process(tmp_path / "empty", "serve", "--lake", lake, "--port", "99999")
    assert served.stderr == "Port 99,999 is out of range. Use 1 to 65,535, or 0 for any.\n"
    assert list((tmp_path / "empty").iterdir()) == []


def test_a_home_folder_is_expanded_behind_an_equals_sign(
    lake: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    assert CODE in factory("tables", "--lake=~/lake").stdout
    assert CODE in factory("--lake=~/lake", "tables").stdout


@pytest.mark.parametrize(
    "words", [["create", "-f", "b.yaml"], ["plan", "-fb.yaml"], ["update", "-f", "b.yaml"]]
)
def test_the_short_option_is_no_file_of_a_blend(lake: str, words: list[str]) -> None:
    refused = factory("--lake", lake, "blend", *words)
    assert (refused.exit_code, refused.stdout) == (ConfigurationError.exit_code, "")
    assert refused.stderr.startswith("-f names the datasets file. Name the file of a blend without it, ")


GROUPS = {" ".join(name.split()[:-1]) for name in names()}


@pytest.mark.parametrize("name", sorted({*names(), *GROUPS} - {"serve", "loading serve"}))  # not of typer
def test_help_is_whole_at_60_columns(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.setenv("COLUMNS", "60")
    shown = factory(*name.split(), "--help").stdout
    assert "…" not in shown
    assert "\x1b" not in shown
    assert max(map(len, shown.splitlines())) <= 60
    assert ("--lake" in shown) == (name != "init")


def test_commands_stand_in_the_order_of_use(monkeypatch: pytest.MonkeyPatch) -> None:
    lines = factory("--help").stdout.splitlines()
    panels = [line.split("─")[1].strip() for line in lines if line.startswith("╭")]
    assert [panel.split()[0].strip(":,") for panel in panels] == [
        *("Options", "Completion", "Your", "Look", "Blend", "Operate"),
    ]
    commands = re.findall(r"^│ ([a-z]+) ", "\n".join(lines), re.MULTILINE)
    assert commands[:4] == ["init", "check", "assets", "materialize"]
    assert [commands.index(name) for name in ("tables", "blend", "serve", "doctor", "ui")] == sorted(
        commands.index(name) for name in ("tables", "blend", "serve", "doctor", "ui")
    )


def test_every_paragraph_of_help_fills_its_lines() -> None:
    shown = factory("materialize", "--help").stdout
    assert "its asset (exit code\n 7)" in re.sub(" +\n", "\n", shown) or "its asset (exit code 7)" in shown


USAGE = [
    (["nosuch"], "There is no command `factory nosuch`. There are "),
    (["blend", "lst"], "There is no command `factory blend lst`. Did you mean `list`?"),
    (["trace", "docment"], "There is no command `factory trace docment`. Did you mean `document`?"),
    (["tables", "--jsn"], "No such option: --jsn (Possible options: --json). `factory tables --help` says "),
    (["blend", "show"], "Missing argument 'blend'. `factory blend show --help` says what it takes."),
    (["sample", "raw.web", "-n", "two"], "Invalid value for '-n': "),
    (["sample", "raw.web", "more"], "Got unexpected extra argument(s) (more). `factory sample --help` says"),
    (["check", "-f"], "Option '-f' requires an argument. `factory"),
    (["--lake"], "Option '--lake' requires an argument. `factory --help` says what it takes."),
]


@pytest.mark.parametrize("words, sentence", USAGE)
def test_wrong_words_are_one_sentence_that_names_the_help(
    monkeypatch: pytest.MonkeyPatch, words: list[str], sentence: str
) -> None:
    monkeypatch.setenv("COLUMNS", "60")
    refused = factory(*words)
    assert (refused.exit_code, refused.stdout) == (ConfigurationError.exit_code, "")
    (line,) = refused.stderr.splitlines()
    assert line.startswith(sentence)


@pytest.mark.parametrize("group", [[], ["blend"], ["trace"]])
def test_a_group_without_a_command_prints_its_help(group: list[str]) -> None:
    shown = factory(*group)
    assert shown.exit_code == 2
    assert "╭─" in shown.output
