"""Run pytest, and what failed once more in a process of its own.

`python -m tests.rerun OPTIONS` passes the options to pytest. A test that fails and then passes without a
change of code is printed as `flaky: NAME`, and the run passes. A second failure counts, and more than
`MOST_RETRIED` failures are not tried again: then the code is wrong, not the machine.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

MOST_RETRIED = 20


def failures(cache: Path) -> list[str]:
    """The tests whose last run failed, by the cache of pytest."""
    file = cache / "v" / "cache" / "lastfailed"
    return sorted(json.loads(file.read_text())) if file.exists() else []


def run(options: list[str], cache: Path) -> int:
    """Run pytest in a process of its own; return its exit status."""
    command = [sys.executable, "-m", "pytest", "-o", f"cache_dir={cache}", *options]
    return subprocess.run(command, check=False).returncode


def main(options: list[str]) -> int:
    with tempfile.TemporaryDirectory() as folder:
        cache = Path(folder)
        status = run(options, cache)
        failed = failures(cache)
        if not 0 < len(failed) <= MOST_RETRIED:
            return status
        print(f"\nRunning {len(failed)} failed tests once more ...", flush=True)
        run(
            [*options, "-n", "0", "--dist", "no", "--last-failed", "--last-failed-no-failures", "none"], cache
        )
        failed_twice = failures(cache)
    for name in failed:
        print(f"{'failed twice' if name in failed_twice else 'flaky'}: {name}")
    if status == pytest.ExitCode.TESTS_FAILED and not failed_twice:
        return 0
    return status  # of the first run: over the budget of CPU seconds, too


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
