"""Runs of the command line as Dagster has them: with an origin, so that its timeline shows them."""

from __future__ import annotations

import tomllib
from pathlib import Path

import dagster as dg
import pytest
import yaml

from factory.cli.ui import workspace_of
from factory.orchestration.host.execution import CODE_LOCATION, run_assets
from factory.orchestration.host.instance import open_instance
from factory.settings import Settings

ROOT = Path(__file__).parents[3]


@dg.asset(check_specs=[dg.AssetCheckSpec("even", asset="first")])
def first() -> dg.MaterializeResult:
    """An asset with a check that fails."""
    return dg.MaterializeResult(check_results=[dg.AssetCheckResult(passed=False, check_name="even")])


@dg.asset(deps=[first])
def second() -> None:
    """An asset that fails."""
    raise ValueError("no second")


@pytest.mark.invariant("Dagster records a run of the command line under the code location that the UI loads.")
def test_a_run_has_the_origin_of_the_code_location_and_says_what_happened(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DAGSTER_HOME", "")
    job = dg.Definitions(
        assets=[first, second], executor=dg.in_process_executor
    ).resolve_implicit_global_asset_job_def()
    quiet = {"loggers": {"console": {"config": {"log_level": "CRITICAL"}}}}
    with open_instance(Settings(home=tmp_path)) as instance:
        good = run_assets(job, instance, [first.key], tags={"a": "b"}, run_config=quiet)
        bad = run_assets(job, instance, [first.key, second.key], tags={}, run_config=quiet)
        recorded = instance.get_run_by_id(good.run_id)
        asset = instance.get_latest_materialization_event(first.key)

    assert (good.success, bad.success) == (True, False)
    assert [(of.check_name, of.passed) for of in good.check_evaluations] == [("even", False)]
    assert recorded is not None
    assert recorded.remote_job_origin is not None
    origin = recorded.remote_job_origin
    assert origin.repository_origin.get_label() == f"__repository__@{CODE_LOCATION}"
    assert origin.job_name == recorded.job_name
    assert recorded.tags["a"] == "b"
    assert asset is not None
    assert asset.run_id == bad.run_id


@pytest.mark.invariant("Dagster records a run of the command line under the code location that the UI loads.")
def test_everything_that_loads_the_assets_gives_the_code_location_one_name() -> None:
    files = [ROOT / "workspace.yaml", ROOT / "docker" / "workspace.yaml"]
    workspaces = [workspace_of(Path("code.sock")), *(yaml.safe_load(file.read_text()) for file in files)]
    for workspace in workspaces:
        (location,) = workspace["load_from"]
        assert [of["location_name"] for of in location.values()] == [CODE_LOCATION]
    tool = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]
    assert tool["dagster"]["code_location_name"] == CODE_LOCATION
    assert tool["dg"]["project"]["code_location_name"] == CODE_LOCATION
