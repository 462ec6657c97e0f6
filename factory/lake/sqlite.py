"""Why SQLite refuses a database: it is locked, inaccessible or damaged."""

from __future__ import annotations

import sqlite3
from pathlib import Path

from factory.errors import MachineError

_LOCKED = (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)
_WITHHELD = (
    *_LOCKED,
    *(sqlite3.SQLITE_PERM, sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN),
    *(sqlite3.SQLITE_IOERR, sqlite3.SQLITE_FULL, sqlite3.SQLITE_NOMEM),
)


def withheld(file: Path, error: BaseException | None) -> MachineError | None:
    """Return the error for a withheld database, None if SQLite reports damage."""
    code = getattr(error, "sqlite_errorcode", 0) & 0xFF  # the primary result code
    if code not in _WITHHELD:
        return None
    if code in _LOCKED:
        return MachineError(
            f"The database {file} stays locked by another process. "
            "Run the command again when that one has ended."
        )
    if code == sqlite3.SQLITE_FULL:
        return MachineError(
            f"The database {file} cannot be written ({error}). Free space on its disk: `factory clean` drops "
            "what failed runs left below FACTORY_HOME."
        )
    return MachineError(
        f"The database {file} cannot be used ({error}). Give yourself the right to read and write the file "
        "and its folder, or set FACTORY_HOME to another folder."
    )
