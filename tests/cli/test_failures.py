"""The error and exit code of a failed run, by what failed its assets."""

from __future__ import annotations

import dagster as dg
import pytest

from factory.cli.failures import RunFailed, run_error
from factory.errors import (
    CheckFailed,
    ConfigurationError,
    DamagedFile,
    FactoryError,
    LakeLocked,
    MachineError,
    NotFound,
    PublishConflict,
    SourceChanged,
    TableNotFound,
)
from factory.orchestration.host.execution import run_assets

NO_JVM = MachineError("No Java was found. Install one.")
WRONG = ConfigurationError("A path is wrong. Correct it.")


FULL = OSError(28, "No space left on device")


def ended(first: Exception, second: Exception, *, wrapped: bool) -> FactoryError:
    """The error of a run whose two assets raise these errors, as `table_asset` wraps them or bare."""

    def asset(name: str, error: Exception) -> dg.AssetsDefinition:
        @dg.asset(name=name)
        def made() -> None:
            if wrapped:
                raise dg.Failure(description=str(error), allow_retries=False) from error
            raise error

        return made

    assets = [asset("one", first), asset("two", second)]
    defined = dg.Definitions(assets=assets, executor=dg.in_process_executor)
    with dg.DagsterInstance.ephemeral() as instance:
        outcome = run_assets(
            defined.resolve_implicit_global_asset_job_def(),
            instance,
            [dg.AssetKey("one"), dg.AssetKey("two")],
            tags={},
            run_config={"loggers": {"console": {"config": {"log_level": "CRITICAL"}}}},
        )
    assert not outcome.success
    return run_error(outcome, skipped=3)


@pytest.mark.parametrize("wrapped", [True, False])
@pytest.mark.parametrize("fault", [NO_JVM, LakeLocked("Another run is writing. Wait.")])
def test_a_fault_of_the_machine_or_a_locked_lake_is_printed_once_with_its_own_exit_code(
    fault: FactoryError, wrapped: bool
) -> None:
    error = ended(fault, fault, wrapped=wrapped)
    assert (type(error), str(error)) == (type(fault), str(fault))


@pytest.mark.invariant(
    "A run that failed for one kind of reason ends with the exit code of that kind, raised in a step, at "
    "the lock or in a Spark worker."
)
@pytest.mark.parametrize("wrapped", [True, False])
@pytest.mark.parametrize(
    "kind", [ConfigurationError, TableNotFound, PublishConflict, NotFound, SourceChanged, DamagedFile]
)
def test_failures_of_one_kind_keep_its_exit_code_and_name_each_asset(
    kind: type[FactoryError], wrapped: bool
) -> None:
    error = ended(kind("It is wrong."), kind("It is odd."), wrapped=wrapped)
    assert type(error) is kind
    assert set(str(error).splitlines()[:2]) == {"one: It is wrong.", "two: It is odd."}


@pytest.mark.parametrize("wrapped", [True, False])
def test_a_run_that_fails_for_several_reasons_names_each_asset(wrapped: bool) -> None:
    error = ended(NO_JVM, WRONG, wrapped=wrapped)
    assert isinstance(error, RunFailed)
    assert error.exit_code == CheckFailed.exit_code
    first, second, traces, skipped = str(error).splitlines()
    assert {first, second} == {f"one: {NO_JVM}", f"two: {WRONG}"}
    assert traces.startswith("The traces are in the Dagster UI")
    assert skipped == "Assets downstream of the failures, not run: 3."


def test_an_unexpected_error_is_not_blamed_on_the_machine() -> None:
    error = ended(KeyError("surprise"), KeyError("surprise"), wrapped=False)
    assert isinstance(error, RunFailed)
    assert "surprise" in str(error)


@pytest.mark.parametrize("wrapped", [False, True])
def test_an_asset_that_met_a_full_disk_fails_the_run_as_the_machine_s(wrapped: bool) -> None:
    error = ended(FULL, FULL, wrapped=wrapped)
    assert isinstance(error, MachineError)
    assert str(error).startswith("The disk is full. Free space on it")
