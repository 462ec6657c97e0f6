"""What durable batches cost beside the data: a start, a rank's slice, and commits of many producers.

`start` counts what is read to find the newest state of a log of 10 to 100,000 versions, `slices` compares a
rank's slice with the whole batch, and `commits` lets 1 to 16 producers commit to one namespace. A part runs
alone as `make bench NAME=batches.<part>`.
"""

from __future__ import annotations

from bench.batches import commits, slices, start

PARTS = {"start": start.measure, "slices": slices.measure, "commits": commits.measure}
