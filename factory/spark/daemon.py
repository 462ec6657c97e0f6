"""The daemon that Spark forks its Python workers from, with common modules preloaded.

It is `pyspark.daemon` (`spark.python.daemon.module`) without two costs per task: rescanning the directories
of `pyspark.zip` and Spark's jar for new modules, and garbage collection over all objects of all modules.
Packages of the environment need no archive, and objects from before the fork are never garbage.

It also reaps its workers, so that the kernel keeps their CPU time after they have ended.
"""

from __future__ import annotations

import atexit
import gc
import importlib.util
import os
import signal
import sys
import time

_ARCHIVES = (".zip", ".jar")  # Spark's own jar is on the path, too
_LAST_WAIT_S = 1.0  # for workers that the daemon signals when it exits


def leave_archives() -> None:
    """Remove archives from the module path, unless PySpark is found nowhere else."""
    whole = list(sys.path)
    sys.path[:] = [place for place in whole if not place.endswith(_ARCHIVES)]
    if importlib.util.find_spec("pyspark") is None:
        sys.path[:] = whole
        return
    for place in [place for place in sys.path_importer_cache if place.endswith(_ARCHIVES)]:
        del sys.path_importer_cache[place]  # a directory that was scanned once is read again with the others


def reap_workers() -> None:
    """Make this process reap the children that it forks, also children that outlive its main loop.

    PySpark's daemon ignores SIGCHLD, and the kernel drops the CPU time of ignored children. The daemon sets
    that between its start and its first fork, so the handler is set again before every fork.
    """
    daemon = os.getpid()

    def before_fork() -> None:
        if os.getpid() == daemon:  # a worker inherits this function and starts processes of its own
            signal.signal(signal.SIGCHLD, lambda *_: _reap())

    def at_exit() -> None:
        end = time.monotonic() + _LAST_WAIT_S
        while _reap() and time.monotonic() < end:
            time.sleep(0.01)

    os.register_at_fork(before=before_fork)
    atexit.register(at_exit)  # not called in workers, which leave by `os._exit`


def _reap() -> bool:
    """Reap the children that have ended; return whether others are alive."""
    try:
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    except ChildProcessError:
        return False
    return True


if __name__ == "__main__":
    leave_archives()
    reap_workers()

    import pandas  # noqa: F401  # PySpark's serializers import it in every worker
    import pyarrow.acero
    import pyarrow.compute
    import pyarrow.parquet  # noqa: F401
    from pyspark.daemon import manager

    gc.collect()
    gc.freeze()
    manager()
