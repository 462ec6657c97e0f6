"""The boundary at which errors become a sentence and an exit code, without a stack trace."""

from __future__ import annotations

import errno
import os
import signal
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from types import FrameType
from typing import NoReturn

import typer
from pydantic import ValidationError

from factory.cli.full_disk import full_disk
from factory.cli.import_problems import import_problem
from factory.cli.output import open_console
from factory.errors import ConfigurationError, DamagedFile, FactoryError, MachineError
from factory.settings import refusal

errors = open_console(stderr=True)

INTERRUPTED, TERMINATED = 130, 143  # the shell's exit codes for SIGINT and SIGTERM


class Terminated(KeyboardInterrupt):
    """SIGTERM, where a command ends its work in order before it ends."""


def end_in_order_on_sigterm() -> None:
    """Let SIGTERM raise Terminated in the main thread, as SIGINT raises KeyboardInterrupt."""
    signal.signal(signal.SIGTERM, _raise_terminated)


def _raise_terminated(_number: int, _frame: FrameType | None) -> NoReturn:
    raise Terminated


def translate(error: BaseException) -> FactoryError | None:
    """Return a FactoryError for an error caused by the machine, a setting or the installation, else None."""
    if isinstance(error, MachineError):  # names what cannot be written, also on a full disk
        return error
    if (no_room := full_disk(error)) is not None:
        return no_room
    if isinstance(error, FactoryError):
        return error
    if isinstance(error, ValidationError):
        return refusal(error)
    if isinstance(error, ImportError):
        return import_problem(error)
    if isinstance(error, PermissionError) or getattr(error, "errno", None) == errno.EROFS:
        assert isinstance(error, OSError)
        what = f" ({error.filename})" if error.filename else ""
        return MachineError(
            f"Access was refused: {error.strerror or error}{what}. Grant yourself access; "
            "for a file of the lake, set FACTORY_HOME to a folder you can write."
        )
    return None


@contextmanager
def sentences() -> Iterator[None]:
    """Turn the platform's errors into a sentence on stderr and an exit code."""
    try:
        yield
    except KeyboardInterrupt as interrupt:
        errors.print(
            str(interrupt) or ("Terminated." if isinstance(interrupt, Terminated) else "Interrupted.")
        )
        raise typer.Exit(TERMINATED if isinstance(interrupt, Terminated) else INTERRUPTED) from None
    except typer.TyperException as error:
        if not error.format_message().strip():  # a group without a command prints its help
            raise
        errors.print(_usage(error), markup=False)
        raise typer.Exit(ConfigurationError.exit_code) from None
    except Exception as error:
        known = translate(error)
        if known is None:
            raise
        errors.print(str(known), markup=False)
        raise typer.Exit(known.exit_code) from None


def _usage(error: typer.TyperException) -> str:
    """Return the mistake in the arguments of a command, and the help on its arguments."""
    context = getattr(error, "ctx", None)
    command = context.command_path if context else "factory"
    return f"{error.format_message().rstrip('.')}. `{command} --help` says what it takes."


def raise_together(damaged: Sequence[DamagedFile]) -> None:
    """Raise one error with a sentence for each damaged table; do nothing without any."""
    if damaged:
        raise DamagedFile("\n".join(map(str, damaged)))


def run(app: Callable[[], None]) -> None:
    """Run the command line; keep the stack trace of an unexpected error in a file."""
    try:
        app()
    except SystemExit as ended:
        if ended.code in (INTERRUPTED, TERMINATED):
            # The run's thread is still alive, and a regular exit would wait for it.
            sys.stdout.flush()
            os._exit(ended.code)
        raise
    except Exception as error:
        import tempfile
        import traceback

        with tempfile.NamedTemporaryFile("w", prefix="factory-", suffix=".log", delete=False) as file:
            traceback.print_exception(error, file=file)
        errors.print(
            f"{type(error).__name__}: {error}\nThis should not happen. The trace is in {file.name}.",
            markup=False,
        )
        sys.exit(70)
