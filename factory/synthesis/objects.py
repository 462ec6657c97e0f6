"""The objects of a queue in the warehouse, a folder or a bucket, and the few operations that it needs.

Only `create` decides anything: of all who create one name, one wins. An error of a create does not tell who
has won, because the store's client repeats a request after a lost answer and then reports the name as taken.
So `created` reads the name back.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator, Mapping
from enum import Enum
from typing import Protocol

import obstore
from obstore.exceptions import AlreadyExistsError, BaseError

from factory.errors import ConfigurationError, FactoryError, MachineError, first_line
from factory.lake.servers import unusable
from factory.lake.store import object_store
from factory.settings import Settings

_DELETED_AT_ONCE = 1000  # the most names of one request to S3
_TRIES = 5  # of a create that left nothing under its name


class PutAnswer(Enum):
    """The store's answer to a create. Only `STORED` is believed; after the others the name is read back."""

    STORED = "stored"
    TAKEN = "taken"
    UNCLEAR = "unclear"


class QueueObjects(Protocol):
    """The objects below one folder of a store."""

    def get(self, name: str) -> bytes | None:
        """Return the bytes of an object, None if nothing has the name."""

    def create(self, name: str, body: bytes) -> PutAnswer:
        """Store an object unless the name is taken."""

    def put(self, name: str, body: bytes) -> None:
        """Store an object under a name that no other process writes at the same time."""

    def delete(self, names: Iterable[str]) -> None:
        """Remove the objects that exist."""

    def versions(self, prefix: str = "") -> Mapping[str, str]:
        """Return the names below a folder, each with a word that changes whenever its object is replaced."""


class WarehouseObjects:
    """The objects below a folder of the warehouse. Raises MachineError where the store does not serve."""

    def __init__(self, settings: Settings, folder: str) -> None:
        self._settings, self._folder = settings, folder
        with self._naming_store():
            self._store = object_store(settings, folder)

    def get(self, name: str) -> bytes | None:
        with self._naming_store():
            try:
                return obstore.get(self._store, name).bytes().to_bytes()
            except FileNotFoundError:
                return None

    def create(self, name: str, body: bytes) -> PutAnswer:
        try:
            obstore.put(self._store, name, body, mode="create", use_multipart=False)
        except AlreadyExistsError:
            return PutAnswer.TAKEN
        except BaseError as error:
            refusal = self._refusal(error)
            if not self._settings.on_s3 or isinstance(refusal, ConfigurationError):
                raise refusal from error
            return PutAnswer.UNCLEAR
        return PutAnswer.STORED

    def put(self, name: str, body: bytes) -> None:
        with self._naming_store():
            obstore.put(self._store, name, body, use_multipart=False)

    def delete(self, names: Iterable[str]) -> None:
        remaining = list(names)
        while remaining:
            with self._naming_store(), contextlib.suppress(FileNotFoundError):
                obstore.delete(self._store, remaining[:_DELETED_AT_ONCE])
            del remaining[:_DELETED_AT_ONCE]

    def versions(self, prefix: str = "") -> Mapping[str, str]:
        with self._naming_store():
            return {
                entry["path"]: f"{entry['last_modified']} {entry['e_tag']} {entry['size']}"
                for entries in obstore.list(self._store, prefix=prefix or None)
                for entry in entries
            }

    @contextlib.contextmanager
    def _naming_store(self) -> Iterator[None]:
        try:
            yield
        except BaseError as error:
            raise self._refusal(error) from error

    def _refusal(self, error: BaseError) -> FactoryError:
        if self._settings.on_s3:
            return unusable(error, self._settings)
        return MachineError(
            f"The queue in {self._settings.warehouse_uri}/{self._folder} cannot be used "
            f"({first_line(error)}). Make room on its disk, or grant yourself access."
        )


def create_once(objects: QueueObjects, name: str, body: bytes) -> bool:
    """Store an object unless the name is taken; return whether the name has our bytes.

    Raises MachineError if nothing is under the name after several tries.
    """
    for _ in range(_TRIES):
        if objects.create(name, body) is PutAnswer.STORED:
            return True
        body_there = objects.get(name)
        if body_there is not None:
            return body_there == body
    raise MachineError(
        f"The store takes no new object `{name}`, and does not say why. See that it has room and that its "
        "keys may write."
    )
