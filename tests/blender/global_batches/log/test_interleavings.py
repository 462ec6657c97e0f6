"""The protocol under any interleaving: what all rules keep, and what breaks without each.

`make test-batches SEEDS=30000` runs more worlds than the suite.
"""

from __future__ import annotations

import re

import pytest

from blender.global_batches.log.step_order import Arrival, Assigned
from tests.blender.global_batches.log.dropped_rules import LIFECYCLE_RULES, RULES, Rule, without
from tests.blender.global_batches.log.simulation import World
from tests.blender.lakes import ROOT

# Zombies that are fenced, repeated requests that are late, names below the floor created anew, ...
EVENTS = {"fenced", "late", "ghost", "lost request", "lost answer", "replaced", "stalled"}


@pytest.mark.invariant(
    "The log of a namespace stays consistent under crashes, takeovers and lost, repeated or delayed "
    "requests: versions are contiguous and written once, a lane's rows appear once and in order, an "
    "acknowledged batch is visible, all readers see one sequence, and a checkpoint is the fold of the "
    "log. No rule of the protocol can be left out."
)
@pytest.mark.parametrize("order", [Arrival(), Assigned(3)], ids=["arrival", "assigned"])
def test_no_interleaving_breaks_an_invariant(batch_seeds: int, order: Arrival | Assigned) -> None:
    broken, events = {}, set()
    for seed in range(batch_seeds):
        world = World(seed, order)
        if kinds := world.run():
            broken[seed] = dict(kinds)
        events |= {kind for kind, count in world.events.items() if count}
    assert not broken
    assert events - {"recalled"} == EVENTS
    assert ("recalled" in events) == isinstance(order, Arrival)  # a finished lane that is opened again


@pytest.mark.invariant(
    "The log of a namespace stays consistent under crashes, takeovers and lost, repeated or delayed "
    "requests: versions are contiguous and written once, a lane's rows appear once and in order, an "
    "acknowledged batch is visible, all readers see one sequence, and a checkpoint is the fold of the "
    "log. No rule of the protocol can be left out."
)
@pytest.mark.parametrize("rule", RULES.values(), ids=RULES)
def test_every_rule_is_needed(rule: Rule) -> None:
    with without(rule.changes):
        assert World(rule.seed).run()


def test_the_guide_has_every_rule_with_its_seed() -> None:
    tables = (ROOT / "docs" / "batches.md").read_text().split("| rule | why | seed |")[1:]
    rows = [row for table in tables for row in re.findall(r"^\| ([^|]+) \|.*\| (\d+) \|$", table, re.M)]
    rules = [*RULES.items(), *LIFECYCLE_RULES.items()]
    assert sorted(rows) == sorted((name, f"{rule.seed}") for name, rule in rules)


def test_a_floor_that_is_read_late_loses_acknowledged_batches() -> None:
    """Why a store must read after write; docs/batches.md says in how many worlds."""
    assert "acknowledged, and not visible" in World(4, stale_floors=True).run()


def test_a_world_is_a_function_of_its_seed() -> None:
    first, second = World(7), World(7)
    assert first.run() == second.run()
    assert (first.turn, first.objects) == (second.turn, second.objects)
