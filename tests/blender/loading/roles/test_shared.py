"""Ranks that share batches stay together while they read, and one that stops reading holds nobody up."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator

import pytest

from blender.call_context import CallContext, use_context
from blender.chunks import Piece
from blender.errors import Stalled
from blender.loading.roles import shared
from blender.loading.roles.constructor import View
from blender.loading.roles.shared import LEAD_STEPS, SharedBatches
from blender.loading.runtime.threads import Mailbox
from blender.loading.tree import Consumer

FIRST, SECOND, OTHER = (
    Consumer(rank, bucket, 0, 1, needs_tokens=True) for rank, bucket in ((0, 0), (1, 0), (2, 1))
)


class Constructor:
    """Makes batches of their own numbers."""

    def __init__(self) -> None:
        self.made: list[tuple[int, int]] = []

    def make(self, offset: int, bucket: int) -> dict[View, int]:
        self.made.append((offset, bucket))
        return {View(Piece(), tokens=True): offset}


@pytest.fixture
def constructor() -> Constructor:
    return Constructor()


@pytest.fixture
def batches(constructor: Constructor) -> Iterator[SharedBatches[int]]:
    mailbox = Mailbox(constructor, "constructor")
    yield SharedBatches(mailbox, [FIRST, SECOND, OTHER], "row", lambda _: 1)
    mailbox.close()


def read(batches: SharedBatches[int], rank: int, steps: range) -> None:
    for offset in steps:
        assert batches.batch(offset, rank) == offset
        batches.taken(offset, rank)


def test_a_rank_waits_for_one_that_is_many_steps_behind_and_reads(
    batches: SharedBatches[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shared, "_PATIENCE_S", 30.0)
    read(batches, 1, range(1))
    read(batches, 0, range(LEAD_STEPS + 1))
    read(batches, 2, range(LEAD_STEPS + 5))  # another bucket is not waited for
    with pytest.raises(Stalled, match=f"step {LEAD_STEPS + 1}"), use_context(CallContext(0.05)):
        batches.batch(LEAD_STEPS + 1, 0)
    ahead = threading.Thread(target=read, args=(batches, 0, range(LEAD_STEPS + 1, 2 * LEAD_STEPS)))
    ahead.start()
    for offset in range(1, LEAD_STEPS):
        assert ahead.is_alive()
        read(batches, 1, range(offset, offset + 1))
    ahead.join(10)
    assert not ahead.is_alive()


def test_a_rank_that_takes_nothing_holds_nobody_up(
    batches: SharedBatches[int], constructor: Constructor, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shared, "_PATIENCE_S", 30.0)
    read(batches, 0, range(2 * LEAD_STEPS))  # the other has not begun
    read(batches, 1, range(LEAD_STEPS // 2))  # and reads what was kept for it
    monkeypatch.setattr(shared, "_PATIENCE_S", 0.2)
    began = time.monotonic()
    read(batches, 0, range(2 * LEAD_STEPS, 5 * LEAD_STEPS))  # it has stopped
    assert 0.2 <= time.monotonic() - began < 5  # one wait, not one for each step
    assert len(constructor.made) == 5 * LEAD_STEPS


@pytest.mark.parametrize("for_late", [True, False])
def test_batches_are_held_for_ranks_that_have_not_read_if_such_may_come(
    constructor: Constructor, for_late: bool
) -> None:
    mailbox = Mailbox(constructor, "constructor")
    batches: SharedBatches[int] = SharedBatches(
        mailbox, [FIRST, SECOND], "row", lambda _: 1, for_late=for_late
    )
    read(batches, 0, range(5))
    assert batches.held == (5 if for_late else 0)
    read(batches, 1, range(3))
    read(batches, 0, range(5, 7))
    assert batches.held == (4 if for_late else 2)  # the second rank reads now, and the first is past step 2
    mailbox.close()


def test_a_late_rank_waits_for_none_that_took_the_batch_before(
    constructor: Constructor, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shared, "_PATIENCE_S", 30.0)
    mailbox, n = Mailbox(constructor, "constructor"), 2 * LEAD_STEPS
    batches: SharedBatches[int] = SharedBatches(mailbox, [FIRST, SECOND], "row", lambda _: 1, memory_bytes=n)
    with use_context(CallContext(20)):
        read(batches, 0, range(3 * n))
        read(batches, 1, range(3 * n))  # of which most are made again, for it alone
    assert batches.held == 0
    mailbox.close()
