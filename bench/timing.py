"""CPU seconds of one process, for programs of any environment."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any


def cpu_seconds(work: Callable[[], Any], rounds: int = 3) -> list[float]:
    """The CPU seconds of each round of `work`."""
    seconds = []
    for _ in range(rounds):
        began = time.process_time()
        work()
        seconds.append(time.process_time() - began)
    return seconds
