"""Jobs of workers: the speed of several replicas against one, and the cost of the queue that they share.

`replicas` runs worker processes of this machine on a kind of work and on a kind that waits. `preemption` lets
a more pressing run claim the cores, and `priority` makes whole tables by such a run. `queue` counts the CPU
seconds and requests of a million items that do nothing. A part runs alone as `make bench
NAME=synthesis.<part>`.
"""

from __future__ import annotations

from bench.synthesis import preemption, priority, queue, replicas

PARTS = {
    "replicas": replicas.measure,
    "preemption": preemption.measure,
    "priority": priority.measure,
    "queue": queue.measure,
}
