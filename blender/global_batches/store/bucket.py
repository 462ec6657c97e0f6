"""The objects of a namespace below a prefix of a bucket, in any of the clouds.

Every request is sent once. obstore's own retries would turn the lost answer of a create into "already exists"
although our bytes are stored, and could neither be interrupted nor be logged.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import obstore
from obstore.exceptions import AlreadyExistsError, BaseError

from blender.global_batches.log.operations import Creation
from blender.global_batches.store.cloud import Cloud
from blender.global_batches.store.objects import NoAnswer
from factory.errors import ConfigurationError, FactoryError, MachineError
from factory.lake.servers import cause, s3_code

_PART_BYTES = 32 << 20  # larger objects are put in parts of this size, each within the time of one answer
_PARTS_AT_ONCE = 4
_GETS_AT_ONCE = 16
_USER: dict[str, int] = {}  # the process whose first request started obstore's threads
_TOKEN_REQUEST = "Error performing token request"  # to the machine's own cloud, if nobody names credentials
_DELETION_FAILED = re.compile(r"\(code: (\w+)\)")  # of one of many objects, in an answer that is a success
_DELETION_DENIED = {"AccessDenied", "AuthorizationPermissionMismatch"}
_CONFLICT = "status code: 409"
_BLOB_EXISTS = "BlobAlreadyExists"  # with the same status, by which Azure means that the name is taken


class Bucket:
    """The objects below `prefix` of a bucket at `address`; `answer_s` is the longest wait for one answer."""

    def __init__(self, cloud: Cloud, address: str, bucket: str, prefix: str, *, answer_s: float) -> None:
        self._address = address
        self.place = f"The store of {address} at {cloud.place}"
        self._cloud = cloud
        # A thread starts with the first request that needs it.
        self._pool = ThreadPoolExecutor(_GETS_AT_ONCE, thread_name_prefix="batches-get")
        try:
            self._store = cloud.client(bucket, prefix, answer_s)
        except ValueError as error:
            raise ConfigurationError(
                f"{address} cannot be the address of objects ({cause(error)}). "
                f"Write {cloud.address_form}, without empty or relative parts."
            ) from error
        except BaseError as error:
            raise ConfigurationError(
                f"{address} cannot be opened ({cause(error)}). Write {cloud.address_form}, and set "
                f"{cloud.credentials}."
            ) from error

    def get(self, name: str) -> bytes | None:
        """The bytes of an object; None if the store says that nothing has the name."""
        with self._sentences():
            try:
                return obstore.get(self._store, name).bytes().to_bytes()
            except FileNotFoundError as error:
                self._require_missing(error)
                return None

    def get_all(self, names: Sequence[str]) -> list[bytes | None]:
        """The answers of `get` for each name, 16 requests at once."""
        _refuse_after_fork()  # the threads of the pool do not survive a fork either
        if len(names) == 1:
            return [self.get(names[0])]
        try:
            answers = self._pool.map(self.get, names)
        except RuntimeError:  # the interpreter is shutting down, and starts no more requests in threads
            return [self.get(name) for name in names]
        return list(answers)

    def read(self, name: str, offset: int, length: int) -> memoryview | None:
        """At most `length` bytes from `offset` on, without a copy; None as for `get`."""
        if not length:
            return memoryview(b"")  # a range of S3 has at least one byte
        with self._sentences():
            try:
                return memoryview(obstore.get_range(self._store, name, start=offset, length=length))
            except FileNotFoundError as error:
                self._require_missing(error)
                return None
            except BaseError as error:
                if s3_code(error) != "InvalidRange":
                    raise
                return memoryview(b"")

    def create(self, name: str, body: bytes) -> Creation:
        """Store an object unless the name is taken, in one try."""
        with self._sentences():
            try:
                obstore.put(self._store, name, body, mode="create", use_multipart=False)
            except AlreadyExistsError as error:
                # Two creates met, and S3 says so even if it stored neither. It is an answer: no outage.
                is_unclear = _CONFLICT in str(error) and s3_code(error) != _BLOB_EXISTS
                return Creation.UNCLEAR if is_unclear else Creation.TAKEN
        return Creation.STORED

    def put(self, name: str, body: bytes) -> None:
        """Store an object, or replace it."""
        with self._sentences():
            obstore.put(self._store, name, body, chunk_size=_PART_BYTES, max_concurrency=_PARTS_AT_ONCE)

    def delete(self, names: Sequence[str]) -> None:
        """Remove the objects that exist, in one request if the cloud has one for many."""
        with self._sentences():
            try:
                obstore.delete(self._store, list(names))
            except FileNotFoundError as error:
                self._require_missing(error)
                if len(names) > 1:  # the rest may be there: a cloud without such a request stops at the first
                    self._delete_each(names)
            except BaseError as error:
                if (code := _code_of_deletion(error)) in _DELETION_DENIED:
                    raise ConfigurationError(
                        f"{self._cloud.place} does not let these keys delete objects of {self._address} "
                        f"({code}). Allow them to, or use keys that may."
                    ) from error
                raise

    def _delete_each(self, names: Sequence[str]) -> None:
        """Remove the objects that exist, one after the other."""
        for name in names:
            try:
                obstore.delete(self._store, name)
            except FileNotFoundError as error:
                self._require_missing(error)

    def list(self, prefix: str) -> list[str]:
        """The names that begin with `prefix`, in any order."""
        folder = prefix.rpartition("/")[0]  # obstore lists whole folders
        with self._sentences():
            chunks = obstore.list(self._store, prefix=folder or None)
            names = [entry["path"] for chunk in chunks for entry in chunk]
        return [name for name in names if name.startswith(prefix)]

    @contextmanager
    def _sentences(self) -> Iterator[None]:
        """Translate errors of the store, and of the way to it."""
        _refuse_after_fork()
        try:
            yield
        except (BaseError, FileNotFoundError) as error:  # the second where the bucket is missing
            raise self._problem(error) from error

    def _problem(self, error: Exception) -> FactoryError | NoAnswer:
        task = "asked for credentials: " if _TOKEN_REQUEST in str(error) else ""
        return self._cloud.refusal(error, self._address) or NoAnswer(f"{task}{cause(error)}")

    def _require_missing(self, error: FileNotFoundError) -> None:
        """Raise `error` unless the store itself says that the key is missing.

        A gateway that cannot reach its store answers 404 too, and a name believed missing would end a chain
        too early.
        """
        if not self._cloud.is_missing(error):
            raise error


def _code_of_deletion(error: Exception) -> str:
    match = _DELETION_FAILED.search(str(error))
    return match[1] if match else s3_code(error)


def _refuse_after_fork() -> None:
    """Raise where a request would hang for ever: obstore's threads do not survive a fork."""
    if _USER.setdefault("process", os.getpid()) != os.getpid():
        raise MachineError(
            "This process was forked from one that had used a bucket, and cannot use buckets. "
            "Start workers by `spawn` or `forkserver`, or open the store in the workers alone."
        )
