"""The process that Spark forks its Python workers from, with what they all need loaded already.

It is `pyspark.daemon` (`spark.python.daemon.module`), rid of what that does again for every task of some
hundredths of a second: reading the directories of `pyspark.zip` and of Spark's own jar, because modules may
have been added to them, and collecting garbage among all objects of all modules. Packages that lie in the
environment need no archive, and objects that were there before the fork are nobody's garbage.
"""

from __future__ import annotations

import gc
import importlib.util
import sys

_ARCHIVES = (".zip", ".jar")  # Spark's own jar, too, is on the path


def leave_archives() -> None:
    """Take archives off the path of modules, unless PySpark itself is found nowhere else."""
    whole = list(sys.path)
    sys.path[:] = [place for place in whole if not place.endswith(_ARCHIVES)]
    if importlib.util.find_spec("pyspark") is None:
        sys.path[:] = whole
        return
    for place in [place for place in sys.path_importer_cache if place.endswith(_ARCHIVES)]:
        del sys.path_importer_cache[place]  # what was looked through once is read again with the others


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
