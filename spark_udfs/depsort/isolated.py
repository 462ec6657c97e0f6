"""Calls of a function in a child process with bounded memory and CPU time: a fatal input costs one call.

A tree-sitter grammar is generated C code, and some grammars need memory or time in the square of a hostile
file's size: `a<a<a<...` in C++, C# and Java, `.f(.f(.f(...` in Java and C++, `~%!~%!...` in Java and
TypeScript. No scan of a file finds all such inputs, so files are parsed in a process that can be killed.
"""

from __future__ import annotations

import multiprocessing
import os
import pickle
import resource
from collections.abc import Callable
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any, Generic, ParamSpec, TypeVar

import psutil

P = ParamSpec("P")
R = TypeVar("R")

_CONTEXT = multiprocessing.get_context("fork")  # the child keeps the worker's imports


class Isolated(Generic[P, R]):
    """`function`, called in a child process that is forked at the first call and again after each death.

    A call may use `memory_bytes` beyond the memory the child starts with, and `cpu_s` seconds of CPU time.
    Arguments and results are pickled. The child ends with its parent. Not thread-safe.
    """

    def __init__(self, function: Callable[P, R], memory_bytes: int, cpu_s: int) -> None:
        self._function = function
        self._memory_bytes = memory_bytes
        self._cpu_s = cpu_s
        self._child: BaseProcess | None = None
        self._connection: Connection | None = None

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R | None:
        """The result of `function`, None where the child died. An exception of `function` is raised here."""
        connection = self._connection or self._start()
        try:
            connection.send_bytes(pickle.dumps((args, kwargs)))
            succeeded, outcome = pickle.loads(connection.recv_bytes())
        except (EOFError, ConnectionError):
            self.close()
            return None
        if not succeeded:
            raise outcome
        return outcome

    def _start(self) -> Connection:
        ours, theirs = _CONTEXT.Pipe()
        self._child = _CONTEXT.Process(target=self._serve, args=(theirs,), daemon=True)
        self._child.start()
        theirs.close()
        self._connection = ours
        return ours

    def close(self) -> None:
        """End the child; the next call forks a new one."""
        if self._connection is not None and self._child is not None:
            self._connection.close()  # a waiting child reads the end of the pipe and exits
            self._child.join()
        self._connection = self._child = None

    def _serve(self, connection: Connection) -> None:
        _keep_open(connection.fileno())
        bound = psutil.Process().memory_info().vms + self._memory_bytes
        resource.setrlimit(resource.RLIMIT_AS, (bound, bound))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        while True:
            try:
                args, kwargs = pickle.loads(connection.recv_bytes())
            except EOFError:
                return
            usage = resource.getrusage(resource.RUSAGE_SELF)
            limit = int(usage.ru_utime + usage.ru_stime) + 1 + self._cpu_s
            resource.setrlimit(resource.RLIMIT_CPU, (limit, resource.getrlimit(resource.RLIMIT_CPU)[1]))
            answer: tuple[bool, Any]
            try:
                answer = True, self._function(*args, **kwargs)
            except MemoryError:
                os._exit(1)
            except Exception as error:
                answer = False, error
            connection.send_bytes(pickle.dumps(answer))


def _keep_open(descriptor: int) -> None:
    """Close every other file: the parent's sockets would outlive it in the child.

    Standard error goes too: a grammar that gets no memory prints before it aborts, and the caller names the
    file instead.
    """
    nowhere = os.open(os.devnull, os.O_RDWR)
    for standard in (0, 1, 2):
        os.dup2(nowhere, standard)
    for opened in Path("/proc/self/fd").iterdir():  # the limit of a container may be a billion
        if (other := int(opened.name)) not in (0, 1, 2, descriptor):
            os.closerange(other, other + 1)  # the listing's own is closed already, which `closerange` accepts
