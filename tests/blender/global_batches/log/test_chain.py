"""The head of a chain."""

from __future__ import annotations

import hypothesis.strategies as st
from hypothesis import given

from blender.global_batches.log import chain, names
from blender.global_batches.log.operations import Get
from tests.blender.global_batches.log.memory_store import MemoryStore, Stepped


@given(st.integers(0, 200), st.data())
def test_the_head_is_found_from_any_record(length: int, data: st.DataObject) -> None:
    store = MemoryStore()
    store.objects = {names.floor(index): f"{index}".encode() for index in range(1, length + 1)}
    known = data.draw(st.integers(0, length))
    index, record = store.run(chain.head(names.floor, known))
    assert index == length
    assert record == (None if known == length else f"{length}".encode())


def test_a_record_that_comes_meanwhile_may_be_missed_and_those_before_may_not() -> None:
    store = MemoryStore()
    store.objects = {names.floor(index): b"old" for index in range(1, 10)}
    search = Stepped(store, chain.head(names.floor, 0)).until(Get, names.floor(7))
    store.objects[names.floor(10)] = b"new"
    index, _ = search.finish()
    assert index in (9, 10)


def test_few_reads_find_the_head_of_a_long_chain() -> None:
    class LongChain(MemoryStore):
        reads = 0

        def answer(self, operation: Get) -> bytes | None:  # type: ignore[override]
            self.reads += 1
            return b"record" if names.number(operation.name) <= 1_000_000 else None

    store = LongChain()
    assert store.run(chain.head(names.floor, 0)) == (1_000_000, b"record")
    assert store.reads <= 41
