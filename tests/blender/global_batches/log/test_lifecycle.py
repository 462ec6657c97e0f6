"""Runs, marks and reclaimers under any interleaving: all rules together, and each one dropped.

`make test-batches SEEDS=30000` runs more worlds than the suite.
"""

from __future__ import annotations

import pytest

from blender.global_batches.log.step_order import Arrival, Assigned
from tests.blender.global_batches.log import lifecycle
from tests.blender.global_batches.log.dropped_rules import LIFECYCLE_RULES, Rule, without

WORLDS = 300
EVENTS = {
    *("fenced", "late", "ghost", "lost request", "lost answer", "replaced", "stalled"),
    *("refused", "taken over", "rolled back", "closed by an operator"),
}


@pytest.mark.invariant(
    "Reclaiming deletes no batch that an open run may ask for, under crashes, takeovers, rollbacks, zombies "
    "and lost, repeated or delayed requests: the floor never falls, a restart is never refused what its run "
    "held, and a quiet reclaimer leaves only live batches. No rule of the protocol can be left out."
)
def test_no_interleaving_deletes_a_live_batch(batch_seeds: int) -> None:
    breaches, events = {}, set()
    for seed in range(max(WORLDS, batch_seeds)):
        world = lifecycle.LifecycleWorld(
            seed, Arrival() if seed % 4 < 2 else Assigned(3)
        )  # odd seeds forget names
        if kinds := world.run():
            breaches[seed] = dict(kinds)
        events |= {kind for kind, count in world.events.items() if count}
    assert not breaches
    assert events >= EVENTS


@pytest.mark.invariant(
    "Reclaiming deletes no batch that an open run may ask for, under crashes, takeovers, rollbacks, zombies "
    "and lost, repeated or delayed requests: the floor never falls, a restart is never refused what its run "
    "held, and a quiet reclaimer leaves only live batches. No rule of the protocol can be left out."
)
@pytest.mark.parametrize("rule", LIFECYCLE_RULES.values(), ids=LIFECYCLE_RULES)
def test_every_rule_of_the_life_cycle_is_needed(rule: Rule) -> None:
    with without(rule.changes):
        assert lifecycle.LifecycleWorld(rule.seed).run()
