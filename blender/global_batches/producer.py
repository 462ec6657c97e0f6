"""A sequence of steps written to the lanes of a namespace, by one process or by several.

    producer = Producer("s3://bucket/run7", BlendProduction(open_blend("4f1c...")), lanes=[0, 1])
    producer.run()                                  # until the data end; its lanes are finished then
    producer.lanes[0].writer.figures.mean_lag       # 1.31 seconds from a batch to its commit

Lane l of L gets the steps i with i mod L = l. A producer resumes its lanes: restart a killed one with the
same arguments, on any machine, and the steps are the same. If two write one lane, the later one continues,
and the earlier one keeps its other lanes.
"""

from __future__ import annotations

import logging
import os
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from queue import SimpleQueue

from blender.errors import InvalidRequest, Stalled
from blender.global_batches.errors import Fenced
from blender.global_batches.format.slices import Slices
from blender.global_batches.json_values import Json
from blender.global_batches.namespace import Namespace, open_namespace
from blender.global_batches.policies import AdaptiveCommit, Policy
from blender.global_batches.source import record_source
from blender.global_batches.store.namespace_store import PATIENCE_S, open_store
from blender.global_batches.writer import BatchWriter, stop_writers
from blender.spec.step_range import StepRange
from factory.settings import Settings

_LOG = logging.getLogger(__name__)


@dataclass(frozen=True)
class ProducedBatch:
    """A step of a production."""

    step: int
    """Its number in the sequence; in assigned order also in the namespace."""
    slices: Slices
    origin: Json
    """What is stored with the batch, to find its documents again."""


class Production(ABC):
    """A sequence of steps that producers divide among themselves: any of them makes any step."""

    @property
    @abstractmethod
    def source(self) -> Mapping[str, Json]:
        """The source of the steps: equal for all producers of a namespace."""

    @abstractmethod
    def require_fit(self, namespace: Namespace) -> None:
        """Raise InvalidRequest or NamespaceDiffers unless the steps can be cut for a namespace."""

    @abstractmethod
    def batches(self, steps: StepRange, namespace: Namespace) -> Iterator[ProducedBatch]:
        """The steps of a range, up to the end of the data."""


@dataclass
class ProducedLane:
    """A lane that a producer writes."""

    name: str
    writer: BatchWriter
    error: BaseException | None = None
    """What ended it before the data did."""
    has_ended: bool = False

    @property
    def state(self) -> str:
        """Its work in words, for people."""
        if self.writer.is_finished:
            return "finished"
        if self.is_taken_over:
            return "taken over"
        return "stopped" if self.has_ended else "running"

    @property
    def is_taken_over(self) -> bool:
        """Whether another process writes the lane."""
        return isinstance(self.error, Fenced)


