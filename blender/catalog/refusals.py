"""Why a folder of the warehouse cannot be written or read, as one sentence that names it."""

from __future__ import annotations

import errno
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager

from obstore.exceptions import AlreadyExistsError, BaseError

from blender.errors import StoreUnavailable
from factory.errors import ConfigurationError, MachineError, first_line
from factory.lake.files.location import local_path
from factory.lake.servers import unusable
from factory.settings import Settings

_FULL = {errno.ENOSPC, errno.EDQUOT}
_NUMBER = re.compile(r"\(os error (\d+)\)")  # how obstore's messages end, whose errors have no `errno`
_FREE = "Free space on its disk: `factory clean` drops what failed runs left below FACTORY_HOME."
_GRANT = "Grant yourself access to it, or set FACTORY_HOME to a folder that you can write."


@contextmanager
def naming_folder(settings: Settings, folder: str, action: str = "written") -> Iterator[None]:
    """Name `folder`, a location in the warehouse, where it cannot be `action` ("written" or "read").

    Raises MachineError for a local folder. For a folder in a store it raises StoreUnavailable, or
    ConfigurationError if the store refuses the keys. A missing file and an object that exists already stay
    the errors they are.
    """
    try:
        yield
    except (AlreadyExistsError, FileNotFoundError, FileExistsError):
        raise
    except (BaseError, OSError) as error:
        path = local_path(folder)
        if path is not None and (reason := _reason(error)):
            raise MachineError(f"The folder {path} cannot be {action} ({reason[0]}). {reason[1]}") from error
        if path is not None or not isinstance(error, BaseError):
            raise  # a catalog server, whose errors are of the system too
        sentence = unusable(error, settings)
        if isinstance(sentence, ConfigurationError):
            raise sentence from error
        raise StoreUnavailable(str(sentence)) from error


def _reason(error: BaseError | OSError) -> tuple[str, str] | None:
    """The system's reason for a refusal and its remedy; None if the error does not come from a local file."""
    number = _number(error)
    if number is None:
        return (first_line(error), _GRANT) if isinstance(error, BaseError) else None
    return os.strerror(number), _FREE if number in _FULL else _GRANT


def _number(error: BaseError | OSError) -> int | None:
    if isinstance(error, OSError) and error.errno is not None:
        return error.errno
    if isinstance(error, PermissionError):  # PyIceberg raises it with a sentence of its own
        return errno.EACCES
    match = _NUMBER.search(str(error))
    return int(match[1]) if match else None
