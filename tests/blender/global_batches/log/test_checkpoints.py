"""Checkpoints and what they trim, where names and bytes are there that this release did not write."""

from __future__ import annotations

import json
import zlib

import pyarrow as pa
import pytest

from blender.global_batches.errors import DamagedLog
from blender.global_batches.log import checkpoints, floors, log, names
from blender.global_batches.log.client import Client
from blender.global_batches.log.log import Claim, StoredBatch
from blender.global_batches.log.objects import checkpoint_from_bytes, checkpoint_to_bytes
from blender.global_batches.log.state import Descriptor, LogState
from tests.blender.global_batches.log.memory_store import MemoryStore

EVERY, SEGMENT = 4, 3


def client() -> Client:
    return Client(checkpoint_versions=EVERY, segment_steps=SEGMENT)


def opened(store: MemoryStore) -> tuple[Claim, LogState]:
    claim, state = store.run(log.take(client(), "a", "host:1:x"))
    assert claim is not None
    return claim, state


def committed(store: MemoryStore, claim: Claim, state: LogState, *, maintained: bool = True) -> LogState:
    sequence = state.lane("a").sequence
    batch = Descriptor(0, f"batches/a/1/{sequence}", 9, 4, 5, b"%016d" % sequence)
    state = store.run(log.attempt(client(), claim, state, [StoredBatch(sequence, sequence, batch)]))
    return store.run(checkpoints.maintain(client(), state)) if maintained else state


def of_another_release(state: LogState) -> bytes:
    """A checkpoint of the state in other bytes: not compressed, and with a field that is not known here."""
    body = checkpoint_to_bytes(state)
    table = pa.ipc.open_stream(body[:-4]).read_all()
    content = json.loads(table.schema.metadata[b"state"]) | {"written_by": "another release"}
    schema = table.schema.with_metadata({b"state": json.dumps(content, indent=1).encode()})
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, schema) as stream:
        stream.write_table(table.cast(schema))
    other = bytes(sink.getvalue())
    return other + zlib.crc32(other).to_bytes(4, "little")


def test_a_checkpoint_in_the_bytes_of_another_release_is_taken() -> None:
    store = MemoryStore()
    claim, state = opened(store)
    while state.version < EVERY:
        state = committed(store, claim, state, maintained=False)
    store.run(checkpoints.write(client(), state))
    whole = checkpoint_from_bytes(store.objects[names.checkpoint(EVERY)], "ours")
    other = of_another_release(whole)
    assert other != store.objects[names.checkpoint(EVERY)]
    store.objects[names.checkpoint(EVERY)] = other
    state = store.run(checkpoints.maintain(client(), state))
    assert store.objects[names.checkpoint(EVERY)] == other
    while state.version < 3 * EVERY:
        state = committed(store, claim, state)
        assert store.run(log.load(client())).content == state.content
    assert store.run(floors.current(client())).version == 2 * EVERY


def test_a_damaged_checkpoint_is_no_reason_to_delete_the_versions_behind_it() -> None:
    store = MemoryStore()
    claim, state = opened(store)
    while state.version < EVERY:
        state = committed(store, claim, state)
    store.objects[names.checkpoint(EVERY)] = store.objects[names.checkpoint(EVERY)][:-9]
    while state.version < 2 * EVERY:
        state = committed(store, claim, state, maintained=False)
    with pytest.raises(DamagedLog, match=r"checkpoint/0{19}4 is damaged"):
        store.run(checkpoints.maintain(client(), state))
    versions = [name for name in store.objects if name.startswith(names.LOG)]
    assert len(versions) == 2 * EVERY
    assert store.run(floors.current(client())).version == 0
    del store.objects[names.checkpoint(EVERY)]  # a copy is not needed: nothing behind it is gone
    assert store.run(log.load(client())).version == 2 * EVERY


def test_trimming_leaves_names_alone_that_the_log_did_not_give() -> None:
    store = MemoryStore()
    others = {
        f"{names.LOG}notes.txt",
        f"{names.log(1)}.part",
        f"{names.LOG}backup/{1:020}",
        f"{names.LOG}{1:021}",
        f"{names.LOG}1",
        f"{names.CHECKPOINTS}copy/{4:020}",
    }
    store.objects |= dict.fromkeys(others, b"theirs")
    claim, state = opened(store)
    while state.version < 4 * EVERY:
        state = committed(store, claim, state)
    assert others <= store.objects.keys()
    assert names.log(1) not in store.objects
    assert names.checkpoint(EVERY) not in store.objects
    assert store.run(log.load(client())).content == state.content
