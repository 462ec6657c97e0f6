"""The typed errors of the platform: one class for each reaction of a caller.

A message is one sentence of fact with names and numbers, then one of remedy. The platform catches errors by
class; at its edges they become a gRPC status (`blender.protocol.status`) or an exit code without a stack
trace (`factory.cli`).
"""


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
    """A file of the lake is damaged or missing; the message names the file and its table."""


def first_line(error: BaseException | None) -> str:
    """Return the first line of an error for use in a sentence, or the name of its class."""
    return (str(error or "").strip().splitlines() or [type(error).__name__])[0].rstrip(".:")
