"""Processes that create the same names at once.

python -m tests.blender.global_batches.store.creators URI NUMBER
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from blender.global_batches.log.operations import Verdict, create, get
from blender.global_batches.store.namespace_store import NamespaceStore, open_store

ROOT = Path(__file__).parents[4]
PROCESSES, KEYS = 8, 50
_REPEATS = 500  # so that a body cut short shows


def names() -> list[str]:
    """The names that every process creates."""
    return [f"log/{key:020}" for key in range(KEYS)]


def body(number: int, name: str) -> bytes:
    """What one process stores under a name."""
    return f"{number} {name}\n".encode() * _REPEATS


def check_one_winner_each(store: NamespaceStore, environment: Mapping[str, str]) -> None:
    """Let processes create all names; exactly one must win each, and its bytes must be there."""
    command = [sys.executable, "-m", __name__, store.uri]
    processes = [
        subprocess.Popen(
            [*command, str(number)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=ROOT,
            env=os.environ | environment,
        )
        for number in range(PROCESSES)
    ]
    for process in processes:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
    for process in processes:
        assert process.stdin is not None
        process.stdin.write("go\n")
        process.stdin.flush()
    wins = [json.loads(process.communicate(timeout=120)[0]) for process in processes]
    assert sorted(name for won in wins for name in won) == names()
    for number, won in enumerate(wins):
        for name in won:
            assert store.run(get(name)) == body(number, name)


def main(uri: str, number: int) -> None:
    """Create all names and print those won."""
    store = open_store(uri)
    store.run(create(f"warm/{number}", b""))  # a new bucket lets its first writers wait
    print("ready", flush=True)
    sys.stdin.readline()
    # Pairs begin at the same name. With one order for all, the first winner would stay ahead on a store that
    # lets losers wait.
    first = number // 2 * (2 * KEYS // PROCESSES)
    order = names()[first:] + names()[:first]
    won = [name for name in order if store.run(create(name, body(number, name))) is Verdict.OURS]
    print(json.dumps(won))


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
