"""The borders of a part of a file that tells only from its begin on, for certain, where records begin.

    part:   | begin    first record ...          end | begin    first record ...          end |
    walk:              first ---------------------------------> end = first -----------------------> end

A web archive may hold another one, so a place that looks like the begin of a record may be inside a record. A
task that reads a part begins at the first such place in it, and reads record by record, up to the one
that begins behind the part. A row without an id tells both places;
`spark_udfs.ingest.reread` compares them.
"""

from __future__ import annotations

from spark_udfs.ingest.files import Input
from spark_udfs.ingest.rows import Row


def row_of_borders(source: Input, first: int | None, end: int | None) -> Row:
    """Return the row that tells where the first record of a part begins, and the first one behind it.

    Without a record in the part the first is None, and the end of a part that could not be read is, too.
    """
    assert source.part is not None
    return {
        "source": source.origin.source,
        "file": source.key,
        "part_at": source.part.begin,
        "row": first,
        "n_bytes": end,
    }
