"""Dagster's entry points, each a process that imports most of the platform (`jobs.definitions` ends that)."""

from factory.garbage import collect_rarely

collect_rarely()
