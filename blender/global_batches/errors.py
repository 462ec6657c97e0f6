"""What can go wrong with durable batches: one class for each reaction of a caller."""

from __future__ import annotations

from factory.errors import ConfigurationError, DamagedFile, FactoryError, MachineError, NotFound


class NamespaceNotFound(NotFound):
    """Nobody has created a namespace at this address."""


class NamespaceDiffers(ConfigurationError):
    """The namespace was made with another mesh, layout or number of lanes, or by a newer version."""


class InvalidBatch(ConfigurationError):
    """A batch that a producer gave cannot be stored: slices, dtypes, offset or origin."""


class Fenced(FactoryError):
    """Another process has taken this lane over; what this process still holds is not committed."""


class LaneClosed(ConfigurationError):
    """The lane was finished: it takes no more batches."""


class WriterClosed(ConfigurationError):
    """This writer was closed or stopped; another one may open the lane."""


class UnevenLanes(ConfigurationError):
    """Lanes of assigned order end with different steps; what would never be read is not committed."""


class NamespaceEnded(ConfigurationError):
    """The namespace was ended: no lane takes more batches."""


class OtherHistory(ConfigurationError):
    """A state belongs to another namespace, or to other batches before its step."""


class BatchesGone(NotFound):
    """Batches that a run or a state asks for were reclaimed, because no open run held them."""


class RunTaken(FactoryError):
    """Another process has opened this run, or somebody has closed it; it holds no batches for this one."""


class CheckpointDropped(ConfigurationError):
    """The run does not hold the batches after this checkpoint: it was dropped, or never marked."""


class DamagedBatch(DamagedFile):
    """An object holds other bytes than its writer wrote; the message names object and slice."""


class DamagedLog(DamagedFile):
    """The log of a namespace has a gap or a record that cannot be read; the message names the object."""


class UnsafeStore(MachineError):
    """The store lets two processes create one name, or hides a name that was created."""
