"""The platform of docker-compose.yml, its services as processes of this machine: from the UI to the tables.

A run is asked for as the UI asks for it; it goes through the queue and the daemon to the code server, whose
driver works on the cluster and publishes to Postgres and the object store.
"""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from dagster import DagsterRunStatus
from dagster_graphql import DagsterGraphQLClient
from grpc import insecure_channel
from grpc_health.v1 import health_pb2, health_pb2_grpc

from factory.lake.names import raw
from factory.lake.tables import Lake
from factory.settings import Settings, settings
from tests.engines.compose import platform

FILE = Path(__file__).parents[2] / "docker-compose.yml"
SMALL = {
    "FACTORY_CACHE": str(Settings().cache),
    "FACTORY_SPARK_DRIVER_MEMORY": "1g",
    "FACTORY_SPARK_EXECUTOR_MEMORY": "1g",
}
ENDED = {DagsterRunStatus.SUCCESS, DagsterRunStatus.FAILURE, DagsterRunStatus.CANCELED}


@pytest.mark.long
@pytest.mark.process
@pytest.mark.timeout(1_200)
@pytest.mark.filterwarnings("ignore:Using variable_values:DeprecationWarning")  # Dagster's own client does
def test_services_start_in_order_and_a_run_reaches_the_tables(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FACTORY_INSTALLATION_SHARE", "0.02")
    with platform(FILE, tmp_path, SMALL) as up:
        assert set(up.started) == set(up.services)
        assert up.started.index("migrate") < up.started.index("code-server")
        assert "bucket made, create-only puts hold" in up.said["bootstrap"]

        for name, value in up.environment("code-server").items():
            monkeypatch.setenv(name, value)
        client = DagsterGraphQLClient("127.0.0.1", port_number=up.port(3000))
        together = [["raw.python_prose"], ["raw.python_prose_rejected"]]  # one asset writes both
        run = client.submit_job_execution("__ASSET_JOB", asset_selection=together)
        deadline = time.monotonic() + 600
        while (status := client.get_run_status(run)) not in ENDED and time.monotonic() < deadline:
            time.sleep(1)
        assert status is DagsterRunStatus.SUCCESS, (tmp_path / "code-server.log").read_text()[-3000:]

        settings.cache_clear()
        lake = Lake(settings())
        settings.cache_clear()
        published = lake.published(raw("python_prose"))
        assert published.lineage.run_id == run
        assert published.rows > 0
        assert lake.table(raw("python_prose")).location().startswith("s3://lake/warehouse/")

        with insecure_channel(f"127.0.0.1:{up.port(50051)}") as channel:
            health = health_pb2_grpc.HealthStub(channel).Check(health_pb2.HealthCheckRequest(), timeout=60)
        assert health.status == health_pb2.HealthCheckResponse.SERVING
