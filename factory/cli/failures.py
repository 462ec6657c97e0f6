"""The error of a failed run, from the events of its assets."""

from __future__ import annotations

from dataclasses import dataclass

from dagster_shared.error import SerializableErrorInfo

from factory.errors import CheckFailed, FactoryError, MachineError
from factory.orchestration.host.execution import RunOutcome

_OURS = ("factory.errors.", "blender.errors.")  # prefixes of serialized error messages
_OF_MACHINE = f"{MachineError.__module__}.{MachineError.__name__}: "


class RunFailed(FactoryError, exit_code=CheckFailed.exit_code):
    """A run ended with failed assets or checks; the message names each with its sentence."""


@dataclass(frozen=True)
class _Cause:
    """Why an asset failed; `of_machine` marks a fault of the machine, such as a missing JVM."""

    said: str
    of_machine: bool = False


def run_error(outcome: RunOutcome, skipped: int) -> FactoryError:
    """Return the error of a failed run that did not reach `skipped` assets.

    This is a MachineError if every failure is the machine's, such as a missing JVM, else RunFailed.
    """
    steps: list[tuple[str, _Cause]] = []
    others: list[_Cause] = []
    for event in outcome.events:
        if event.is_step_failure:
            data = event.step_failure_data
            cause = _first_cause(data.error)
            if data.user_failure_data and data.user_failure_data.description:
                cause = _Cause(data.user_failure_data.description, cause.of_machine)
            steps.append(((event.step_key or "").replace("__", ".", 1), cause))
        elif event.is_failure:
            others.append(_first_cause(getattr(event.event_specific_data, "error", None)))
    causes = [cause for _, cause in steps] or others
    if causes and all(cause.of_machine for cause in causes):
        return MachineError("\n".join(dict.fromkeys(cause.said for cause in causes)))
    lines = [f"{name}: {cause.said}" for name, cause in steps] or [cause.said for cause in others]
    lines.append(f"The traces are in the Dagster UI (factory ui), run {outcome.run_id}.")
    if skipped > 0:
        lines.append(f"Assets downstream of the failures, not run: {skipped}.")
    return RunFailed("\n".join(lines))


def _first_cause(error: SerializableErrorInfo | None) -> _Cause:
    """Return the sentence of the first FactoryError among the causes, else the innermost message."""
    if error is None:
        return _Cause("no reason was recorded")
    while not error.message.startswith(_OURS) and error.cause is not None:
        error = error.cause
    message = error.message.strip()
    said = message.partition(": ")[2] if message.startswith(_OURS) else message
    return _Cause(said, message.startswith(_OF_MACHINE))
