"""Files at a remote address.

    s3://bucket/folder      gs://bucket/folder      az://container/folder
    hf://datasets/owner/name@revision/folder        https://host/file.jsonl.gz

A name of a folder is the beginning of the names of its files. Stores list names in an order of their own,
page by page, and there are no links. A web server has files alone.
"""

from __future__ import annotations

import errno
import io
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cache
from typing import BinaryIO, cast

from factory.errors import ConfigurationError
from spark_udfs.ingest.place import FilePart, FileState, Kind, changed_while_read, refuse_other
from spark_udfs.ingest.remote.objects import ObjectChanged, ObjectState, RemoteObjects
from spark_udfs.ingest.remote.range_reader import RangeReader
from spark_udfs.ingest.remote.secrets_of_addresses import refuse_secrets

_WEB = ("http", "https")


@cache  # an entry that goes would let a run see two commits of its branch
def objects_at(root: str) -> RemoteObjects:
    """Return the objects at a root, such as `s3://bucket`."""
    scheme, _, rest = root.partition("://")
    if scheme in _WEB:
        from spark_udfs.ingest.remote.web import WebObjects  # each kind brings a library of its own

        return WebObjects(root)
    if scheme == "hf":
        from spark_udfs.ingest.remote.hub import HubObjects

        dataset, _, revision = rest.removeprefix("datasets/").partition("@")
        return HubObjects(dataset, revision or "main")
    from spark_udfs.ingest.remote.buckets import BucketObjects

    return BucketObjects(scheme, rest)


def resolve_branches_anew() -> None:
    """Ask again which commits the branches of datasets have, from here on: a run or a tick begins."""
    objects_at.cache_clear()


