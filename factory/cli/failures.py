"""The error of a failed run, from the events of its assets."""

from __future__ import annotations

from dagster_shared.error import SerializableErrorInfo

from factory.cli.full_disk import full_disk
from factory.errors import CheckFailed, FactoryError, LakeLocked, LakeMoved, MachineError, error_from_text
from factory.orchestration.host.execution import RunOutcome

_OF_THE_RUN = (MachineError, LakeLocked, LakeMoved)  # errors that say nothing about the asset which met them


class RunFailed(FactoryError, exit_code=CheckFailed.exit_code):
    """A run ended with failed assets or checks; the message names each with its sentence."""


def run_error(outcome: RunOutcome, skipped: int) -> FactoryError:
    """Return the error of a failed run that did not reach `skipped` assets.

    If every failure has the same exit code, so has the error; of failed checks, of unexpected errors, and of
    several kinds of failures, it is RunFailed. It names every failed asset, unless the machine or the
    state of the lake ended the run.
    """
    steps: list[tuple[str, FactoryError]] = []
    others: list[FactoryError] = []
    for event in outcome.events:
        if event.is_step_failure:
            failure = event.step_failure_data
            cause = _first_cause(failure.error)
            if failure.user_failure_data and failure.user_failure_data.description:
                description = failure.user_failure_data.description
                cause = type(cause)(description)
                cause = full_disk(cause) or cause
            steps.append(((event.step_key or "").replace("__", ".", 1), cause))
        elif event.is_failure:
            others.append(_first_cause(getattr(event.event_specific_data, "error", None)))
    causes = [cause for _, cause in steps] or others
    error_class = _common_class(causes)
    if issubclass(error_class, _OF_THE_RUN):
        return error_class("\n".join(dict.fromkeys(map(str, causes))))
    lines = [f"{name}: {cause}" for name, cause in steps] or [str(cause) for cause in others]
    lines.append(f"The traces are in the Dagster UI (factory ui), run {outcome.run_id}.")
    if skipped > 0:
        lines.append(f"Assets downstream of the failures, not run: {skipped}.")
    return error_class("\n".join(lines))


def _common_class(causes: list[FactoryError]) -> type[FactoryError]:
    """Return the class of the first cause if all have its exit code and it has one of its own."""
    codes = {cause.exit_code for cause in causes}
    if len(codes) != 1 or codes <= {FactoryError.exit_code, CheckFailed.exit_code}:
        return RunFailed
    return type(causes[0])


def _first_cause(error: SerializableErrorInfo | None) -> FactoryError:
    """Return the first FactoryError among the causes, else one with the innermost message."""
    if error is None:
        return FactoryError("no reason was recorded")
    while (cause := error_from_text(error.message)) is None and error.cause is not None:
        error = error.cause
    return cause or full_disk(error.message) or FactoryError(error.message.strip())
