"""CPU and memory of real processes: children that burn, end, and are reaped.

The test process may have an idle Spark of its own below it, so figures of the JVM and its workers are
compared with what they were before.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from bench.processes import ByKind, Meter, Span

pytestmark = pytest.mark.process

ROOT = Path(__file__).parents[2]

BURN = """
import sys, time
def burn(seconds):
    end = time.process_time() + seconds
    while time.process_time() < end:
        pass
"""
CLOCK_S = 0.03  # what the kernel's clock, in hundredths, may miss in a few readings
STARTUP_S = 0.15  # CPU seconds an interpreter takes to start, and more


def python(code: str, *arguments: str, program: str = sys.executable) -> list[str]:
    return [program, "-I", "-S", "-c", BURN + code, *arguments]


@contextmanager
def talking(command: list[str]) -> Iterator[subprocess.Popen[str]]:
    """A process one talks to line by line; it is ended by the end of its input."""
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        yield process


def java(folder: Path) -> str:
    """An interpreter whose process is called `java`."""
    program = folder / "java"
    program.symlink_to(Path(sys.executable).resolve())
    return str(program)


def hear(process: subprocess.Popen[str], word: str) -> None:
    assert process.stdout is not None
    assert process.stdout.readline().strip() == word


def say(process: subprocess.Popen[str]) -> None:
    assert process.stdin is not None
    process.stdin.write("go on\n")
    process.stdin.flush()


def sampled(meter: Meter) -> None:
    """Return once the meter has seen what was held when this was called."""
    for _ in range(2):  # the first sample may have begun before
        before = meter.own_cpu_s
        while meter.own_cpu_s == before:
            time.sleep(0.01)


def test_a_child_that_came_and_went_between_two_borders_is_not_lost() -> None:
    with Meter() as meter:
        meter.begin("burning")
        subprocess.run(python("burn(0.4)"), check=True)
        meter.begin("idle")
        time.sleep(0.1)
    start, burning, idle = meter.spans
    assert (start.name, burning.name, idle.name) == ("start", "burning", "idle")
    assert 0.4 - CLOCK_S <= burning.cpu_s.driver < 0.4 + 2 * STARTUP_S
    assert idle.cpu_s.driver < 0.1
    assert burning.wall_s >= 0.4


def test_time_of_a_living_child_is_counted_once_also_when_it_is_reaped_later() -> None:
    code = "burn(0.3); print('burnt', flush=True); sys.stdin.readline()"
    with Meter() as meter:
        meter.begin("alive")
        with talking(python(code)) as child:
            hear(child, "burnt")
            meter.begin("reaped")
        meter.begin("after")
    _, alive, reaped, after = meter.spans
    assert alive.cpu_s.driver >= 0.3 - CLOCK_S
    assert reaped.cpu_s.driver < STARTUP_S
    assert abs(after.cpu_s.driver) < STARTUP_S


def test_the_jvm_and_its_workers_are_told_apart(tmp_path: Path) -> None:
    """A process called `java` stands for the JVM; one worker it has reaped, one is still alive."""
    code = """
