"""The root command: the options that every command takes, names that have changed, errors as sentences."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from typer import rich_utils
from typer.core import TyperGroup

from factory.cli import error_boundary
from factory.errors import ConfigurationError
from factory.settings import PREFIX, Settings, settings

_RENAMED = {
    "blends": "`factory blend list` lists the blends, `factory blend show ID` describes one",
    "blender": "`factory blend plan` prices a blend",
}
_HELP_COLUMNS = 100  # of help in a pipe, which has no width of its own
_SHORT = "-f"
_OF_BLEND_FILES = (["create"], ["plan"], ["update"])
_EVERYWHERE = (_SHORT, "--datasets", "--lake")  # options of the root that people write behind the command


if not sys.stdout.isatty():
    rich_utils.MAX_WIDTH = _HELP_COLUMNS


class Root(TyperGroup):
    """The commands; an error ends as a sentence and an exit code.

    The datasets file and the lake may be named before the command, behind it, or in the environment.
    """

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        with error_boundary.sentences():
            return super().parse_args(ctx, lake_options_first(args))

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        if args[0] in _RENAMED:
            raise ConfigurationError(f"There is no command `{args[0]}`: {_RENAMED[args[0]]}.")
        return super().resolve_command(ctx, args)

    def invoke(self, ctx: Any) -> Any:
        with error_boundary.sentences():
            return super().invoke(ctx)


def lake_options_first(words: Sequence[str]) -> list[str]:
    """Move the options that name the datasets file and the lake before the command.

    Words behind `--` stay. Raises ConfigurationError for an option without a path.
    """
    options: list[str] = []
    rest: list[str] = []
    waiting = iter(words)
    for word in waiting:
        name, has_path, _ = word.partition("=")
        is_short = word.startswith(_SHORT) and not word.startswith("--")
        if is_short and rest[:1] == ["blend"] and rest[1:2] in _OF_BLEND_FILES:
            raise ConfigurationError(
                f"{_SHORT} names the datasets file. Name the file of a blend without it, that of a plan or "
                "of an update with --file."
            )
        if word == "--":
            rest += [word, *waiting]
        elif (name in _EVERYWHERE and has_path) or (is_short and word != _SHORT):
            options.append(word)
        elif word in _EVERYWHERE:
            path = next(waiting, None)
            if path is None:
                raise ConfigurationError(f"{word} names no path. Write it behind {word}.")
            options += [word, path]
        else:
            rest.append(word)
    return [*options, *rest]


def lake_settings() -> Settings:
    """Return the settings of the lake that a command works on."""
    return settings()


def use_lake(datasets: Path | None, lake: Path | None) -> None:
    """Let this process and its children use a datasets file and a lake; None leaves the environment's.

    Raises ConfigurationError for a file that does not exist and for a lake that is no folder.
    """
    # A shell expands no `~` behind `=`.
    datasets, lake = (None if path is None else path.expanduser() for path in (datasets, lake))
    if datasets is not None and not datasets.is_file():
        problem = "is a folder" if datasets.is_dir() else "does not exist"
        raise ConfigurationError(
            f"The datasets file {datasets} {problem}. Correct -f; `factory init FOLDER` writes one."
        )
    if lake is not None and lake.exists() and not lake.is_dir():
        raise ConfigurationError(f"--lake is {lake}, which is a file. Name the folder of the lake.")
    for name, path in (("DATASETS", datasets), ("HOME", lake)):
        if path is not None:
            os.environ[PREFIX + name] = str(path.absolute())
            settings.cache_clear()
