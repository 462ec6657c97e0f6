"""The rules of the protocol, each as the lines that hold it and the lines that a world without it has.

    rule = RULES["epochs"]
    with without(rule.changes):
        World(rule.seed).run()                      # breaks an invariant

A test of the test: were an interleaving unable to tell a protocol without a rule from the whole, its silence
would prove nothing.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import TypeAlias

from blender.global_batches.log import checkpoints, floors, log, marks, reclaim, runs
from tests.blender.global_batches.log import lifecycle

Changes: TypeAlias = tuple[tuple[ModuleType, str, str], ...]
"""Modules, with lines of each and what stands there instead."""


@dataclass(frozen=True)
class Rule:
    """The lines that hold a rule, and what stands there without it."""

    seed: int
    """The first world of arrival order that breaks an invariant without the rule."""
    changes: Changes


RULES = {
    "read-back": Rule(
        seed=0,
        changes=(
            (log, "verdict = yield from create(", "verdict = yield from _believed("),
            (
                log,
                "def _claimed_lane(",
                "def _believed(name, body):\n"
                "    from blender.global_batches.log.operations import Create, Creation\n\n"
                "    stored = (yield Create(name, body)) is Creation.STORED\n"
                "    return Verdict.OURS if stored else Verdict.NOT_OURS\n\n\n"
                "def _claimed_lane(",
            ),
            (
                log,
                "        return (yield from advance(client, state))\n    floor",
                "        newer, before = (yield from advance(client, state)), state.lane(lane)\n"
                "        if newer.lane(lane).epoch == before.epoch:  # it believes that it added nothing\n"
                "            newer = replace(newer, lanes={**newer.lanes, lane: before})\n"
                "        return newer\n"
                "    floor",
            ),
        ),
    ),
    "floor after a create": Rule(seed=0, changes=((log, "if delta.version <= floor.version:", "if False:"),)),
    "floor after a create, off by one": Rule(
        seed=0, changes=((log, "if delta.version <= floor.version:", "if delta.version < floor.version:"),)
    ),
    "epochs": Rule(
        seed=0,
        changes=(
            (log, "if (lane.epoch, lane.incarnation) != (claim.epoch, claim.incarnation):", "if False:"),
        ),
    ),
    "incarnations": Rule(
        seed=1,
        changes=(
            (
                log,
                "if (lane.epoch, lane.incarnation) != (claim.epoch, claim.incarnation):",
                "if lane.epoch != claim.epoch:",
            ),
            (
                log,
                "if (after.epoch, after.incarnation) == (claim.epoch, incarnation):",
                "if after.epoch == claim.epoch:",
            ),
        ),
    ),
    "fence rebuilt after a lost race": Rule(
        seed=5,
        changes=(
            (
                log,
                "    while True:\n"
                "        state = yield from checkpoints.recall(client, state, lane)\n"
                "        before = state.lane(lane)\n",
                "    state = yield from checkpoints.recall(client, state, lane)\n"
                "    before = state.lane(lane)\n"
                "    while True:\n",
            ),
        ),
    ),
    "checkpoint read before its floor": Rule(
        seed=1,
        changes=(
            (checkpoints, "if version <= 0 or (yield from read(version)) is None:", "if version <= 0:"),
        ),
    ),
    "segment read back before its checkpoint": Rule(
        seed=33,
        changes=(
            (checkpoints, "import Routine, delete,", "import Routine, create, delete,"),
            (checkpoints, "yield from ensure(segment_name(", "yield from create(segment_name("),
        ),
    ),
    "walk confirmed by the floor": Rule(
        seed=0, changes=((log, "if floor.version > state.version:", "if False:"),)
    ),
    "floor after a poll that read nothing": Rule(
        seed=0,
        changes=((log, "if floor.version > state.version:", "if deltas and floor.version > state.version:"),),
    ),
    "finished lane looked up": Rule(
        seed=0,
        changes=(
            (
                checkpoints,
                "    if not state.finished_lanes or lane in state.lanes",
                "    if True or lane in state.lanes",
            ),
        ),
    ),
    "finished lane read back before its checkpoint": Rule(
        seed=46,
        changes=(
            (checkpoints, "import Routine, delete,", "import Routine, create, delete,"),
            (checkpoints, "yield from ensure(names.finished_lane(", "yield from create(names.finished_lane("),
        ),
    ),
    "floor as a chain": Rule(
        seed=2,
        changes=(
            (floors, "import Routine, Verdict, create\n", "import Put, Routine, Verdict, get\n"),
            (
                floors,
                "index, body = yield from chain.head(names.floor, client.floor_index)",
                "index, body = 1, (yield from get(names.floor(1)))",
            ),
            (
                floors,
                "    verdict = yield from create(names.floor(client.floor_index + 1), floor_to_bytes(floor))",
                "    verdict = Verdict.OURS\n    yield Put(names.floor(1), floor_to_bytes(floor))",
            ),
        ),
    ),
}

LIFECYCLE_RULES = {
    "floor as a chain": Rule(seed=1, changes=RULES["floor as a chain"].changes),
    "checkpoint chosen after the takeover": Rule(
        seed=4,
        changes=(
            (lifecycle, "        start = 0\n", "        start, known = 0, dict(files)\n"),
            (lifecycle, "self.chosen_step(files, held_steps)", "self.chosen_step(known, held_steps)"),
        ),
    ),
    "file deleted before the mark moves": Rule(
        seed=49,
        changes=(
            (
                lifecycle,
                "        yield from self.delete_files(run, owner, held_steps.first_step)\n"
                "        yield from marks.hold(knows, run, owner, held_steps.marks)\n",
                "        yield from marks.hold(knows, run, owner, held_steps.marks)\n"
                "        yield from self.delete_files(run, owner, held_steps.first_step)\n",
            ),
        ),
    ),
    "a run stops `--all`": Rule(
        seed=2,
        changes=(
            (reclaim, "    if watermark is None:\n", "    if watermark is None or without_runs:\n"),
            (reclaim, "step if watermark is None else", "step if watermark is None or without_runs else"),
        ),
    ),
    "finished lanes read before the state": Rule(
        seed=8, changes=((reclaim, "newer = yield from log.advance(client, state)", "newer = state"),)
    ),
    "marks read again after the floor": Rule(
        seed=4,
        changes=(
            (reclaim, "return state, floor, (yield from marks.current(client))", "return state, floor, runs"),
        ),
    ),
    "floor read after a run opens": Rule(
        seed=0, changes=((marks, "if floor.step > min(checkpoints.values()):", "if False:"),)
    ),
    "floor not asked again at a takeover": Rule(
        seed=116, changes=((marks, "if before is None or not before.is_accepted:", "if True:"),)
    ),
    "a takeover inherits": Rule(
        seed=5,
        changes=(
            (
                marks,
                "checkpoints = before.checkpoints if before is not None else {START: start}",
                "checkpoints = {START: start}",
            ),
        ),
    ),
    "marks of a replaced process count for nothing": Rule(
        seed=0,
        changes=(
            (runs, "elif before is not None and before.owner == mark.owner:", "elif before is not None:"),
            (marks, "if run.owner != owner:", "if False:"),
        ),
    ),
    "a refused run closes itself": Rule(
        seed=0, changes=((marks, "yield from close(client, name, owner)  # or", "pass  # or"),)
    ),
    "floors that never fall": Rule(
        seed=4,
        changes=(
            (floors, "        return False  # it was made", "        pass  # it was made"),
            (floors, "replace(floor, version=version)", "replace(floor, version=version, step=0)"),
        ),
    ),
    "orphans by epoch": Rule(
        seed=0,
        changes=((reclaim, "is_past = progress.closed or sequence < progress.sequence", "is_past = True"),),
    ),
    "marks as a chain": Rule(
        seed=1,
        changes=(
            (
                marks,
                "import Routine, Verdict, create, get_all",
                "import Put, Routine, Verdict, create, get, get_all",
            ),
            (
                marks,
                "    if client.runs.marks < client.floor.marks:\n",
                "    last = {}\n"
                "    for run in ('a', 'b', 'c0', 'c1', 'c2', 'c3'):\n"
                "        body = yield from get(f'mark/{run}')\n"
                "        mark = None if body is None else mark_from_bytes(body, run)\n"
                "        if mark is not None and mark.kind != 'close':\n"
                "            last[run] = Run(mark.owner, mark.checkpoints, mark.kind == 'hold')\n"
                "    client.runs = Runs(0, last)\n"
                "    return client.runs\n"
                "    if client.runs.marks < client.floor.marks:\n",
            ),
            (
                marks,
                "    verdict = yield from create(names.mark(client.runs.marks + 1), mark_to_bytes(mark))\n",
                "    yield Put(f'mark/{mark.run}', mark_to_bytes(mark))\n"
                "    index = 10**12 + __import__('zlib').crc32(mark_to_bytes(mark))\n"
                "    yield from create(names.mark(index), mark_to_bytes(mark))\n"
                "    held = {mark.run: Run(mark.owner, mark.checkpoints)}\n"
                "    client.runs = Runs(0, {**client.runs.open, **held})\n"
                "    return True\n"
                "    verdict = Verdict.OURS\n",
            ),
        ),
    ),
}


@contextmanager
def without(changes: Changes) -> Iterator[None]:
    """Run the changed modules in place of the package's."""
    sources: dict[ModuleType, str] = {}
    for module, old, new in changes:
        source = sources.get(module) or Path(module.__file__ or "").read_text()
        assert source.count(old) == 1, f"{module.__name__} no longer has the lines of this rule: {old}"
        sources[module] = source.replace(old, new)
    originals = {module: dict(vars(module)) for module in sources}
    try:
        for module, source in sources.items():
            exec(compile(source, f"{module.__name__}, changed", "exec"), module.__dict__)
        yield
    finally:
        for module, original in originals.items():
            vars(module).clear()
            vars(module).update(original)
