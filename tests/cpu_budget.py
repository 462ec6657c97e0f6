"""CPU seconds of the tests by group, compared with a recorded budget.

A group is a folder below `tests`, two levels deep, or a file at its root; fixtures of the whole session
(Spark, the small pipeline's lake, servers) are a group of their own, because the order of the files decides
who starts them. `--cpu-budget NAME` prints the groups at the end of a complete run, names each that grew by
more than a fifth, and ends a run that needs over a quarter more than its budget with status 8.
`--record-cpu-budget` writes the figures instead.

The seconds are those of the test process and of all that it started (`tests.cpu_clock`). A busy machine
stretches them (two threads on one core, a lower clock), so each file is preceded by a yardstick, a few
milliseconds of fixed work, and all figures are divided by how much longer the yardstick took than when the
budget was recorded.
"""

from __future__ import annotations

import contextlib
import time
import tomllib
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Any

import pytest

from tests.cpu_clock import CpuClock

FILE = Path(__file__).with_suffix(".toml")
TESTS = Path(__file__).parent
SESSION = "session fixtures"
OVER_BUDGET = 8  # exit status; pytest uses 0 to 5
GROUP_GROWTH, TOTAL_GROWTH = 0.20, 0.25
HEADROOM = 1.15  # of a recorded budget over the run: two runs of the same tests differ by up to a tenth
COMPARABLE = 0.8, 1.25  # how much slower a machine may be; another one spends its seconds otherwise
SMALL_S = 5.0  # below this growth a group is noise
HEADER = "# CPU seconds of the tests by group. Written by: make test RECORD=1, make test-rest RECORD=1\n"


@dataclass
class Budget:
    """CPU seconds by group, and the yardstick's milliseconds on the machine that spent them."""

    yardstick_ms: float
    groups: dict[str, float] = field(default_factory=dict)

    @property
    def total(self) -> float:
        return sum(self.groups.values())


@dataclass(frozen=True)
class Comparison:
    """A run's groups in the seconds of the machine that recorded the budget."""

    run: Budget
    budget: Budget

    @property
    def slowdown(self) -> float:
        """How much slower this machine is than the one that recorded the budget."""
        return self.run.yardstick_ms / self.budget.yardstick_ms

    @property
    def groups(self) -> dict[str, float]:
        return {group: seconds / self.slowdown for group, seconds in self.run.groups.items()}

    @property
    def grown(self) -> dict[str, float]:
        """The groups beyond their budget, and by how many seconds."""
        growth = {
            group: seconds - self.budget.groups.get(group, 0.0) for group, seconds in self.groups.items()
        }
        return {
            group: more
            for group, more in sorted(growth.items(), key=lambda item: -item[1])
            if more > max(SMALL_S, GROUP_GROWTH * self.budget.groups.get(group, 0.0))
        }

    @property
    def total(self) -> float:
        return sum(self.groups.values())

    @property
    def is_comparable(self) -> bool:
        return COMPARABLE[0] <= self.slowdown <= COMPARABLE[1]

    @property
    def is_over(self) -> bool:
        return self.is_comparable and self.total > (1 + TOTAL_GROWTH) * self.budget.total


def group_of(path: Path) -> str:
    """Return the group of a test file: `blender/serving` of tests/blender/serving/test_server.py."""
    parts = path.relative_to(TESTS).with_suffix("").parts
    return "/".join(parts[: min(2, len(parts) - 1)]) or parts[0]


def yardstick_ms() -> float:
    """CPU milliseconds of a fixed piece of work in this thread."""
    start = time.thread_time()
    numbers = {n: str(n) for n in range(60_000)}
    sorted(numbers.values())
    return (time.thread_time() - start) * 1000


class Meter:
    """Counts the CPU seconds of one test process by group."""

    def __init__(self, clock: CpuClock) -> None:
        self.clock = clock
        self.seconds: Counter[str] = Counter()
        self.yardsticks: list[float] = []
        self._file: Path | None = None
        self._start = 0.0
        self._of_session = 0.0

    def enter(self, file: Path | None) -> None:
        """End the group of the file before, and begin that of `file`."""
        if file == self._file:
            return
        now = self.clock.read()
        if self._file is not None:
            self.seconds[group_of(self._file)] += max(0.0, now - self._start - self._of_session)
        self._of_session, self._file = 0.0, file
        if file is not None:
            self.yardsticks.append(yardstick_ms())
            self._start = self.clock.read()

    @contextlib.contextmanager
    def session_fixture(self) -> Iterator[None]:
        """Count what a fixture of the session spends under its own group."""
        start, before = self.clock.read(), self._of_session
        yield
        nested = self._of_session - before
        spent = max(0.0, self.clock.read() - start - nested)
        self._of_session += spent
        self.seconds[SESSION] += spent

    def output(self) -> dict[str, Any]:
        return {"seconds": dict(self.seconds), "yardsticks": self.yardsticks}


