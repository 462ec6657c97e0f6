"""The typed errors of the platform: one class for each reaction of a caller.

A message is one sentence of fact with names and numbers, then one of remedy. The platform catches errors by
class; at its edges they become a gRPC status (`blender.wire.status`) or an exit code without a stack
trace (`factory.cli`).
"""

from __future__ import annotations

from collections.abc import Iterator


class FactoryError(Exception):
    """Base of every error that the platform raises on purpose; a subclass may have its own exit code."""

    exit_code = 1

    def __init_subclass__(cls, exit_code: int | None = None) -> None:
        super().__init_subclass__()
        if exit_code is not None:
            cls.exit_code = exit_code


class ConfigurationError(FactoryError, exit_code=2):
    """A setting, a declaration or a dataset entry is wrong; the message names it."""


class MachineError(FactoryError, exit_code=3):
    """The machine lacks something: a JVM, a compiler, a free port, room on the disk, a writable folder."""


class LakeLocked(FactoryError, exit_code=4):
    """Another run is writing this embedded lake; the message names its process and run."""


class TableNotFound(FactoryError, exit_code=5):
    """A table does not exist or has never been published."""


class PublishConflict(FactoryError, exit_code=6):
    """Main moved between the start of a write and its publication; nothing was changed."""


class CheckFailed(FactoryError, exit_code=7):
    """A check failed on an audit branch; main is unchanged."""


class NotFound(FactoryError, exit_code=8):
    """A document, blend, step or other named thing does not exist."""


class SourceChanged(FactoryError, exit_code=10):
    """A registered file changed or vanished since its registration; the message names it."""


class DamagedFile(FactoryError, exit_code=11):
    """A file of the lake, or a text in a registered file, is damaged or missing; the message names it."""


class LakeMoved(FactoryError, exit_code=12):
    """The lake was copied or moved, or its warehouse belongs to another home; nothing was read or written."""


def error_from_text(text: str) -> FactoryError | None:
    """Return the error that Python prints as `factory.errors.NotFound: sentence`, None for a foreign class.

    Dagster and Spark pass errors on as text; by this function a caller reacts to the class all the same.
    """
    name, _, sentence = text.strip().partition(": ")
    classes = _with_subclasses(FactoryError)
    return next((cls(sentence) for cls in classes if f"{cls.__module__}.{cls.__qualname__}" == name), None)


def _with_subclasses(cls: type[FactoryError]) -> Iterator[type[FactoryError]]:
    yield cls
    for subclass in cls.__subclasses__():
        yield from _with_subclasses(subclass)


def first_line(error: BaseException | None) -> str:
    """Return the first line of an error for use in a sentence, or the name of its class."""
    return (str(error or "").strip().splitlines() or [type(error).__name__])[0].rstrip(".:")
