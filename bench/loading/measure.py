"""What a loading plan costs, and what it is worth at each barrier where ranks wait for each other.

`plan` times a plan over 306 tables, at the sizes of MegaScale-Data's Table 2. `balance` computes the time of
steps of real files, and of pipelines, as given and as planned. `laws` computes how uneven images and
sequences of drawn lengths are, `images` what real pictures cost, and `speedup` what balance over encoder and
backbone is worth. `loss` trains a tiny model with and without plans. `sharing` starts a constructor and the
ranks of a bucket, and counts what they read, send, hold and wait for. `fetch` times how long a trainer waits
for a step, `pictures` for one of decoded pictures. `memory` counts the memory of ranks that open 306 sources.
A part runs alone as `make bench NAME=loading.<part>`.
"""

from __future__ import annotations

from bench.loading import balance, fetch, fetch_pictures, laws, loss, memory, pictures, plan, sharing, speedup

PARTS = {
    "plan": plan.measure,
    "balance": balance.measure,
    "laws": laws.measure,
    "images": pictures.measure,
    "speedup": speedup.measure,
    "loss": loss.measure,
    "sharing": sharing.measure,
    "fetch": fetch.measure,
    "pictures": fetch_pictures.measure,
    "memory": memory.measure,
}
