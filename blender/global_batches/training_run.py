"""A training run's hold on the batches to which it may go back.

    run = TrainingRun("s3://bucket/run7", "a")          # takes the run over, with its checkpoints
    run.held_steps.checkpoints                                # {"ckpt-110": 110, "ckpt-120": 120}
    run.checkpoint("ckpt-130", step=130, keep=2)      # lets go of the steps before 120
    run.rolled_back("ckpt-120").first_step              # 120
    run.close()                                         # holds nothing any more

`reclaim` deletes the batches before the oldest live checkpoint of all open runs (section 5.3 of the paper).
Open a run first and look for its checkpoints after: a list that was read before may be old. Delete the files
of a checkpoint first and drop it here after. A run that died holds its batches until it is opened again, or
closed.
"""

from __future__ import annotations

import os
import re
from contextlib import suppress
from typing import Literal

from blender.errors import InvalidRequest
from blender.global_batches.errors import BatchesGone, RunTaken
from blender.global_batches.held_steps import HeldSteps
from blender.global_batches.log import floors, log, marks
from blender.global_batches.log.client import incarnation_of_process
from blender.global_batches.log.state import LogState
from blender.global_batches.namespace import open_namespace
from blender.global_batches.store.namespace_store import PATIENCE_S, open_store
from blender.spec.whole_number import whole_number
from factory.errors import ConfigurationError, NotFound
from factory.settings import Settings

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._/-]{0,127}")

OLDEST: Literal["oldest"] = "oldest"
"""As the start of a run: the oldest batch that is kept."""


class TrainingRun:
    """An open run of a namespace, for one process of a training job.

    A new run holds the steps from `start` on. `every` says how many steps are between two checkpoints, and
    `keep` how many are live, so that a producer with a `max_lag` below their product is refused instead of
    waiting forever. Raises BatchesGone if the steps from `start` on were reclaimed, and RunTaken if another
    process opens the run meanwhile.
    """

    def __init__(
        self,
        uri: str | os.PathLike[str],
        name: str,
        *,
        start: int | Literal["oldest"] = 0,
        every: int | None = None,
        keep: int = 2,
        settings: Settings | None = None,
        patience_s: float = PATIENCE_S,
    ) -> None:
        self.name = _checked(name, "a run")
        self._store = open_store(uri, settings, patience_s=patience_s)
        self._client = open_namespace(self._store).client()
        self._owner = incarnation_of_process()
        every = None if every is None else whole_number(every, "every", least=1)
        self._keep = whole_number(keep, "keep", least=1)
        self._state = LogState()
        if start != OLDEST:
            start = whole_number(start, "start")
        while True:
            first = self._store.run(floors.current(self._client)).step if start == OLDEST else start
            try:
                run = self._store.run(marks.open_run(self._client, name, self._owner, first, every, keep))
                break
            except BatchesGone:  # or the floor has risen since
                if start != OLDEST:
                    raise
        self._is_open = True
        self.held_steps = HeldSteps(name, run.checkpoints)
        """The steps that the run holds."""

    def checkpoint(self, name: str, step: int, keep: int | None = None) -> HeldSteps:
        """Hold the steps from `step` on for a checkpoint, and let go of all but the last `keep` checkpoints.

        Raises InvalidRequest for a step that is not committed, CheckpointDropped for one before the live
        checkpoints, and RunTaken if another process has opened the run, or somebody has closed it.
        """
        _checked(name, "a checkpoint")
        keep = self._keep if keep is None else whole_number(keep, "keep", least=1)
        step = whole_number(step, "step")
        self._require_committed(step)
        return self._hold(self.held_steps.with_checkpoint(name, step, keep))

    def rolled_back(self, name: str) -> HeldSteps:
        """Drop the checkpoints that were marked after one, to train again from there.

        Raises CheckpointDropped unless it is live, and RunTaken.
        """
        return self._hold(self.held_steps.until(name))

    def close(self) -> None:
        """Let go of all batches; a second call, or one of a run that was taken over, does nothing."""
        if self._is_open:
            with suppress(RunTaken):  # its successor holds them
                self._store.run(marks.close(self._client, self.name, self._owner))
            self._is_open = False

    def _require_committed(self, step: int) -> None:
        """Raise InvalidRequest for a step behind the log: the steps before it would be let go."""
        if step > self._state.steps:
            is_new = self._state.version == 0
            self._state = self._store.run(
                log.load(self._client) if is_new else log.advance(self._client, self._state)
            )
        if step > self._state.steps:
            raise InvalidRequest(
                f"Run `{self.name}` marks step {step:,}, and {self._store.uri} has {self._state.steps:,} "
                "steps. Give the step after the last one that was trained on."
            )

    def _hold(self, held_steps: HeldSteps) -> HeldSteps:
        self._store.run(marks.hold(self._client, self.name, self._owner, held_steps.marks))
        self.held_steps = held_steps
        return held_steps


def close_run(
    uri: str | os.PathLike[str],
    name: str,
    *,
    settings: Settings | None = None,
    patience_s: float = PATIENCE_S,
) -> int:
    """Close a run without a process; the first step that it held. Raises NotFound for any other run."""
    store = open_store(uri, settings, patience_s=patience_s)
    client = open_namespace(store).client()
    run = store.run(marks.close_for(client, name))
    if run is None:
        names = ", ".join(f"`{other}`" for other in sorted(client.runs.open)) or "none"
        raise NotFound(f"{store.uri} has no open run `{name}`. Open runs: {names}.")
    return run.oldest_step


def _checked(name: str, owner: str) -> str:
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise ConfigurationError(
            f"`{name}` cannot name {owner}. Use up to 128 letters, digits, dots, dashes, slashes and "
            "underscores, beginning with a letter or digit."
        )
    return name
