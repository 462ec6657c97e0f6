"""Wrong options of a server are one sentence each."""

from __future__ import annotations

import argparse

import pytest

from blender.serving.option_parser import OptionParser
from factory.errors import ConfigurationError


@pytest.fixture
def parser() -> argparse.ArgumentParser:
    parser = OptionParser("factory serve", "Serve.")
    parser.add_argument("--port", type=int)
    return parser


@pytest.mark.parametrize(
    "words, sentence",
    [
        (["--prot", "5"], "Unrecognized arguments: --prot 5. Did you mean `--port`? `factory serve --help`"),
        (["--po", "5"], "Unrecognized arguments: --po 5. "),
        (["5"], "Unrecognized arguments: 5. `factory serve --help` lists the options."),
        (["--port", "x"], "Argument --port: invalid int value: 'x'. `factory serve --help`"),
        (["--port"], "Argument --port: expected one argument. "),
    ],
)
def test_a_wrong_option_is_a_sentence(
    parser: argparse.ArgumentParser, words: list[str], sentence: str
) -> None:
    with pytest.raises(ConfigurationError) as error:
        parser.parse_args(words)
    assert str(error.value).startswith(sentence)


def test_the_help_names_the_options_of_the_lake(
    parser: argparse.ArgumentParser, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        parser.parse_args(["--help"])
    assert "--lake" in capsys.readouterr().out