@dataclass(frozen=True)
class RemoteFiles:
    """A folder of remote files, or one of them, by its address without a slash at the end.

    The `query` of a web address belongs to it, but not to the name of its file. A dataset with a `commit` is
    read at it, even if its revision has moved.
    """

    address: bytes
    query: str = ""
    commit: str = field(default="", compare=False)

    @classmethod
    def parse(cls, address: str) -> RemoteFiles:
        """Return the place of an address as users write it.

        Raises ConfigurationError for an address that holds a secret, and for one of no bucket or dataset.
        """
        scheme, _, rest = address.partition("://")
        refuse_secrets(rest.lstrip("/"), is_web=scheme in _WEB)
        rest, _, query = rest.partition("?") if scheme in _WEB else (rest, "", "")
        parts = rest.strip("/").split("/")
        if scheme == "hf" and (parts[0] != "datasets" or len(parts) < 3):
            raise ConfigurationError(
                f"`{address}` names no dataset. Write `hf://datasets/OWNER/NAME`, with `@REVISION` or a "
                "folder behind it."
            )
        return cls(f"{scheme}://{'/'.join(parts)}".encode(), query)

    @property
    def name(self) -> str:
        """The last part of its address, of a dataset without its revision."""
        root, key = self._split()
        return (key or root.partition("@")[0]).rpartition("/")[2]

    @property
    def parent(self) -> RemoteFiles:
        """The folder above; of a bucket the bucket itself."""
        root, key = self._split()
        return replace(self, address=f"{root}/{key}".rpartition("/")[0].encode()) if key else self

    def below(self, name: bytes) -> RemoteFiles:
        """Return the place of a folder in it."""
        return replace(self, address=self.address + b"/" + name) if name else self

    def canonical(self) -> RemoteFiles:
        """Return the place itself."""
        return self

    def display(self, name: bytes = b"") -> str:
        """Return an address as text."""
        address = self.below(name).address.decode("utf-8", "surrogateescape")
        return f"{address}?{self.query}" if self.query else address

    def location(self, name: bytes) -> str:
        """Return the address of a file as tables store it."""
        return self.display(name)

    def kind(self, name: bytes = b"") -> Kind | None:
        """Return the kind of a name, None if nothing is there."""
        objects, key = self._objects(name)
        if key and objects.state(key) is not None:
            return "file"
        if self._is_web:
            return None
        is_folder = next(objects.below(f"{key}/" if key else ""), None) is not None
        return "folder" if is_folder else None

    def is_link(self, name: bytes) -> bool:  # noqa: ARG002
        """Return False."""
        return False

    def link_target(self) -> str | None:
        """Return None."""
        return None

    def children(self) -> list[bytes]:
        """Return the names directly in the folder, sorted."""
        objects, key = self._objects()
        return sorted(name.rstrip("/").encode() for name in objects.folder(f"{key}/" if key else ""))

    def walk(self, enters: Callable[[bytes], bool], *, deep: bool = True) -> Iterator[bytes]:
        """Yield the names of the files in the order of the store, as they are listed."""
        if not deep:
            objects, key = self._objects()
            names = objects.folder(f"{key}/" if key else "")
            yield from (name.encode() for name in names if not name.endswith("/"))
            return
        folder, is_entered = b"", True
        for name, _ in self._listed():
            if (above := name[: name.rfind(b"/") + 1]) != folder:
                folder, is_entered = above, all(map(enters, _folders(above)))
            if is_entered:
                yield name

    def state(self, name: bytes) -> FileState:
        """Return the state of a file."""
        return self._file_state(self._state(name))

    def states(self) -> Iterator[tuple[bytes, FileState | None]]:
        """Yield all names at and below the address with their states, in the order of the store."""
        objects, key = self._objects()
        if key and (state := objects.state(key)) is not None:
            yield b"", self._file_state(state)
            return
        for name, state in self._listed():
            yield name, self._file_state(state)

    @contextmanager
    def open(self, name: bytes, part: FilePart | None = None) -> Iterator[BinaryIO]:
        """Open a file to read; see Place."""
        objects, key = self._objects(name)
        state = self._state(name)
        refuse_other(part, self._file_state(state))
        reader = RangeReader(objects, key, state, self.display(name), part.end if part else state.n_bytes)
        try:
            yield cast(BinaryIO, io.BufferedReader(reader, 1 << 16))
        except ObjectChanged:
            raise changed_while_read() from None

    def head(self, name: bytes, n_bytes: int) -> bytes:
        """Return the first bytes of a file."""
        with self.open(name) as file:
            return file.read(n_bytes)

    def _state(self, name: bytes) -> ObjectState:
        objects, key = self._objects(name)
        state = objects.state(key) if key else None
        if state is None:
            if key and (obstacle := objects.obstacle(key)):
                raise OSError(errno.EINVAL, obstacle, self.display(name))
            raise FileNotFoundError(errno.ENOENT, "There is no such object", self.display(name))
        return state

    def _file_state(self, state: ObjectState) -> FileState:
        version = state.e_tag or str(state.modified_ns)
        return FileState(state.n_bytes, version, state.modified_ns, state.modified_ns, state.has_ranges)

    def _listed(self) -> Iterator[tuple[bytes, ObjectState]]:
        """Yield the names of the files below, without the empty objects that mark folders.

        Stores cut the slash behind the name of a mark, so an empty object is a mark if others are below it,
        or if there is none of that name.
        """
        objects, key = self._objects()
        prefix = f"{key}/" if key else ""

        def is_file(name: bytes) -> bool:  # marks of folders with a dot are left to the readers
            return b"." in name or objects.state(prefix + name.decode("utf-8", "surrogateescape")) is not None

        mark: tuple[bytes, ObjectState] | None = None
        for path, state in objects.below(prefix):
            name = path.removeprefix(prefix).encode("utf-8", "surrogateescape")
            if mark is not None and not name.startswith(mark[0] + b"/") and is_file(mark[0]):
                yield mark
            mark = None
            if not name:
                continue
            if state.n_bytes:
                yield name, state
            else:
                mark = name, state
        if mark is not None and is_file(mark[0]):
            yield mark

    def _objects(self, name: bytes = b"") -> tuple[RemoteObjects, str]:
        root, key = self.below(name)._split()
        if self.commit:
            root = f"{root.partition('@')[0]}@{self.commit}"
        return objects_at(root), f"{key}?{self.query}" if self.query else key

    def of_one_commit(self) -> RemoteFiles:
        """Return the files of a dataset at the commit that this run reads, other files as they are."""
        if not self.address.startswith(b"hf:"):
            return self
        from spark_udfs.ingest.remote.hub import HubObjects

        return replace(self, commit=cast(HubObjects, self._objects()[0]).commit)

    @property
    def lists_versions(self) -> bool:
        """Whether files have the versions of their listing when they are opened; the Hub lists others."""
        return self._is_web or self.address.startswith(b"s3:")

    @property
    def _is_web(self) -> bool:
        return self.address.startswith((b"http:", b"https:"))

    def _split(self) -> tuple[str, str]:
        """Return the root and the name of an object there, which is empty for the root itself."""
        scheme, _, rest = self.address.decode("utf-8", "surrogateescape").partition("://")
        parts = rest.split("/")
        n_parts = 3 if scheme == "hf" else 1
        return f"{scheme}://{'/'.join(parts[:n_parts])}", "/".join(parts[n_parts:])


def _folders(folder: bytes) -> Iterator[bytes]:
    """Yield a folder with a slash at its end, and those above it, the outermost first."""
    end = folder.find(b"/")
    while end >= 0:
        yield folder[: end + 1]
        end = folder.find(b"/", end + 1)
