"""The process of a worker: `python -m factory.synthesis DATASET JOB`, with the settings of the environment.

SIGTERM and SIGINT let it finish its item. It ends with exit code 0 or the code of its error. A supervisor
passes a file descriptor as `--report`: it reads a line at the first slice, and an error with its class. At
`--items` it looks at the count of items, to end a worker that does not come to the end of one.
"""

from __future__ import annotations

import argparse
import ctypes
import os
import signal
import sys
import traceback
from collections.abc import Callable
from pathlib import Path

from factory.errors import FactoryError
from factory.lake.claims import most_pressing
from factory.settings import settings
from factory.synthesis.item_clock import ItemCounter
from factory.synthesis.queue import Queue
from factory.synthesis.worker import LEASED, TERM_S, Worker, work

_PARENT_DEATH_SIGNAL = 1  # of prctl
_MOST_REPORT = 3000  # bytes, which a pipe takes whole without a reader


def main() -> int:
    """Work until no slice is left; return the exit code."""
    arguments = _arguments()
    if arguments.parent is not None:
        _continue_without_parent()
    report = _reporter(arguments.report)
    try:
        queue = Queue.open(settings(), arguments.dataset, arguments.job)
        work(
            settings(),
            queue,
            arguments.folder,
            pause=_Claims(queue.job.priority),
            name=arguments.name,
            term_s=arguments.term,
            parent=arguments.parent,
            leave_idle=arguments.leave_idle,
            counter=ItemCounter(arguments.items),
            at_lease=_once(lambda: report(LEASED)),
            at_start=_end_on_signals,
        )
    except MemoryError:
        os.kill(os.getpid(), signal.SIGKILL)  # as the system does: another attempt may have more
    except FactoryError as error:
        report(f"{type(error).__module__}.{type(error).__qualname__}: {error}")
        return error.exit_code
    except Exception as error:
        report(f"{type(error).__qualname__}: {error}\n{traceback.format_exc()}")
        return 1
    return 0


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m factory.synthesis")
    parser.add_argument("dataset")
    parser.add_argument("job")
    parser.add_argument("--folder", type=Path, default=Path())
    parser.add_argument("--name")
    parser.add_argument("--term", type=float, default=TERM_S)
    parser.add_argument("--parent", type=int)
    parser.add_argument("--report", type=int)
    parser.add_argument("--items", type=int)
    parser.add_argument("--leave-idle", action="store_true")
    return parser.parse_args()


class _Claims:
    """Gives way to more pressing runs of this machine."""

    def __init__(self, priority: int) -> None:
        self._priority = priority

    def holder(self) -> str | None:
        claim = most_pressing(above=self._priority)
        return None if claim is None else claim.what


def _continue_without_parent() -> None:
    """Let the system continue this process if its parent dies: the parent may have stopped it."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PARENT_DEATH_SIGNAL, signal.SIGCONT)


def _end_on_signals(worker: Worker) -> None:
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: worker.stop())


def _reporter(descriptor: int | None) -> Callable[[str], None]:
    """Return a function that tells a supervisor a sentence, or prints it."""
    if descriptor is None:
        return lambda text: print(text, file=sys.stderr, end="" if text.endswith("\n") else "\n")
    return lambda text: _tell(descriptor, text)


def _tell(descriptor: int, text: str) -> None:
    os.write(descriptor, text.encode(errors="replace")[:_MOST_REPORT])


def _once(function: Callable[[], None]) -> Callable[[], None]:
    calls: list[bool] = []

    def call() -> None:
        if not calls:
            calls.append(True)
            function()

    return call


if __name__ == "__main__":
    sys.exit(main())
