"""Files of the tests are parsed by a process that forks its readers as Spark's workers do.

The test process cannot fork them itself: once another test has run a gRPC server in it, a fork starts threads
of gRPC in the child, which may end it within its first call.
"""

from __future__ import annotations

import multiprocessing
from collections.abc import Iterator
from concurrent.futures import Executor, ProcessPoolExecutor

import pytest

from spark_udfs.depsort import extract


@pytest.fixture(scope="session")
def worker() -> Iterator[Executor]:
    """A process without the threads and servers of other tests."""
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as pool:
        yield pool


@pytest.fixture(scope="session", autouse=True)
def _reader_of_the_worker(worker: Executor) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(extract, "reader", lambda: lambda *file: worker.submit(read, *file).result())
        yield


def read(language: str, path: str, source: bytes) -> str | None:
    """Read a file by the reader of this process."""
    return extract.reader()(language, path, source)
