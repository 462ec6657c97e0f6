"""Counters of this process's reads for blends, by table.

Reading code adds to `COUNTS` under one short lock. A server exports each counter to Prometheus as
`blender_<name>` (`blender.serving.metrics`); a trainer without a server can look at them in its own process.
"""

from __future__ import annotations

import threading

READS = "reads"
"""Ranges of bytes read from data files."""
PAGES = "pages"
"""Parquet pages decoded."""
BYTES = "read_bytes"
"""Bytes read from data files."""
ROWS = "read_rows"
"""Rows taken from pages, each time that a batch needs them."""
WAIT_S = "wait_seconds"
"""Seconds that fetches waited for rows of the table."""


class Counts:
    """Sums by name and table; safe for many threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._sums: dict[tuple[str, str], float] = {}

    def add(self, name: str, table: str, value: float = 1.0) -> None:
        """Add a non-negative `value` to the sum `name` of `table`."""
        with self._lock:
            self._sums[name, table] = self._sums.get((name, table), 0.0) + value

    def sums(self) -> dict[tuple[str, str], float]:
        """Every sum by (name, table)."""
        with self._lock:
            return dict(self._sums)


COUNTS = Counts()
"""The sums of this process."""
