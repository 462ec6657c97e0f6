"""Whether durable batches are safe in a store, measured before any are written.

probe(open_store("s3://bucket/run7"))       # StoreFacts(winner_s=0.021, loser_s=0.048)

Of many concurrent creates of a name only one may win. Who reads a name after its create must find it, even if
it was missing the moment before.
"""

from __future__ import annotations

import os
import threading
import time
import uuid
from collections import Counter
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass

from blender.global_batches.errors import UnsafeStore
from blender.global_batches.log.operations import (
    Create,
    Creation,
    Routine,
    Verdict,
    create,
    delete,
    get,
    get_all,
)
from blender.global_batches.store.namespace_store import NamespaceStore
from factory.errors import MachineError

_CREATORS = 32
_NAMES = 8  # that are read before their create and after it
_START_S = 60.0  # for a process that cannot start that many threads
_BODY_BYTES = 1024  # as a small version of a log
_REMEDY = (
    "Batches would be lost without a word. Take a store with conditional writes (If-None-Match), or a folder "
    "on a local disk."
)
_STALE_REMEDY = (
    "Batches would be lost without a word. Take a store that reads after write, with no cache in front of "
    "it, or a folder on a local disk."
)


@dataclass(frozen=True)
class StoreFacts:
    """How long creates of one name took, of many at once."""

    winner_s: float
    loser_s: float
    """The median of the refused ones."""

    def to_json(self) -> dict[str, float]:
        """The fields, for a JSON object."""
        return asdict(self)

    @classmethod
    def from_json(cls, content: Mapping[str, float]) -> StoreFacts:
        """The inverse of `to_json`."""
        return cls(winner_s=float(content["winner_s"]), loser_s=float(content["loser_s"]))


@dataclass(frozen=True)
class _Attempt:
    """One create: its bytes, its answer and its time."""

    body: bytes
    creation: Creation
    seconds: float


def probe(store: NamespaceStore) -> StoreFacts:
    """Race 32 creates of one name, create it once more, then read other names after their creates.

    Leaves nothing behind. Raises UnsafeStore unless exactly one wins, its bytes stay, and every read finds
    earlier creates. The stored bytes decide an unclear answer of a create.
    """
    name = f"probe-{uuid.uuid4().hex}"
    attempts = _race(store, name)
    first_stored = store.run(get(name))
    late = _attempt(store, name, _body())
    last_stored = store.run(get(name))
    store.run(delete([name]))

    winner = _winner(store, attempts, first_stored)
    if late.creation is Creation.STORED or last_stored != winner.body:
        raise UnsafeStore(f"{store.uri} overwrites an object that a create-only put must keep. {_REMEDY}")
    refused = [attempt.seconds for attempt in [*attempts, late] if attempt.creation is Creation.TAKEN]
    _require_read_after_write(store)
    losers = sorted(refused or [late.seconds])
    return StoreFacts(winner_s=winner.seconds, loser_s=losers[len(losers) // 2])


def _race(store: NamespaceStore, name: str) -> list[_Attempt]:
    start = threading.Barrier(_CREATORS, timeout=_START_S)

    def attempt(body: bytes) -> _Attempt:
        try:
            start.wait()
        except threading.BrokenBarrierError as error:
            raise MachineError(
                f"The probe of {store.uri} could not run {_CREATORS} threads at once. Raise this process's "
                "limit of threads, then try again."
            ) from error
        return _attempt(store, name, body)

    with ThreadPoolExecutor(_CREATORS, thread_name_prefix="probe") as pool:
        # First something harmless: opening connections, and a refusal, are no part of the race.
        list(pool.map(lambda _: store.run(get(name)), range(_CREATORS)))
        return list(pool.map(attempt, [_body() for _ in range(_CREATORS)]))


def _require_read_after_write(store: NamespaceStore) -> None:
    bodies = {f"probe-{uuid.uuid4().hex}": _body() for _ in range(_NAMES)}
    names = tuple(bodies)
    store.run(get_all(names))  # a cache may keep for a while that a name is missing
    verdicts = {name: store.run(create(name, body)) for name, body in bodies.items()}
    answers = [dict(zip(names, store.run(get_all(names)), strict=True)) for _ in range(2)]
    store.run(delete(names))
    misses = [
        name
        for name, verdict in verdicts.items()
        if verdict is Verdict.OURS and any(answer[name] != bodies[name] for answer in answers)
    ]
    if misses:
        raise UnsafeStore(
            f"{store.uri} did not show {len(misses)} of {_NAMES} objects after it had confirmed their "
            f"creates. {_STALE_REMEDY}"
        )


def _winner(store: NamespaceStore, attempts: Sequence[_Attempt], stored: bytes | None) -> _Attempt:
    """The attempt that stored its bytes; raises UnsafeStore if another one was confirmed."""
    confirmed = [attempt for attempt in attempts if attempt.creation is Creation.STORED]
    if len(confirmed) > 1:
        raise UnsafeStore(
            f"{store.uri} confirmed {len(confirmed)} of {len(attempts)} concurrent creates of one name. "
            f"{_REMEDY}"
        )
    if stored is None:
        answers = Counter(attempt.creation.value for attempt in attempts)
        raise UnsafeStore(
            f"{store.uri} holds nothing after {len(attempts)} concurrent creates of one name "
            f"({', '.join(f'{count} {answer}' for answer, count in answers.items())}). {_REMEDY}"
        )
    winners = [attempt for attempt in confirmed or attempts if attempt.body == stored]
    if not winners:
        raise UnsafeStore(f"{store.uri} holds other bytes than those of the create that won. {_REMEDY}")
    return winners[0]


def _attempt(store: NamespaceStore, name: str, body: bytes) -> _Attempt:
    started = time.monotonic()
    creation = store.run(_single_create(name, body))
    return _Attempt(body, creation, time.monotonic() - started)


def _single_create(name: str, body: bytes) -> Routine[Creation]:
    creation: Creation = yield Create(name, body)
    return creation


def _body() -> bytes:
    return os.urandom(_BODY_BYTES)
