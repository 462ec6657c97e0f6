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
from typing import Generic, ParamSpec, TypeVar

import psutil

from factory.errors import MachineError

P = ParamSpec("P")
R = TypeVar("R")

_CONTEXT = multiprocessing.get_context("fork")  # the child keeps the worker's imports


class Isolated(Generic[P, R]):
    """`function`, called in a child process that is forked at the first call and again after each death.

    A call may use `memory_bytes` beyond the memory the child starts with, and `cpu_s` seconds of CPU time, or
    less if the hard limits of the process (`ulimit`) are lower. Arguments and results are pickled. The child
    ends with its parent. Not thread-safe.
    """

    def __init__(self, function: Callable[P, R], memory_bytes: int, cpu_s: int) -> None:
        self._function = function
        self._memory_bytes = memory_bytes
        self._cpu_s = cpu_s
        self._child: BaseProcess | None = None
        self._connection: Connection | None = None

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R | None:
        """The result of `function`, None where the child died. An exception of `function` is raised here.

        Raises MachineError if no child starts.
        """
        call = pickle.dumps((args, kwargs))
        has_served = self._connection is not None
        answer = self._answer(call)
        if answer is None and has_served and _hard_limit(resource.RLIMIT_CPU) is not None:
            answer = self._answer(call)  # earlier calls count against a hard limit, and spent it
        if answer is None:
            return None
        succeeded, outcome = pickle.loads(answer)
        if not succeeded:
            raise outcome
        return outcome

    def _answer(self, call: bytes) -> bytes | None:
        connection = self._connection or self._start()
        try:
            connection.send_bytes(call)
            return connection.recv_bytes()
        except (EOFError, ConnectionError):
            self.close()
            return None

    def _start(self) -> Connection:
        try:
            ours, theirs = _CONTEXT.Pipe()
            self._child = _CONTEXT.Process(target=self._serve, args=(theirs,), daemon=True)
            self._child.start()
        except OSError as error:
            raise MachineError(
                f"A process that reads source files cannot be started: {error}. Raise the limits on "
                "processes and open files (`ulimit -u`, `ulimit -n`)."
            ) from error
        theirs.close()
        self._connection = ours
        try:
            ours.recv_bytes()
        except (EOFError, ConnectionError):
            child = self._child
            self.close()
            raise MachineError(
                f"A process that reads source files ended before its first file, with code {child.exitcode}. "
                "Give the run more memory, or raise its limits (`ulimit -a`)."
            ) from None
        return ours

    def close(self) -> None:
        """End the child; the next call forks a new one."""
        if self._connection is not None and self._child is not None:
            self._connection.close()  # a waiting child reads the end of the pipe and exits
            self._child.join()
        self._connection = self._child = None

    def _serve(self, connection: Connection) -> None:
        _keep_open(connection.fileno())
        bound = _within_hard_limit(
            resource.RLIMIT_AS, psutil.Process().memory_info().vms + self._memory_bytes
        )
        resource.setrlimit(resource.RLIMIT_AS, (bound, bound))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        connection.send_bytes(b"")  # ready: a death from here on is that of a call
        while True:
            try:
                args, kwargs = pickle.loads(connection.recv_bytes())
            except EOFError:
                return
            usage = resource.getrusage(resource.RUSAGE_SELF)
            limit = _within_hard_limit(
                resource.RLIMIT_CPU, int(usage.ru_utime + usage.ru_stime) + 1 + self._cpu_s
            )
            resource.setrlimit(resource.RLIMIT_CPU, (limit, resource.getrlimit(resource.RLIMIT_CPU)[1]))
            try:
                answer = pickle.dumps((True, self._function(*args, **kwargs)))
            except MemoryError:
                os._exit(1)
            except Exception as error:  # raised in the parent, also for an answer that cannot be pickled
                answer = pickle.dumps((False, error))
            connection.send_bytes(answer)


def _hard_limit(kind: int) -> int | None:
    """The hard limit of this process, None where there is none."""
    hard = resource.getrlimit(kind)[1]
    return None if hard == resource.RLIM_INFINITY else hard


def _within_hard_limit(kind: int, limit: int) -> int:
    """`limit`, or the hard limit where that is lower; batch systems set such limits."""
    hard = _hard_limit(kind)
    return limit if hard is None else min(limit, hard)


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
