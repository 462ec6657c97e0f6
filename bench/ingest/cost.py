"""`python -m bench.ingest.cost COMMAND ...`: the cost of a command's process tree, as one line of JSON."""

from __future__ import annotations

import json
import subprocess
import sys

from bench.processes import Meter

if __name__ == "__main__":
    with Meter() as meter:
        done = subprocess.run(sys.argv[1:], stdout=subprocess.DEVNULL, check=False)
    if done.returncode:
        sys.exit(done.returncode)
    [span] = meter.spans
    print(json.dumps([span.wall_s, span.cpu_s.total, span.peak.total]))
