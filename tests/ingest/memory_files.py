"""A place in memory, as an object store is one: files by name, folders that are prefixes, and no links."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import BinaryIO

from factory.lake.identity import content_hash
from spark_udfs.ingest.place import FilePart, FileState, Kind, refuse_other


@dataclass(frozen=True)
class MemoryFiles:
    """The files at an address and below it, among `files` by whole address."""

    address: bytes
    files: Mapping[bytes, bytes] = field(compare=False, repr=False)

    @classmethod
    def copy_of(cls, folder: Path) -> MemoryFiles:
        """Return a place of the same name with the files of a folder."""
        address = b"memory:/" + bytes(Path(folder.name))
        paths = [path for path in folder.rglob("*") if path.is_file()]
        return cls(
            address, {address + b"/" + bytes(path.relative_to(folder)): path.read_bytes() for path in paths}
        )

    @property
    def name(self) -> str:
        return self.address.rpartition(b"/")[2].decode()

    @property
    def parent(self) -> MemoryFiles:
        return replace(self, address=self.address.rpartition(b"/")[0])

    def below(self, name: bytes) -> MemoryFiles:
        return replace(self, address=self._joined(name))

    def canonical(self) -> MemoryFiles:
        return self

    def display(self, name: bytes = b"") -> str:
        return self._joined(name).decode()

    def location(self, name: bytes) -> str:
        return self.display(name)

    def kind(self, name: bytes = b"") -> Kind | None:
        address = self._joined(name)
        if address in self.files:
            return "file"
        return "folder" if any(file.startswith(address + b"/") for file in self.files) else None

    def is_link(self, name: bytes) -> bool:  # noqa: ARG002
        return False

    def link_target(self) -> str | None:
        return None

    def children(self) -> list[bytes]:
        return sorted({name.partition(b"/")[0] for name in self._names()})

    def walk(self, enters: Callable[[bytes], bool], *, deep: bool = True) -> Iterator[bytes]:
        for name in sorted(self._names(), key=_files_before_folders):
            parts = name.split(b"/")
            folders = [b"/".join(parts[:n]) + b"/" for n in range(1, len(parts))]
            if all(map(enters, folders)) and (deep or not folders):
                yield name

    def state(self, name: bytes) -> FileState:
        content = self.files[self._joined(name)]
        return FileState(len(content), content_hash(content.decode("latin-1")), 0, 0)

    def states(self) -> Iterator[tuple[bytes, FileState | None]]:
        for name in [b""] if self.address in self.files else self._names():
            yield name, self.state(name)

    @contextmanager
    def open(self, name: bytes, part: FilePart | None = None) -> Iterator[BinaryIO]:
        if part is not None:
            refuse_other(part, self.state(name))
        yield io.BytesIO(self._content(name))

    def head(self, name: bytes, n_bytes: int) -> bytes:
        return self._content(name)[:n_bytes]

    def _content(self, name: bytes) -> bytes:
        address = self._joined(name)
        if address not in self.files:
            raise FileNotFoundError(2, "No such file", address)
        return self.files[address]

    def _joined(self, name: bytes) -> bytes:
        return self.address + b"/" + name if name else self.address

    def _names(self) -> list[bytes]:
        prefix = self.address + b"/"
        return [address.removeprefix(prefix) for address in self.files if address.startswith(prefix)]


def _files_before_folders(name: bytes) -> list[tuple[bool, bytes]]:
    """The order of a local folder: its files, then those of each subfolder."""
    *folders, file = name.split(b"/")
    return [*((True, folder) for folder in folders), (False, file)]
