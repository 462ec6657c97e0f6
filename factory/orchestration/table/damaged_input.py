"""Find the damaged Parquet file behind a failure of Spark, because Spark's errors name no file."""

from __future__ import annotations

import logging
from collections.abc import Iterable

from factory.errors import DamagedFile, FactoryError
from factory.lake.files.damage import require_files
from factory.lake.names import TableName
from factory.orchestration.host.resources import LakeRun

log = logging.getLogger(__name__)


def damaged_input(run: LakeRun, tables: Iterable[TableName]) -> DamagedFile | None:
    """Return the error for the first damaged data file of the `tables` that a run reads.

    None if all files are whole, or if the search itself fails, as in a store that does not answer: then the
    log has the reason, and the caller reports the failure that it has.
    """
    for table in tables:
        try:
            require_files(run.lake.table(table), run.pin(table).snapshot_id)
        except DamagedFile as damaged:
            return damaged
        except (FactoryError, OSError) as error:
            log.warning("The files of %s could not be searched for damage (%s).", table, error)
            return None
    return None
