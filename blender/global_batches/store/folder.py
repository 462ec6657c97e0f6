"""The objects of a namespace as files of a folder, durable before their names can be seen.

    <folder>/log/00000000000000000042       an object
    <folder>/.drafts/<random>               an object that is being written; of a killed writer, until cleared

A writer syncs a draft, gives it its name in one step (a link for a create, a rename for a put) and syncs the
folder of the name. So a name always has whole bytes that survive a power failure. Only the name itself may be
lost in one, if its writer is killed before the second sync.

A folder is for the processes of one host.
"""

from __future__ import annotations

import errno
import fcntl
import os
import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from io import BufferedWriter
from pathlib import Path

from blender.global_batches.log.operations import Creation
from blender.global_batches.store.objects import NoAnswer
from factory.errors import ConfigurationError, FactoryError, MachineError

_DRAFTS = ".drafts"
_FULL = {errno.ENOSPC, errno.EDQUOT}
_DENIED = {errno.EACCES, errno.EPERM, errno.EROFS}
_UNFIT = {errno.ENOTDIR, errno.EISDIR, errno.ENAMETOOLONG, errno.EINVAL, errno.ENOTSUP, errno.ENOLCK}
# A missing folder or draft was removed under its writer, who makes a new one on the next try.
_PASSING = {errno.ENOENT, errno.EAGAIN, errno.EBUSY, errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.ESTALE}


class Folder:
    """The objects of a folder; `root` is absolute and is made by the first write."""

    def __init__(self, root: Path) -> None:
        self.place = f"The folder {root}"
        self._root = root
        self._durable: set[Path] = set()  # folders whose own names were synced by this process

    def get(self, name: str) -> bytes | None:
        """The bytes of an object; None if nothing has the name."""
        return self.get_all([name])[0]

    def get_all(self, names: Sequence[str]) -> list[bytes | None]:
        """The bytes of each object, or None."""
        paths = [self._root / name for name in names]
        with self._sentences():
            bodies = [_content(path) for path in paths]
            # A writer may have been killed before it synced a name, and the caller will build on the name.
            for folder in {path.parent for path, body in zip(paths, bodies, strict=True) if body is not None}:
                _sync_folder(folder)
        return bodies

    def read(self, name: str, offset: int, length: int) -> memoryview | None:
        """At most `length` bytes from `offset` on; None if nothing has the name.

        Unlike `get`, this does not sync the name: only names that a durable record holds are read in parts.
        """
        with self._sentences():
            try:
                with (self._root / name).open("rb") as file:
                    file.seek(offset)
                    return memoryview(file.read(length))
            except FileNotFoundError:
                return None

    def create(self, name: str, body: bytes) -> Creation:
        """Store an object unless the name is taken."""
        path = self._root / name
        with self._sentences():
            if os.path.lexists(path):  # spares most losers the writing and syncing
                return Creation.TAKEN
            with self._draft(body) as draft:
                self._make_folder(path.parent)
                try:
                    path.hardlink_to(draft)
                except FileExistsError:
                    return Creation.TAKEN
                _sync_folder(path.parent)
        return Creation.STORED

    def put(self, name: str, body: bytes) -> None:
        """Store an object, or replace it."""
        path = self._root / name
        with self._sentences(), self._draft(body) as draft:
            self._make_folder(path.parent)
            draft.replace(path)
            _sync_folder(path.parent)

    def delete(self, names: Sequence[str]) -> None:
        """Remove the objects that exist. Not synced: a delete may take effect late."""
        with self._sentences():
            for name in names:
                (self._root / name).unlink(missing_ok=True)

    def list(self, prefix: str) -> list[str]:
        """The names that begin with `prefix`; drafts and other hidden files are not among them."""
        names = []
        with self._sentences():
            for folder, folders, files in os.walk(self._root / prefix.rpartition("/")[0], onerror=_refuse):
                folders[:] = [name for name in folders if not name.startswith(".")]
                inside = Path(folder).relative_to(self._root)
                names += [(inside / name).as_posix() for name in files if not name.startswith(".")]
        return [name for name in names if name.startswith(prefix)]

    @contextmanager
    def _draft(self, body: bytes) -> Iterator[Path]:
        """The path of a file that holds `body` durably, removed afterwards unless it was renamed.

        A lock, which ends with the process, tells the drafts of living writers from stale ones.
        """
        folder = self._root / _DRAFTS
        if folder not in self._durable:
            self._make_folder(folder)
            _clear(folder)
        with _locked_file(folder) as file:
            path = Path(file.name)
            try:
                file.write(body)
                file.flush()
                os.fsync(file.fileno())
                yield path
            finally:
                path.unlink(missing_ok=True)

    def _make_folder(self, folder: Path) -> None:
        """Make a folder, and make its name and all names above it durable.

        Existing folders are included: their maker may have been killed before the sync.
        """
        if folder in self._durable:
            return
        folder.mkdir(parents=True, exist_ok=True)
        synced, child = [], folder
        while child not in self._durable and not child.is_mount():
            synced.append(child)
            child = child.parent
            with suppress(PermissionError):  # of a folder that no process of ours can have made
                _sync_folder(child)
        self._durable.update(synced)

    @contextmanager
    def _sentences(self) -> Iterator[None]:
        """Translate errors of the file system."""
        try:
            yield
        except OSError as error:
            if error.errno == errno.ENOENT:
                self._durable.clear()
            raise self._problem(error) from error

    def _problem(self, error: OSError) -> FactoryError | NoAnswer:
        cause = f"{error.strerror}: {error.filename}" if error.filename else str(error.strerror)
        if error.errno in _PASSING:
            return NoAnswer(cause)
        if error.errno in _FULL:
            return MachineError(f"The disk of {self._root} is full. Free some room, then start again.")
        if error.errno in _DENIED:
            return MachineError(
                f"{self.place} does not serve ({cause}). Give this user the right to read and write it."
            )
        if error.errno in _UNFIT:
            return ConfigurationError(
                f"{self.place} does not serve ({cause}). Give the path of a folder on a local disk."
            )
        return MachineError(f"{self.place} does not serve ({cause}). Check its disk, then start again.")


def _content(path: Path) -> bytes | None:
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return None


def _sync_folder(folder: Path) -> None:
    """Make the names in a folder durable, also names that other processes made."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _locked_file(folder: Path) -> BufferedWriter:
    """A new file that `_clear` leaves alone."""
    while True:
        file = (folder / uuid.uuid4().hex).open("xb")
        fcntl.flock(file, fcntl.LOCK_EX)
        if os.fstat(file.fileno()).st_nlink:  # else cleared before it was locked
            return file
        file.close()


def _clear(folder: Path) -> None:
    """Delete the drafts of killed writers."""
    for draft in folder.iterdir():
        with suppress(FileNotFoundError, BlockingIOError, PermissionError), draft.open("rb") as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            draft.unlink()


def _refuse(error: OSError) -> None:
    if not isinstance(error, FileNotFoundError):
        raise error
