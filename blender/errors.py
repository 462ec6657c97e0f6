"""What can go wrong with a blend: one class for each reaction of a caller.

`blender.wire.status` maps each class to a gRPC status and back, so that callers of the client catch the
same classes as callers of the core.
"""

from __future__ import annotations

from factory.errors import ConfigurationError, FactoryError, MachineError, NotFound, TableNotFound


class BlendNotFound(NotFound):
    """No blend has this id."""


class InvalidBlend(ConfigurationError):
    """The definition of a blend is wrong: weights, columns, references, sources that do not fit together."""


class BrokenBlend(FactoryError):
    """The record of a blend is malformed: something else wrote it, or a disk damaged it."""


class InvalidRequest(ConfigurationError):
    """An offset, a number of steps or a rank is out of the blend's bounds."""


class UnknownLength(InvalidRequest, TypeError):
    """A sequence of steps has no end, or nobody knows it; as a TypeError, which `len` may raise."""


class PlanChanged(ConfigurationError):
    """A step has two plans: its strategy was changed in mid-run, or differs between processes."""


class InvalidStrategy(InvalidRequest):
    """A strategy plans a step in two ways, or for other ranks than step 0."""


class Unauthenticated(ConfigurationError):
    """The server requires a token, and the call brought none that it accepts."""


class EndOfData(FactoryError, exit_code=9):
    """The blend ends before the requested step; the message names the source that is used up."""


class SourceGone(TableNotFound):
    """The data behind a blend no longer exists, or differs from the pinned data."""


class CorruptPage(SourceGone):
    """A file contains other bytes than its writer wrote; the message names file, column and page."""


class StoreUnavailable(MachineError):
    """The store that holds the data behind a blend does not answer, or refuses; the message names it."""


class UnsupportedPageLayout(ConfigurationError):
    """A Parquet file is whole but cannot be read page by page; the message says why."""


class BlenderUnavailable(MachineError):
    """No Blender answers at the address, or not in time."""


class Busy(BlenderUnavailable):
    """The Blender answers as many calls at once as it admits."""


class Stalled(BlenderUnavailable):
    """The rows did not arrive in time; the message names the source that the call waited for."""


class ServerStopping(BlenderUnavailable):
    """The Blender stops before the call ends; another one, or the same once it is back, continues."""


class CallCancelled(FactoryError):
    """The caller no longer waits for the answer."""


class BlenderFailure(FactoryError):
    """Blender failed unexpectedly; the message contains the id of its log entry."""
