"""The place of an input: a folder of files on this machine, or the beginning of names in an object store.

Readers, listings, states and guesses ask a place for names and bytes and never the operating system, so that
they work on any place. Names are bytes, relative to the place, with `/` between folders; the empty name is
the place itself. `LocalFiles` is a folder or a file of this machine, `RemoteFiles` one elsewhere,
and `MatchingFiles` the files of either that match a pattern.

Some work needs a file system and stays on this machine: the Python installation is read where it is installed
(`factory/ingest/installation.py`), and the words and files of a declaration, such as a datasets file or a
chat template, are not inputs.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass
from io import UnsupportedOperation
from pathlib import Path
from typing import BinaryIO, Literal, NamedTuple, Protocol

from factory.lake.files.location import location
from spark_udfs.ingest.rows import BadRecord

Kind = Literal["file", "folder", "other"]
_NOTHING_THERE = (errno.ENOENT, errno.ENOTDIR, errno.EBADF, errno.ELOOP)


class FileState(NamedTuple):
    """The facts that show a change of a file without reading it.

    `version` is its times, or its ETag. `changed_ns` is the time of its last change, which no program sets.
    Files without parts are read from their begin to their end.
    """

    n_bytes: int
    version: str
    modified_ns: int
    changed_ns: int
    has_parts: bool = True


class FilePart(NamedTuple):
    """A range of bytes that one task reads, of a file that was listed with a state.

    `start` is the place of its first record or frame, where that is known: once the part before it has been
    read, or from an index of frames.
    """

    begin: int
    end: int
    state: FileState
    start: int | None = None

    @property
    def share(self) -> float:
        """Its share of the bytes of the file."""
        return (self.end - self.begin) / max(self.state.n_bytes, 1)


class Place(Protocol):
    """A folder of files, or a single file; small, and pickled for Spark's workers.

    Methods that read raise OSError with a `strerror` for files that cannot be read.
    """

    @property
    def name(self) -> str:
        """The last part of its address, by default the source of its documents."""

    @property
    def address(self) -> bytes:
        """Its identity; the address of a place below begins with it and `/`."""

    @property
    def parent(self) -> Place:
        """The place above."""

    def below(self, name: bytes) -> Place:
        """Return the place of a folder in it."""

    def canonical(self) -> Place:
        """Return the same place by its only address without links."""

    def display(self, name: bytes = b"") -> str:
        """Return an address as a person reads it."""

    def location(self, name: bytes) -> str:
        """Return the location of a file as tables store it."""

    def kind(self, name: bytes = b"") -> Kind | None:
        """Return the kind of a name, None if nothing is there; links are followed."""

    def is_link(self, name: bytes) -> bool:
        """Return whether a name is a link."""

    def link_target(self) -> str | None:
        """Return the target of the place if it is a link, as the link says it."""

    def children(self) -> list[bytes]:
        """Return the names directly in the place, sorted."""

    def walk(self, enters: Callable[[bytes], bool], *, deep: bool = True) -> Iterator[bytes]:
        """Yield the names of the files, in one order and as they are listed; links are not followed.

        Only folders that `enters`, by their name and a `/`, are listed; without `deep` none below. A linked
        folder, and one that cannot be listed, is a name with a `/` at its end.
        """

    def state(self, name: bytes) -> FileState:
        """Return the state of a file; a link is not followed."""

    def states(self) -> Iterator[tuple[bytes, FileState | None]]:
        """Yield all names at and below the place with their states, None if unreadable, in any order."""

    def open(self, name: bytes, part: FilePart | None = None) -> AbstractContextManager[BinaryIO]:
        """Open a file to read, all of it or mostly a part, as a stream that can seek.

        Raises BadRecord `link`, `not_a_file`, and at the end `changed_while_read` for a file that changed; at
        once if it has changed since the state of the part.
        """

    def head(self, name: bytes, n_bytes: int) -> bytes:
        """Return the first bytes of a file; links are followed."""


@dataclass(frozen=True)
class LocalFiles:
    """A folder or a file of this machine, by its path in the operating system's bytes."""

    address: bytes

    @classmethod
    def at(cls, path: str | Path) -> LocalFiles:
        """Return the place of a path, which may be relative."""
        return cls(bytes(Path(path)))

    @property
    def name(self) -> str:
        """The last part of its path."""
        return self._path().name

    @property
    def parent(self) -> LocalFiles:
        """The folder above."""
        return LocalFiles(bytes(self._path().parent))

    def below(self, name: bytes) -> LocalFiles:
        """Return the place of a folder in it."""
        return LocalFiles(self._joined(name))

    def canonical(self) -> LocalFiles:
        """Return the same place by its absolute path without links."""
        return LocalFiles(bytes(self._path().resolve()))

    def display(self, name: bytes = b"") -> str:
        """Return a path as text."""
        return str(self._path(name))

    def location(self, name: bytes) -> str:
        """Return the location of a file as tables store it."""
        return location(self._joined(name))

    def kind(self, name: bytes = b"") -> Kind | None:
        """Return the kind of a path, None if nothing is there; links are followed."""
        try:
            mode = self._path(name).stat().st_mode
        except OSError as error:
            if error.errno in _NOTHING_THERE:
                return None
            raise
        except ValueError:  # a name that no file can have
            return None
        return "folder" if stat.S_ISDIR(mode) else "file" if stat.S_ISREG(mode) else "other"

    def is_link(self, name: bytes) -> bool:
        """Return whether a path is a symbolic link."""
        return self._path(name).is_symlink()

    def link_target(self) -> str | None:
        """Return the target of the path if it is a symbolic link, as the link says it."""
        return str(self._path().readlink()) if self.is_link(b"") else None

    def children(self) -> list[bytes]:
        """Return the names directly in the folder, sorted."""
        return [os.fsencode(name) for name in sorted(path.name for path in self._path().iterdir())]

    def walk(self, enters: Callable[[bytes], bool], *, deep: bool = True) -> Iterator[bytes]:
        """Yield the names of the files of a folder before the names of its subfolders, sorted.

        Links to folders precede the files of their folder; folders that cannot be listed come last.
        """
        refused: list[bytes] = []
        waiting = [b""]
        while waiting:
            prefix = waiting.pop()
            folders: dict[bytes, bool] = {}  # and whether it is a link
            files: list[bytes] = []
            try:
                with os.scandir(self._joined(prefix)) as entries:
                    for entry in entries:
                        if _is_folder(entry):
                            folders[prefix + entry.name] = entry.is_symlink()
                        else:
                            files.append(prefix + entry.name)
            except OSError:
                refused.append(prefix or b"./")
                continue
            subfolders = [folder for folder in sorted(folders) if enters(folder + b"/")]
            yield from (folder + b"/" for folder in subfolders if folders[folder])
            yield from sorted(files)
            if deep:
                waiting += [folder + b"/" for folder in reversed(subfolders) if not folders[folder]]
        yield from refused

    def state(self, name: bytes) -> FileState:
        """Return the state of a file; a link is not followed."""
        return _state_of(os.lstat(self._joined(name)))

    def states(self) -> Iterator[tuple[bytes, FileState | None]]:
        """Yield all names at and below the path with their states, in any order; links are not followed."""
        try:
            status = os.lstat(self.address)
        except OSError:  # vanished since the listing, or not readable: the run will report it
            yield b"", None
            return
        if not stat.S_ISDIR(status.st_mode):
            yield b"", _state_of(status)
            return
        waiting = [b""]
        while waiting:
            prefix = waiting.pop()
            try:
                entries = list(os.scandir(self._joined(prefix)))
            except OSError:
                yield prefix.rstrip(b"/"), None
                continue
            for entry in entries:
                try:
                    if entry.is_dir(follow_symlinks=False):
                        waiting.append(prefix + entry.name + b"/")
                        continue
                    state = _state_of(entry.stat(follow_symlinks=False))
                except OSError:
                    yield prefix + entry.name, None
                else:
                    yield prefix + entry.name, state

    @contextmanager
    def open(self, name: bytes, part: FilePart | None = None) -> Iterator[BinaryIO]:
        """Open a file to read; see Place."""
        path = self._joined(name)
        _refuse_odd(path, os.lstat(path).st_mode)
        # It may have become a named pipe meanwhile, which without O_NONBLOCK waits for a writer.
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        try:
            before = os.fstat(descriptor)
            _refuse_odd(path, before.st_mode)
            if part is not None and _content_facts(part.state) != (before.st_size, before.st_mtime_ns):
                raise changed_while_read()
            yield os.fdopen(descriptor, "rb", closefd=False)  # pyarrow closes its argument
            after = os.fstat(descriptor)
        finally:
            os.close(descriptor)
        if (before.st_size, before.st_mtime_ns) != (after.st_size, after.st_mtime_ns):
            raise changed_while_read()

    def head(self, name: bytes, n_bytes: int) -> bytes:
        """Return the first bytes of a file; links are followed."""
        with self._path(name).open("rb") as file:
            return file.read(n_bytes)

    def _joined(self, name: bytes) -> bytes:
        if not name:
            return self.address
        return self.address + name if self.address.endswith(b"/") else self.address + b"/" + name

    def _path(self, name: bytes = b"") -> Path:
        return Path(os.fsdecode(self._joined(name)))


