"""The clock of CPU seconds: children while they run and after they ended, and orphans."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil

from tests import reaper
from tests.cpu_clock import PERIOD_S, CpuClock

ROOT = Path(__file__).parents[1]
SPENT_S = 0.4
SPEND = f"import time\nwhile time.process_time() < {SPENT_S}: pass\nprint('spent', flush=True)\ninput()"


def child() -> subprocess.Popen[str]:
    """A process that has spent its seconds and ends at the end of its input."""
    process = subprocess.Popen(
        [sys.executable, "-c", SPEND], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "spent\n"
    return process


def test_children_count_while_they_run_and_after_they_ended() -> None:
    clock = CpuClock()
    before = clock.read()
    process = child()
    assert clock.read() - before >= SPENT_S - 0.05
    process.communicate("\n")
    assert clock.read() - before >= SPENT_S - 0.05


def test_processes_that_outlive_their_parent_count(tmp_path: Path) -> None:
    program, output = tmp_path / "program.py", tmp_path / "output"
    program.write_text(f"import os, time\nprint(os.getpid())\n{SPEND.replace('input()', 'time.sleep(60)')}")
    output.touch()
    clock = CpuClock()
    with clock.running():
        before = clock.read()
        subprocess.run(["sh", "-c", f"{sys.executable} {program} > {output} &"], check=True)
        while "spent" not in output.read_text():
            time.sleep(0.05)
        orphan = psutil.Process(int(output.read_text().split()[0]))
        assert orphan.ppid() != os.getpid()
        time.sleep(2 * PERIOD_S)
        orphan.send_signal(signal.SIGKILL)
        orphan.wait()
        assert clock.read() - before >= SPENT_S - 0.05


def test_other_processes_of_the_machine_do_not_count() -> None:
    program = (
        "import os, subprocess, sys, time\n"
        "from tests import reaper\n"
        "from tests.cpu_clock import CpuClock\n"
        "unmarked = dict(os.environ)\n"
        "reaper.start()\n"
        "clock, start = CpuClock(), time.process_time()\n"
        "before = clock.read()\n"
        "subprocess.run([sys.executable, '-c', sys.argv[1]], env=unmarked, check=True)\n"
        "print(clock.read() - before < float(sys.argv[2]) / 2 + time.process_time() - start)\n"
    )
    spender = f"import os\nif os.fork(): os._exit(0)\n{SPEND.replace('input()', 'pass')}"
    done = subprocess.run(
        [sys.executable, "-c", program, spender, str(SPENT_S)],
        env={name: value for name, value in os.environ.items() if name != reaper.MARK},
        cwd=ROOT,
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    assert sorted(done.stdout.split()) == ["True", "spent"]
