"""Ranges of partitions as people write them, read without Dagster, because its import takes a second."""

from __future__ import annotations

from factory.errors import ConfigurationError

Span = tuple[str, str]  # first and last partition of a range, in the order of their definition


def span_of(text: str) -> Span:
    """Parse `2026-01-01...2026-01-31`; raise ConfigurationError for anything else."""
    first, dots, last = text.partition("...")
    if not (first and dots and last):
        raise ConfigurationError(
            f"`{text}` is not a range of partitions. Write FIRST...LAST, for example 2026-01-01...2026-01-31."
        )
    return first, last