def changed_while_read() -> BadRecord:
    """Return the BadRecord of a file that changed."""
    return BadRecord("changed_while_read", "The file changed while it was read.")


def refuse_other(part: FilePart | None, state: FileState) -> None:
    """Raise BadRecord `changed_while_read` unless the file of a part still has its size and version."""
    if part is not None and _quoteless(part.state) != _quoteless(state):
        raise changed_while_read()


def _quoteless(state: FileState) -> tuple[int, str]:
    return state.n_bytes, state.version.strip('"')  # not every listing has the quotes of ETags


def size_of(file: BinaryIO) -> int:
    """Return the size of an open file; it stays at its position."""
    with suppress(UnsupportedOperation):
        return os.fstat(file.fileno()).st_size  # files of the kernel cannot seek to their end
    position = file.tell()
    size = file.seek(0, os.SEEK_END)
    file.seek(position)
    return size


def _content_facts(state: FileState) -> tuple[int, int]:
    # A new name or mode of a file moves its other time, and leaves its bytes as they are.
    return state.n_bytes, state.modified_ns


def _is_folder(entry: os.DirEntry[bytes]) -> bool:
    try:
        return entry.is_dir()
    except OSError:
        return False


def _state_of(status: os.stat_result) -> FileState:
    # A program may set the time of the content, not that of the status, which every change moves. It may
    # set a time in the future, and a file that replaces it the same one, so that counts beside the other.
    version = str(status.st_ctime_ns)
    if status.st_mtime_ns > status.st_ctime_ns:
        version = f"{status.st_mtime_ns} {version}"
    return FileState(status.st_size, version, status.st_mtime_ns, status.st_ctime_ns)


def _refuse_odd(path: bytes, mode: int) -> None:
    if stat.S_ISLNK(mode):
        raise BadRecord("link", "The name is a symbolic link, and links are not followed.")
    if stat.S_ISDIR(mode):
        with os.scandir(path):  # listing named this folder because it could not read it: say why
            raise BadRecord("not_a_file", "The name is a folder, not a file.")
    if not stat.S_ISREG(mode):  # opening a device may have effects, so check first
        raise BadRecord("not_a_file", "The name is a pipe, a socket or a device, not a file.")
