"""The daemon from which Spark forks its Python workers, with common modules preloaded.

It is `pyspark.daemon` (`spark.python.daemon.module`) without two costs per task: rescanning the directories
of `pyspark.zip` and Spark's jar for new modules, and garbage collection over all objects of all modules.
Packages of the environment need no archive, and objects from before the fork are never garbage.
"""

from __future__ import annotations

import gc
import importlib.util
import sys

_ARCHIVES = (".zip", ".jar")  # Spark's own jar is on the path, too


def leave_archives() -> None:
    """Remove archives from the module path, unless PySpark is found nowhere else."""
    whole = list(sys.path)
    sys.path[:] = [place for place in whole if not place.endswith(_ARCHIVES)]
    if importlib.util.find_spec("pyspark") is None:
        sys.path[:] = whole
        return
    for place in [place for place in sys.path_importer_cache if place.endswith(_ARCHIVES)]:
        del sys.path_importer_cache[place]  # a directory that was scanned once is read again with the others


if __name__ == "__main__":
    leave_archives()

    import pandas  # noqa: F401  # PySpark's serializers import it in every worker
    import pyarrow.acero
    import pyarrow.compute
    import pyarrow.parquet  # noqa: F401
    from pyspark.daemon import manager

    gc.collect()
    gc.freeze()
    manager()
