"""What can go wrong with a blend, one class for each thing a caller does differently.

`blender.protocol.status` maps each class to a gRPC status and back, so that a caller of the client catches
the same classes as a caller of the core.
"""

from __future__ import annotations

from factory.errors import ConfigurationError, FactoryError, MachineError, NotFound, TableNotFound


class BlendNotFound(NotFound):
    """No blend has this id."""


class InvalidBlend(ConfigurationError):
    """The definition of a blend is wrong: weights, columns, references, sources that do not fit together."""


class BrokenBlend(FactoryError):
    """What is on record of a blend is no blend: somebody else wrote it, or a disk did."""


class InvalidRequest(ConfigurationError):
    """An offset, a number of steps or a rank is outside what the blend allows."""


class Unauthenticated(ConfigurationError):
    """The server asks for a token, and the call brought none that it knows."""


class EndOfData(FactoryError):
    """The blend ends before the step asked for; the message names the source that is used up."""

    exit_code = 9


class SourceGone(TableNotFound):
    """The data behind a blend is no longer there, or no longer what was pinned."""


class CorruptPage(SourceGone):
    """A file holds other bytes than its writer wrote; the message names file, column and page."""


class StoreUnavailable(MachineError):
    """The store that holds the data behind a blend does not answer, or refuses; the message names it."""


class UnsupportedPageLayout(ConfigurationError):
    """A Parquet file is whole but cannot be read page by page; the message says why."""


class BlenderUnavailable(MachineError):
    """No Blender answers at the address, or it did not answer in time."""


class Busy(BlenderUnavailable):
    """The Blender answers as many calls as it takes at once."""


class Stalled(BlenderUnavailable):
    """The rows did not come in the time the caller gave; the message names the source waited for."""


class ServerStopping(BlenderUnavailable):
    """The Blender ends before the call does; another, or itself once it is back, goes on from there."""


class CallCancelled(FactoryError):
    """Whoever asked no longer waits for the answer."""


class BlenderFailure(FactoryError):
    """Blender failed in a way nobody foresaw; the message carries the id of its log entry."""
