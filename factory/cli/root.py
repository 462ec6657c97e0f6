"""The root command: the options that every command takes, names that have changed, errors as sentences."""

from __future__ import annotations

import copy
import inspect
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from typer.core import TyperGroup

from factory.cli import error_boundary, panels
from factory.errors import ConfigurationError
from factory.settings import PREFIX, Settings, settings
from factory.suggestions import suggestion

_RENAMED = {
    "blends": "`factory blend list` lists the blends, `factory blend show ID` describes one",
    "blender": "`factory blend plan` prices a blend",
}
DATASETS_FILE = "datasets.yaml"  # as `factory init` names it

_LAKE_OPTIONS = ("datasets", "lake")  # of the root, which people write behind the command as well
_WITHOUT_LAKE = ("init",)
_OF_BLEND_FILES = (["blend", "create"], ["blend", "plan"], ["blend", "update"])
_NEED_NO_LAKE = ("init", "materialize", "demo", "ui", "bootstrap", "doctor", "assets", "check")


ASKS_FOR_HELP = "factory.help"  # in the context's `meta`: whether the words ask for help


class Commands(TyperGroup):
    """A group of commands that answers an unknown one with the nearest of its own."""

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        # The completion of a shell asks, too, and takes no error.
        if self.get_command(ctx, args[0]) is None and not ctx.resilient_parsing:
            remedy = suggestion(args[0], self.list_commands(ctx))
            raise ConfigurationError(f"There is no command `{ctx.command_path} {args[0]}`. {remedy}")
        return super().resolve_command(ctx, args)


class Root(Commands):
    """The commands; an error ends as a sentence and an exit code.

    The datasets file and the lake may be named before the command, behind it, or in the environment.
    """

    def __init__(self, **attributes: Any) -> None:
        super().__init__(**attributes)
        lake_options = [option for option in self.params if option.name in _LAKE_OPTIONS]
        for command in _commands_below(self):
            command.help = _joined_lines(command.help)
            if command.name not in _WITHOUT_LAKE:
                command.params += [_behind_the_command(option) for option in lake_options]

    def list_commands(self, ctx: Any) -> list[str]:
        """Return the commands in the order in which a person meets them."""
        return sorted(super().list_commands(ctx), key=panels.ORDER.index)

    def get_params(self, ctx: Any) -> list[Any]:
        """Return the options; options that set up completion have a panel of their own."""
        options: list[Any] = super().get_params(ctx)
        for option in options:
            if option.name in ("install_completion", "show_completion"):
                option.rich_help_panel = panels.COMPLETION
        return options

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        ctx.meta[ASKS_FOR_HELP] = "--help" in args
        with error_boundary.sentences():
            return super().parse_args(ctx, args)

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        if args[0] in _RENAMED and not ctx.resilient_parsing:
            raise ConfigurationError(f"There is no command `{args[0]}`: {_RENAMED[args[0]]}.")
        return super().resolve_command(ctx, args)

    def invoke(self, ctx: Any) -> Any:
        with error_boundary.sentences():
            return super().invoke(ctx)


def lake_settings() -> Settings:
    """Return the settings of the lake that a command works on."""
    return settings()


def require_datasets_file(path: Path, argument: str) -> None:
    """Raise ConfigurationError if `path`, which `argument` names, is not a file."""
    if path.is_dir() or not path.exists():
        problem = "is a folder" if path.is_dir() else "does not exist"
        raise ConfigurationError(
            f"The datasets file {path} {problem}. Correct {argument}; `factory init FOLDER` writes one."
        )


def require_declared_file() -> None:
    """Raise ConfigurationError if the datasets file of the settings is missing or wrong; none at all is fine.

    Commands ask before they import Dagster, which takes longer than this answer.
    """
    path = settings().datasets
    if path is not None:
        require_datasets_file(path, f"{PREFIX}DATASETS")
        require_correct_file(path)


def require_correct_file(path: Path) -> None:
    """Raise ConfigurationError with a sentence for each mistake that a datasets file shows by itself."""
    if path.suffix == ".py":  # running the file is the answer, and takes as long as the import of Dagster
        return
    from factory.orchestration.datasets.file import read_declared

    read_declared(path)


def use_lake(datasets: Path | None, lake: Path | None, command: str) -> None:
    """Let this process and its children use a datasets file and a lake; None leaves the environment's.

    Raises ConfigurationError for a file that does not exist, for a lake that is no folder, and for a folder
    without a lake, unless the command needs none.
    """
    # A shell expands no `~` behind `=`.
    datasets, lake = (None if path is None else path.expanduser() for path in (datasets, lake))
    if datasets is not None:
        require_datasets_file(datasets, "-f")
    if lake is not None and lake.exists() and not lake.is_dir():
        raise ConfigurationError(f"--lake is {lake}, which is a file. Name the folder of the lake.")
    for name, path in (("DATASETS", datasets), ("HOME", lake)):
        if path is not None:
            os.environ[PREFIX + name] = str(path.absolute())
            settings.cache_clear()
    if lake is not None and command not in _NEED_NO_LAKE and _is_missing(settings()):
        raise ConfigurationError(
            f"There is no lake in {lake}. Correct --lake; `factory materialize '*'` makes one."
        )


def _is_missing(lake: Settings) -> bool:
    # A lake with a record and no catalog may have lost it: opening the lake tells, and names the remedy.
    files = (lake.files.catalog_database, lake.files.lake_record)
    return lake.embedded and not any(file.exists() for file in files)


def _commands_below(group: TyperGroup) -> Iterator[Any]:
    """Yield the commands of a group and of the groups in it, with these groups."""
    for command in group.commands.values():
        yield command
        if isinstance(command, TyperGroup):
            yield from _commands_below(command)


def _joined_lines(text: str | None) -> str:
    """Return a docstring with each paragraph in one line, so that help wraps at its own width."""
    paragraphs = inspect.cleandoc(text or "").split("\n\n")
    return "\n\n".join(" ".join(paragraph.split("\n")) for paragraph in paragraphs)


def _words(ctx: Any) -> list[str]:
    """Return the names of a command and of the groups above it, without the program's."""
    return [] if ctx.parent is None else [*_words(ctx.parent), ctx.info_name]


def _behind_the_command(option: Any) -> Any:
    """Return a copy of an option of the root for a command; its function does not receive the value."""

    def use(ctx: Any, _option: Any, path: str | None) -> None:
        if path is None:
            return
        words = _words(ctx)
        if option.name == "datasets" and words in _OF_BLEND_FILES:
            raise ConfigurationError(
                "-f names the datasets file. Name the file of a blend without it, that of a plan or of an "
                "update with --file."
            )
        use_lake(**{**dict.fromkeys(_LAKE_OPTIONS), option.name: Path(path)}, command=words[0])

    other = copy.copy(option)
    other.expose_value, other.callback, other.rich_help_panel = False, use, panels.LAKE
    return other