import subprocess
python, ended, living = sys.argv[1:]
burn(0.2)
subprocess.run([python, "-I", "-S", "-c", ended])
worker = subprocess.Popen([python, "-I", "-S", "-c", living], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
worker.stdout.readline()
print("ready", flush=True)
sys.stdin.readline()
worker.communicate()
"""
    ended = BURN + "burn(0.5)"
    living = BURN + "burn(0.3); print('burnt', flush=True); sys.stdin.readline()"
    command = python(code, sys.executable, ended, living, program=java(tmp_path))
    with Meter(sample_s=0.05) as meter:
        meter.begin("work")
        with talking(command) as jvm:
            hear(jvm, "ready")
            sampled(meter)
            meter.begin("rest")
            say(jvm)
    work = meter.spans[1].cpu_s
    assert 0.2 - CLOCK_S <= work.jvm < 0.2 + 3 * STARTUP_S  # less than with either worker's
    assert 0.8 - CLOCK_S <= work.workers < 0.8 + 3 * STARTUP_S
    assert work.driver < 0.2
    assert meter.spans[1].peak.jvm > meter.spans[0].peak.jvm
    assert meter.spans[1].peak.workers > meter.spans[0].peak.workers


@pytest.mark.parametrize("end", ["os.kill(os.getpid(), signal.SIGKILL)", "os._exit(1)"])
def test_a_worker_that_dies_is_counted(end: str) -> None:
    """PySpark's daemon ignores the end of its workers before it forks the first, as this process does."""
    code = f"""{BURN}
import os, signal
from factory.spark.daemon import reap_workers
reap_workers()
signal.signal(signal.SIGCHLD, signal.SIG_IGN)
worker = os.fork()
if worker == 0:
    burn(0.5)
    {end}
try:
    while True:
        os.kill(worker, 0)
        time.sleep(0.01)
except ProcessLookupError:
    print("dead", flush=True)
sys.stdin.readline()
"""
    with Meter() as meter:
        meter.begin("work")
        with talking([sys.executable, "-c", code]) as daemon:
            hear(daemon, "dead")
            meter.begin("rest")
    _, work, rest = meter.spans
    assert 0.5 - CLOCK_S <= work.cpu_s.driver < 0.5 + 2 * STARTUP_S
    assert rest.cpu_s.driver > -CLOCK_S


def test_a_worker_that_its_daemon_leaves_is_counted() -> None:
    """The daemon ends its workers by a signal and exits at once."""
    code = f"""{BURN}
import os, signal
from factory.spark.daemon import reap_workers
reap_workers()
signal.signal(signal.SIGCHLD, signal.SIG_IGN)
read, write = os.pipe()
worker = os.fork()
if worker == 0:
    burn(0.5)
    os.write(write, b"burnt")
    signal.pause()
os.read(read, 5)
os.kill(worker, signal.SIGTERM)
"""
    with Meter() as meter:
        meter.begin("work")
        subprocess.run([sys.executable, "-c", code], check=True)
    assert 0.5 - CLOCK_S <= meter.spans[1].cpu_s.driver < 0.5 + 2 * STARTUP_S


def test_the_peak_belongs_to_the_span_that_held_the_memory() -> None:
    """The meter runs in a fresh process: the memory of the process of the tests shrinks when it likes."""
    megabyte = 1_000_000
    holding_code = (
        f"held = bytearray(b'x') * {100 * megabyte}; print('held', flush=True); sys.stdin.readline()"
    )
    code = f"""
import json
from bench.processes import Meter
from tests.bench.test_processes import hear, python, sampled, talking
with Meter(sample_s=0.05) as meter:
    sampled(meter)
    meter.begin("holding")
    with talking(python({holding_code!r})) as child:
        hear(child, "held")
        sampled(meter)
    meter.begin("after")
    sampled(meter)
print(json.dumps([span.peak.driver for span in meter.spans]))
"""
    measured = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, cwd=ROOT)
    before, holding, after = json.loads(measured.stdout)
    assert holding >= before + 95 * megabyte
    assert after <= holding - 95 * megabyte


def test_a_child_that_the_jvm_is_spawning_is_not_counted(tmp_path: Path) -> None:
    """It has been forked and is not yet another program: its memory is the JVM's."""
    code = """
import os
held = bytearray(b'x') * 50_000_000
child = os.fork()
if child == 0:
    sys.stdin.readline()
    os._exit(0)
print("forked", flush=True)
os.waitpid(child, 0)
"""
    with Meter(sample_s=0.05) as meter:
        sampled(meter)
        before = meter.spans[0].peak
        meter.begin("starting")
        with talking(python(code, program=java(tmp_path))) as jvm:
            hear(jvm, "forked")
            meter.begin("spawning")
            sampled(meter)
            meter.begin("after")
            say(jvm)
    spawning = meter.spans[2].peak
    assert spawning.jvm >= before.jvm + 45_000_000
    assert spawning.workers < before.workers + 10_000_000  # the child's half of the pages is 25 MB


def test_what_sampling_costs_is_in_no_span() -> None:
    with Meter(sample_s=0.001) as meter:
        while meter.own_cpu_s < 0.3:
            time.sleep(0.02)
    assert meter.spans[0].cpu_s.driver < 0.15


def test_spans_add_seconds_and_keep_the_higher_peak() -> None:
    total = Span("filters", 1.0, ByKind(0.5, 2.0, 0.25), ByKind(10, 100, 5))
    total.add(Span("more", 2.0, ByKind(0.5, 1.0, 0.75), ByKind(30, 70, 20)))
    assert (total.name, total.wall_s) == ("filters", 3.0)
    assert total.cpu_s == ByKind(1.0, 3.0, 1.0)
    assert total.peak == ByKind(30, 70, 20)