class CpuBudget:
    """The plugin: meters in the test processes, one table at the end."""

    def __init__(self, config: pytest.Config, name: str, *, record: bool) -> None:
        self._config, self._name, self._record = config, name, record
        self._meter = Meter(CpuClock())
        self._outputs: list[dict[str, Any]] = []
        self._n_lost = 0  # workers that crashed

    def pytest_runtest_protocol(self, item: pytest.Item) -> None:
        self._meter.enter(item.path)

    @pytest.hookimpl(wrapper=True)
    def pytest_fixture_setup(self, fixturedef: pytest.FixtureDef[Any]) -> Iterator[None]:
        if fixturedef.scope != "session":
            return (yield)
        with self._meter.session_fixture():
            return (yield)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtestloop(self) -> Iterator[None]:
        with self._meter.clock.running():
            return (yield)

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        self._meter.enter(None)
        if hasattr(self._config, "workeroutput"):
            self._config.workeroutput["cpu"] = self._meter.output()
            return
        if self._meter.yardsticks:  # no workers: the tests ran in this process
            self._outputs.append(self._meter.output())
        comparison = self.comparison()
        if comparison and comparison.is_over:
            session.exitstatus = OVER_BUDGET
        if comparison and self._record and session.exitstatus == pytest.ExitCode.OK:
            groups = {group: HEADROOM * seconds for group, seconds in comparison.run.groups.items()}
            write_budgets(read_budgets() | {self._name: Budget(comparison.run.yardstick_ms, groups)})

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any) -> None:
        if output := getattr(node, "workeroutput", {}).get("cpu"):
            self._outputs.append(output)
        else:
            self._n_lost += 1

    def comparison(self) -> Comparison | None:
        """The whole run beside its budget; None if a part was not counted or there is no budget."""
        if self._n_lost or not self._outputs:
            return None
        seconds: Counter[str] = Counter()
        for output in self._outputs:
            seconds.update(output["seconds"])
        yardsticks = [value for output in self._outputs for value in output["yardsticks"]]
        run = Budget(median(yardsticks), dict(seconds))
        budget = run if self._record else read_budgets().get(self._name)
        return Comparison(run, budget) if budget else None

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        if hasattr(self._config, "workerinput"):
            return
        terminalreporter.section("CPU seconds by group")
        comparison = self.comparison()
        if comparison is None:
            terminalreporter.write_line(
                f"Not compared: {self._n_lost} workers crashed, or {FILE.name} has no budget `{self._name}`."
            )
            return
        for line in table(comparison):
            terminalreporter.write_line(line)


def table(comparison: Comparison) -> Iterator[str]:
    """The lines of the table: groups from the most expensive on, then what grew."""
    budgets = comparison.budget.groups
    for group, seconds in sorted(comparison.groups.items(), key=lambda item: -item[1]):
        if max(seconds, budgets.get(group, 0.0)) >= SMALL_S:
            yield f"{seconds:8.1f} of {budgets.get(group, 0.0):8.1f}  {group}"
    yield f"{comparison.total:8.1f} of {comparison.budget.total:8.1f}  in all"
    yield (
        "These are seconds of the machine that recorded the budget; "
        f"this one took {comparison.slowdown:.2f} times as long for the same work "
        f"({comparison.run.yardstick_ms:.2f} ms)."
    )
    if not comparison.is_comparable:
        yield "That is another machine, so the budget says nothing."
        return
    for group, more in comparison.grown.items():
        yield f"Grew by more than {GROUP_GROWTH:.0%}: {group}, by {more:.1f} CPU s"
    if comparison.is_over:
        yield (
            f"The tests need over {TOTAL_GROWTH:.0%} more CPU than their budget in {FILE.name}. Make the "
            "groups above cheaper, or record a new budget (RECORD=1) and say in the commit what they buy."
        )


def read_budgets(file: Path = FILE) -> dict[str, Budget]:
    """The recorded budgets by name; none if there is no file."""
    if not file.exists():
        return {}
    return {name: Budget(**entry) for name, entry in tomllib.loads(file.read_text()).items()}


def write_budgets(budgets: Mapping[str, Budget], file: Path = FILE) -> None:
    """Write the budgets by name, groups in alphabetical order."""
    lines = [HEADER]
    for name, budget in sorted(budgets.items()):
        lines.append(f"[{name}]\nyardstick_ms = {budget.yardstick_ms:.2f}\n\n[{name}.groups]\n")
        lines += [f'"{group}" = {seconds:.1f}\n' for group, seconds in sorted(budget.groups.items())]
        lines.append("\n")
    file.write_text("".join(lines).rstrip() + "\n")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--cpu-budget", metavar="NAME", help=f"compare CPU seconds with a budget of {FILE.name}")
    parser.addoption("--record-cpu-budget", action="store_true", help="write them as the new budget")


def pytest_configure(config: pytest.Config) -> None:
    name = config.getoption("--cpu-budget")
    is_complete = config.args_source is pytest.Config.ArgsSource.TESTPATHS
    if name and is_complete and Path("/proc/self/stat").exists():  # elsewhere orphans cannot be counted
        record = config.getoption("--record-cpu-budget")
        config.pluginmanager.register(CpuBudget(config, name, record=record), "cpu-budget-meter")
