"""`python -m bench.ingest.cost CORES COMMAND ...`: the cost of a command on so many cores, as JSON."""

from __future__ import annotations

import json
import os
import subprocess
import sys

from bench.processes import Meter


def stay_on(n_cores: int) -> None:
    """Keep this process and all that it starts on so many cores, on systems that can."""
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:n_cores])


if __name__ == "__main__":
    stay_on(int(sys.argv[1]))
    with Meter() as meter:
        done = subprocess.run(sys.argv[2:], stdout=subprocess.DEVNULL, check=False)
    if done.returncode:
        sys.exit(done.returncode)
    [span] = meter.spans
    print(json.dumps([span.wall_s, span.cpu_s.total, span.peak.total]))
