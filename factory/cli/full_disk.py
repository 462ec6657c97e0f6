"""Errors of a full disk, which many libraries meet, each with words of its own."""

from __future__ import annotations

import errno
import shutil

from factory.errors import CheckFailed, ConfigurationError, MachineError
from factory.settings import settings

# Of the operating system, and of SQLite where it writes a page.
_WORDS = ("No space left on device", "disk is full")
_OF_DATA = (CheckFailed, ConfigurationError)  # their sentences quote what documents and files say
# SQLite says only this where it cannot extend a log, share memory or make a database, for any reason.
_WORDS_OF_ANY_REASON = ("disk I/O error", "unable to open database file")
_NO_ROOM_BYTES = 1 << 20


def full_disk(error: BaseException | str) -> MachineError | None:
    """Return the MachineError of an error, or of its text, that a full disk caused; None for any other."""
    if isinstance(error, _OF_DATA):
        return None
    text = str(error)
    is_full = any(words in text for words in _WORDS) or getattr(error, "errno", None) == errno.ENOSPC
    if not is_full and not (any(words in text for words in _WORDS_OF_ANY_REASON) and _has_no_room()):
        return None
    return MachineError(
        "The disk is full. Free space on it (factory clean drops what failed runs left below "
        "FACTORY_HOME), or use another disk."
    )


def _has_no_room() -> bool:
    """Whether the disk of FACTORY_HOME is as good as full."""
    home = settings().home
    folder = next(folder for folder in (home, *home.absolute().parents) if folder.exists())
    return shutil.disk_usage(folder).free < _NO_ROOM_BYTES
