"""The store of a namespace: it answers the operations that routines ask for, and waits out what passes.

    store = open_store("s3://bucket/run7")          # or a folder: "batches/run7", "~/run7", "file:///data/run7"
    verdict = store.run(create("log/1", body))
    piece = store.read("batches/a/1/0-5f0c", 4096, 512)

Gets, puts, deletes and lists are repeated until the store answers. A create is tried once: an unclear one is
answered as unclear, and the routine reads the name back.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from blender.call_context import current_context
from blender.global_batches.log.operations import (
    Create,
    Creation,
    Delete,
    Get,
    GetAll,
    List,
    Operation,
    Put,
    Routine,
)
from blender.global_batches.store.bucket import Bucket
from blender.global_batches.store.cloud import cloud_of
from blender.global_batches.store.folder import Folder
from blender.global_batches.store.objects import NoAnswer, Objects
from blender.global_batches.store.outage import Outage, StorePatience
from factory.errors import ConfigurationError
from factory.settings import Settings
from factory.settings import settings as settings_of_process

Result = TypeVar("Result")

PATIENCE_S = 300.0
"""Seconds that a process waits for a store that does not answer, unless it is told otherwise."""

_ANSWER_S = 30.0  # the longest wait for one answer of a bucket
_LOCAL = re.compile(r"file:/(//)?[^/]")
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:/")


class NamespaceStore:
    """The objects of one namespace: a folder or a prefix of a bucket; safe for many threads."""

    def __init__(self, uri: str, objects: Objects, patience_s: float) -> None:
        self.uri = uri
        self._objects = objects
        self._patience = StorePatience(objects.place, patience_s)
        self._unclear_creates = Outage(self._patience, "has confirmed no create")

    @property
    def pauses(self) -> int:
        """How often a request of any thread had no answer, and was waited for."""
        return self._patience.pauses

    def run(self, routine: Routine[Result]) -> Result:
        """Answer the operations of a routine until it returns.

        Raises StoreUnavailable after `patience_s` of waiting for one answer, and another FactoryError at once
        for a refusal that waiting cannot mend: wrong keys, a missing bucket, a full disk.
        """
        answer: Any = None
        with closing(routine):
            while True:
                try:
                    operation = routine.send(answer)
                except StopIteration as end:
                    result: Result = end.value
                    return result
                answer = self._answer(operation)

    def read(self, name: str, offset: int, length: int) -> memoryview | None:
        """At most `length` bytes of an object from `offset` on, fewer where it ends; None if it is missing.

        Raises as `run` does. The bytes of a bucket are not copied.
        """
        return self._repeated(partial(self._objects.read, name, offset, length))

    def _answer(self, operation: Operation) -> bytes | list[bytes | None] | list[str] | Creation | None:
        match operation:
            case Get(name):
                return self._repeated(partial(self._objects.get, name))
            case GetAll(names):
                return self._repeated(partial(self._objects.get_all, names))
            case Create(name, body):
                return self._create(name, body)
            case Put(name, body):
                return self._repeated(partial(self._objects.put, name, body))
            case Delete(names):
                return self._repeated(partial(self._objects.delete, names))
            case List(prefix):
                return self._repeated(partial(self._objects.list, prefix))

    def _repeated(self, request: Callable[[], Result]) -> Result:
        outage = Outage(self._patience, "has not answered")
        while True:
            current_context().check_deadline(self._out_of_time)
            started = time.monotonic()
            try:
                answer = request()
            except NoAnswer as error:
                outage.wait(error, started)
            else:
                outage.end()
                return answer

    def _create(self, name: str, body: bytes) -> Creation:
        """One try; the pause after an unclear one keeps a continuing routine from flooding the store."""
        current_context().check_deadline(self._out_of_time)
        started = time.monotonic()
        try:
            creation = self._objects.create(name, body)
        except NoAnswer as error:
            self._unclear_creates.wait(error, started)
            return Creation.UNCLEAR
        self._unclear_creates.end()
        return creation

    def _out_of_time(self) -> str:
        return (
            f"The time of the call was over before the next request to {self.uri}. Give the call more time, "
            "or ask for less."
        )


def open_store(
    uri: str | os.PathLike[str], settings: Settings | None = None, *, patience_s: float = PATIENCE_S
) -> NamespaceStore:
    """The store at an address: a path, `file:///FOLDER`, or a prefix of a bucket in one of the clouds.

    `s3://BUCKET/PREFIX` takes endpoint and keys from `settings`, by default this process's;
    `gs://BUCKET/PREFIX` and `az://CONTAINER/PREFIX` take theirs from the environment. Nothing is read or made
    yet. Raises ConfigurationError for any other address.
    """
    uri = os.fspath(uri)
    scheme, separator, rest = uri.partition("://")
    cloud = cloud_of(scheme, settings or settings_of_process()) if separator else None
    if cloud is not None:
        bucket, _, prefix = rest.partition("/")
        if not bucket:
            raise ConfigurationError(f"`{uri}` names no bucket. Write {cloud.address_form}.")
        address = f"{scheme}://{bucket}/{prefix}".rstrip("/")
        objects: Objects = Bucket(
            cloud, address, bucket, prefix.strip("/"), answer_s=min(_ANSWER_S, patience_s)
        )
        return NamespaceStore(address, objects, patience_s)
    folder = _folder(uri)
    return NamespaceStore(f"file://{folder}", Folder(folder), patience_s)


def _folder(uri: str) -> Path:
    """The absolute path of a folder; the path of a `file:` address is taken literally, without escapes."""
    if _LOCAL.match(uri):
        return Path("/", uri.removeprefix("file:").lstrip("/"))
    if not uri or _SCHEME.match(uri):
        raise ConfigurationError(
            f"`{uri}` is not the address of a namespace. Give a folder, file:///FOLDER, s3://BUCKET/PREFIX, "
            "gs://BUCKET/PREFIX or az://CONTAINER/PREFIX."
        )
    return Path(uri).expanduser().absolute()