class Producer:
    """Writes some `lanes` of a namespace, by default all, each in a thread of its own.

    Opening it takes the lanes over, except where another process does so at the same time; `policy` makes
    the policy of each, and each writer gets `max_lag`. Raises InvalidRequest for lanes that the
    namespace lacks, what `Production.require_fit` raises, NamespaceDiffers if the namespace is filled from
    another source, and Fenced if other processes have taken all lanes.
    """

    def __init__(
        self,
        uri: str | os.PathLike[str],
        production: Production,
        lanes: Sequence[int] | None = None,
        *,
        settings: Settings | None = None,
        policy: Callable[[], Policy] = AdaptiveCommit,
        max_lag: int | None = None,
        patience_s: float = PATIENCE_S,
    ) -> None:
        self.production = production
        store = open_store(uri, settings, patience_s=patience_s)
        self.uri = store.uri
        self.namespace = open_namespace(store)
        self.dealt = self._dealt()
        numbers = self._checked(lanes)
        production.require_fit(self.namespace)
        record_source(store, self.namespace, production.source)
        self.lanes: list[ProducedLane] = []
        self._stopped = threading.Event()
        self._ended: SimpleQueue[ProducedLane | None] = SimpleQueue()
        with ExitStack() as opened:
            for number in numbers:
                try:
                    writer = BatchWriter(
                        uri,
                        number,
                        settings=settings,
                        policy=policy(),
                        max_lag=max_lag,
                        patience_s=patience_s,
                    )
                except Fenced as error:
                    # The other lanes go on: nobody else would write those that this process has taken.
                    if number == numbers[-1] and not self.lanes:
                        raise
                    _LOG.warning("Lane `%s` is written by another process: %s", number, error)
                    continue
                opened.callback(stop_writers, [writer])
                self.lanes.append(ProducedLane(f"{number}", writer, has_ended=writer.is_finished))
            opened.pop_all()

    def next_step(self, lane: ProducedLane) -> int:
        """The step of the next batch of a lane."""
        return int(lane.name) + len(self.dealt) * lane.writer.sequence

    def run(self) -> None:
        """Write until the data end, or until all lanes are taken over.

        Raises Fenced in the latter case, and the first other error of a lane; so does an interrupt end it.
        All lanes then stop, and have a second to commit their batches.
        """
        running = [lane for lane in self.lanes if not lane.has_ended]
        try:
            for lane in running:
                thread = threading.Thread(
                    target=self._write, args=(lane,), name=f"produce-{lane.name}", daemon=True
                )
                thread.start()
            for _ in running:
                if (lane_or_stop := self._ended.get()) is None:
                    return
                self._note_end(lane_or_stop)
        except BaseException:
            self.stop()
            raise
        if running and all(lane.is_taken_over for lane in running):
            raise running[-1].error or AssertionError

    def stop(self) -> None:
        """End all lanes and `run` soon, from any thread; the lanes stay open for the next producer."""
        self._stopped.set()
        stop_writers([lane.writer for lane in self.lanes])
        for lane in self.lanes:
            lane.has_ended = True
        self._ended.put(None)

    def _dealt(self) -> range:
        """The lanes to which the steps are dealt."""
        if self.namespace.lanes is None:
            raise InvalidRequest(
                f"The namespace at {self.uri} lets lanes come and go, and a sequence of steps is dealt to a "
                "fixed number of them. Create one with a number of lanes."
            )
        return range(self.namespace.lanes)

    def _checked(self, lanes: Sequence[int] | None) -> list[int]:
        """The lanes to write."""
        numbers = self.dealt if lanes is None else sorted(set(lanes))
        outside = [number for number in numbers if number not in self.dealt]
        if outside or not numbers:
            lanes_there = "lane 0 alone" if len(self.dealt) == 1 else f"lanes 0 to {len(self.dealt) - 1}"
            raise InvalidRequest(
                f"Lane {outside[0] if outside else '(none)'} was asked for, and the namespace at {self.uri} "
                f"has {lanes_there}. Produce what it has, or create a namespace with more."
            )
        return list(numbers)

    def _write(self, lane: ProducedLane) -> None:
        """Write a lane to the end of the data: the work of its thread."""
        try:
            while not (self._stopped.is_set() or lane.writer.is_finished):
                try:
                    self._write_steps(lane)
                except Stalled as stalled:  # the tables of a live source still grow
                    _LOG.warning("Lane `%s` waits for its next step: %s", lane.name, stalled)
        except BaseException as error:  # raised, or logged, by the thread that runs the producer
            lane.error = error
        finally:
            lane.has_ended = True
            self._ended.put(lane)

    def _write_steps(self, lane: ProducedLane) -> None:
        n, writer = len(self.dealt), lane.writer
        for batch in self.production.batches(StepRange(self.next_step(lane), None, n), self.namespace):
            if self._stopped.is_set():
                return
            writer.put(batch.slices, offset={"step": batch.step + n}, origin=batch.origin)
        writer.finish()

    def _note_end(self, lane: ProducedLane) -> None:
        if lane.is_taken_over:
            _LOG.warning("%s", lane.error)
        elif lane.error is not None:
            raise lane.error
