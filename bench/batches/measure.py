"""The cost of durable batches: a start, a slice, other meshes, commits, retention.

`start` counts what is read to find the newest state of a log of 10 to 100,000 versions, `slices` compares a
rank's slice with the whole batch, `remap` reads batches by other meshes, `commits` lets 1 to 16 producers
commit to one namespace, and `retention` counts the bytes that are held while a run trains. A part runs alone
as `make bench NAME=batches.<part>`.
"""

from __future__ import annotations

from bench.batches import commits, remap, retention, slices, start

PARTS = {
    "start": start.measure,
    "slices": slices.measure,
    "remap": remap.measure,
    "commits": commits.measure,
    "retention": retention.measure,
}
