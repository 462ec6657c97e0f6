"""The part of the CPU seconds of every asset that does not grow with the corpus: a line through two sizes.

    python -m bench.pipeline.fixed     # the pipeline on FACTORY_INSTALLATION_SHARE, one line of JSON

The bench runs the pipeline on a quarter of the share in another process, so that both sizes pay for a cold
JVM. A table of a few rows has the same cost at both sizes; one whose cost is proportional to its input
has no fixed part.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

from factory.errors import CheckFailed

SMALLER = 4  # the share of the larger run over that of the smaller one


@dataclass(frozen=True)
class Costs:
    """The CPU seconds of every asset in one run of the pipeline, and the MB that entered it."""

    megabytes: float
    cpu_s: Mapping[str, float]


@dataclass(frozen=True)
class Split:
    """CPU seconds of the larger of two runs: those that do not grow with the input, and those that do."""

    fixed: float
    growing: float

    def __add__(self, other: Split) -> Split:
        return Split(self.fixed + other.fixed, self.growing + other.growing)


def split(small: Costs, large: Costs) -> dict[str, Split]:
    """Return the parts of every asset of `large`, by the line through both runs.

    A part is never negative: where noise makes the smaller run the dearer one, all seconds are fixed. Raises
    ValueError unless `large` had more input.
    """
    if large.megabytes <= small.megabytes:
        raise ValueError(f"{large.megabytes} MB are not more than {small.megabytes} MB")
    scale = large.megabytes / (large.megabytes - small.megabytes)
    found = {}
    for asset, seconds in large.cpu_s.items():
        growing = scale * (seconds - small.cpu_s.get(asset, seconds))
        growing = min(max(growing, 0.0), seconds)
        found[asset] = Split(seconds - growing, growing)
    return found


def smaller_run(share: float) -> Costs:
    """Measure the pipeline on a part of `share` in another process. Raises CheckFailed if that fails."""
    environment = os.environ | {"FACTORY_INSTALLATION_SHARE": str(share / SMALLER)}
    command = [sys.executable, "-m", "bench.pipeline.fixed"]
    done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode:
        raise CheckFailed(
            f"The pipeline on {share / SMALLER:.1%} of this Python installation ended with exit code "
            f"{done.returncode}. Its output is above; run {' '.join(command[1:])} to repeat it."
        )
    return Costs(**json.loads(done.stdout.splitlines()[-1]))


def main() -> None:
    """Measure the pipeline on a lake of its own; print its costs."""
    from rich.console import Console

    from bench.lakes import own_lake
    from bench.pipeline.measure import costs_of_run

    with tempfile.TemporaryDirectory(prefix="bench-pipeline-small-") as folder:
        found = costs_of_run(own_lake(Path(folder)), Console(stderr=True, highlight=False))
    sys.stdout.write(f"\n{json.dumps(asdict(found))}\n")


if __name__ == "__main__":
    main()
