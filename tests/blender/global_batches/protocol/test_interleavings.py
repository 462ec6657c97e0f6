"""The protocol under any interleaving: what all rules keep, and what breaks without each.

`make test-batches SEEDS=30000` runs more worlds than the suite.
"""

from __future__ import annotations

import pytest

from blender.global_batches.protocol.order import Arrival, Assigned
from tests.blender.global_batches.protocol.dropped_rules import RULES, Rule, without
from tests.blender.global_batches.protocol.simulation import World


@pytest.mark.parametrize("order", [Arrival(), Assigned(3)], ids=["arrival", "assigned"])
def test_no_interleaving_breaks_an_invariant(batch_seeds: int, order: Arrival | Assigned) -> None:
    broken = {}
    for seed in range(batch_seeds):
        if kinds := World(seed, order).run():
            broken[seed] = dict(kinds)
    assert not broken


@pytest.mark.parametrize("rule", RULES.values(), ids=RULES)
def test_every_rule_is_needed(rule: Rule) -> None:
    with without(rule.changes):
        assert World(rule.seed).run()


def test_a_world_is_a_function_of_its_seed() -> None:
    first, second = World(7), World(7)
    assert first.run() == second.run()
    assert (first.turn, first.objects) == (second.turn, second.objects)


def test_the_worlds_have_what_they_are_made_for() -> None:
    """Zombies that are fenced, repeated requests that are late, names below the floor created anew."""
    worlds = [World(seed) for seed in range(60)]
    for world in worlds:
        world.run()
    kinds = {kind for world in worlds for kind, count in world.events.items() if count}
    assert kinds == {"fenced", "late", "ghost", "lost request", "lost answer", "replaced", "stalled"}
