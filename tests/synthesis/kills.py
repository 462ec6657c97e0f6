"""Worker processes without a run, killed by SIGKILL at a random instant; others finish what they leave."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from factory.settings import Settings
from factory.synthesis.queue import Queue
from factory.synthesis.worker import work
from tests.synthesis.jobs import document, job, kind_file, rows, source

SIZE = 24
_SLICE_ITEMS = 3
_WAIT_S = 0.1  # of an item
_TERM_S = 4.0  # longer than a pause of a busy machine, so that deaths are those of the test
_LONGEST_S = 1.5  # from the first lease to a kill; two workers take half of it for the queue, or more
_DEADLINE_S = 240.0


@dataclass
class Scene:
    """A lake, the folder of the kinds, and the rows of the job where nobody is killed."""

    settings: Settings
    folder: Path
    answer: list[dict[str, Any]]

    @classmethod
    def create(cls, settings: Settings, folder: Path) -> Scene:
        """Publish a source, and work on it without a disturbance."""
        kind_file(folder)
        source(settings, [document(number) for number in range(SIZE)])
        queue = Queue.create(settings, job(settings, SIZE, dataset="calm", slice_items=_SLICE_ITEMS))
        work(settings, queue, folder)
        return cls(settings, folder, rows(queue))

    def require_answer_after_kill(self, point: int, draw: random.Random) -> None:
        """Kill one or both of two workers of a new queue; require the same rows of those that come after."""
        queue = Queue.create(
            self.settings,
            job(
                self.settings,
                SIZE,
                dataset=f"rough_{point}",
                slice_items=_SLICE_ITEMS,
                options={"wait_s": _WAIT_S},
            ),
        )
        n_killed, seconds = draw.choice([1, 2]), draw.uniform(0, _LONGEST_S)
        with self.workers(queue, 2) as first:
            deadline = time.monotonic() + _DEADLINE_S
            while not queue.listing().leases:
                assert time.monotonic() < deadline
                time.sleep(0.02)
            threading.Event().wait(seconds)
            done_before = queue.status().done
            for worker in first[:n_killed]:
                worker.send_signal(signal.SIGKILL)
        with self.workers(queue, 1):
            pass
        status = queue.status()
        print(
            f"point {point}: {n_killed} killed {seconds:.2f} s after the first lease, at {done_before} of "
            f"{status.slices} slices; {status.deaths} attempts died"
        )
        assert status.done == status.slices
        assert status.deaths <= n_killed
        assert rows(queue) == self.answer

    @contextmanager
    def workers(self, queue: Queue, n: int) -> Iterator[list[subprocess.Popen[bytes]]]:
        """Start worker processes, and wait for the end of those that the block leaves alive."""
        command = [sys.executable, "-m", "factory.synthesis", queue.job.dataset, queue.job.id]
        command += ["--folder", str(self.folder), "--term", str(_TERM_S)]
        environment = os.environ | self.settings.environment()
        processes = [subprocess.Popen(command, env=environment) for _ in range(n)]
        try:
            yield processes
            for process in processes:
                assert process.wait(_DEADLINE_S) in (0, -signal.SIGKILL)
        finally:
            for process in processes:
                process.kill()
                process.wait()
