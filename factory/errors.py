"""The typed errors of the platform: one class for each reaction of a caller.

A message is one sentence of fact with names and numbers, then one of remedy. The platform catches errors by
class; at its edges they become a gRPC status (`blender.protocol.status`) or an exit code without a stack
trace (`factory.cli`).
"""


class FactoryError(Exception):
    """Base of every error that the platform raises on purpose."""

    exit_code = 1


class ConfigurationError(FactoryError):
    """A setting, a declaration or a dataset entry is wrong; the message names it."""

    exit_code = 2


class MachineError(FactoryError):
    """The machine lacks something: a JVM, a compiler, a free port, room on the disk, a writable folder."""

    exit_code = 3


class LakeLocked(FactoryError):
    """Another run is writing this embedded lake; the message names its process and run."""

    exit_code = 4


class TableNotFound(FactoryError):
    """A table does not exist or has never been published."""

    exit_code = 5


class PublishConflict(FactoryError):
    """Main moved between the start of a write and its publication; nothing was changed."""

    exit_code = 6


class CheckFailed(FactoryError):
    """A check failed on an audit branch; main is unchanged."""

    exit_code = 7


class NotFound(FactoryError):
    """A document, blend, step or other named thing does not exist."""

    exit_code = 8


class SourceChanged(FactoryError):
    """A registered file changed or vanished since its registration; the message names it."""

    exit_code = 10


class DamagedFile(FactoryError):
    """A file of the lake is damaged or missing; the message names the file and its table."""

    exit_code = 11


def first_line(error: BaseException | None) -> str:
    """Return the first line of an error for use in a sentence, or the name of its class."""
    return (str(error or "").strip().splitlines() or [type(error).__name__])[0].rstrip(".:")
