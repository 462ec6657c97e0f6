"""The end of everything that a test process started, however the test process itself ends.

`start` marks the environment, which all processes started later inherit, and starts a watcher, a daemon. The
watcher waits for the end of its input, which the kernel closes when the test process exits, is interrupted or
is killed. Then it ends every process with the mark, and their descendants. The mark also reaches what a
process group and a parent-death signal miss: daemons that left their session and lost their parent.

A process whose environment lacks the mark or cannot be read is named by `adopt`, as children that a test
process forks are.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import Iterable, Iterator

import psutil

MARK = "TEST_PROCESS_MARK"
# A JVM whose Python was killed, and a server whose client is gone, end by themselves.
_STAGES = ((None, 1.0), (signal.SIGTERM, 3.0), (signal.SIGKILL, 10.0))
_CHECK_EVERY_S = 0.1
_NULL = subprocess.DEVNULL

_to_watcher: int | None = None


def start() -> None:
    """End the processes that this process starts from now on when it ends."""
    global _to_watcher
    read, _to_watcher = os.pipe()
    environment = {name: value for name, value in os.environ.items() if name != MARK}
    os.environ[MARK] = uuid.uuid4().hex
    command = [sys.executable, "-P", __file__, os.environ[MARK]]
    subprocess.run(
        command,
        env=environment,
        stdin=read,
        stdout=_NULL,
        stderr=_NULL,
        cwd="/",
        start_new_session=True,
        check=True,
    )
    os.close(read)
    os.register_at_fork(after_in_child=_leave)


def adopt(pid: int) -> None:
    """End the process `pid` and its descendants, too, whatever its environment."""
    if _to_watcher is not None:
        os.write(_to_watcher, b"%d\n" % pid)


def _leave() -> None:
    """Adopt a forked child, whose environment is the one that this process was started with."""
    global _to_watcher
    if _to_watcher is not None:
        adopt(os.getpid())
        os.close(_to_watcher)
        _to_watcher = None


def alive(processes: Iterable[psutil.Process]) -> set[psutil.Process]:
    """The processes that run still; one that ended and waits for its parent does not."""
    running = set()
    for process in processes:
        with contextlib.suppress(psutil.NoSuchProcess):
            if process.is_running() and process.status() != psutil.STATUS_ZOMBIE:
                running.add(process)
    return running


def _left(mark: str, adopted: Iterable[psutil.Process]) -> set[psutil.Process]:
    """The processes with the mark, the adopted ones, and the descendants of all of them."""
    marked = [
        process
        for process in psutil.process_iter(["environ"])
        if (process.info["environ"] or {}).get(MARK) == mark
    ]
    roots = alive([*marked, *adopted])
    descendants: set[psutil.Process] = set()
    for root in roots:
        with contextlib.suppress(psutil.NoSuchProcess):
            descendants.update(root.children(recursive=True))
    return roots | alive(descendants)


def _end(mark: str, adopted: list[psutil.Process]) -> None:
    for number, wait_s in _STAGES:
        deadline = time.monotonic() + wait_s
        signaled: set[psutil.Process] = set()
        while left := _left(mark, adopted):
            if time.monotonic() > deadline:
                break
            for process in left - signaled if number else ():
                with contextlib.suppress(psutil.Error):
                    process.send_signal(number)
            signaled |= left
            time.sleep(_CHECK_EVERY_S)
        else:
            return


def _named(lines: Iterable[bytes]) -> Iterator[psutil.Process]:
    for line in lines:
        with contextlib.suppress(psutil.NoSuchProcess):
            yield psutil.Process(int(line))


if __name__ == "__main__":
    if os.fork():  # a watcher below a test process would be ended by the watcher of the process above
        os._exit(0)
    _end(sys.argv[1], list(_named(sys.stdin.buffer)))
