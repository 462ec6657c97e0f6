"""`factory bootstrap`: prepare the engines of the settings before the first run. It is idempotent.

It creates the warehouse's bucket, the catalog's tables and Dagster's folder and tables where they are
missing, and migrates the tables of an older Dagster.
"""

from __future__ import annotations

from rich.console import Console

from factory.lake.catalog import open_catalog
from factory.lake.place import require_place
from factory.lake.servers import create_bucket, probe_conditional_put
from factory.orchestration.host.instance import open_instance
from factory.settings import Settings


def bootstrap(settings: Settings, console: Console) -> None:
    """Prepare the engines and print a line on each; raise if one does not serve."""
    if settings.on_s3:
        made = "made" if create_bucket(settings) else "there"
        require_place(settings)
        console.print(
            f"warehouse  {settings.warehouse_uri}: bucket {made}, {probe_conditional_put(settings)}"
        )
    else:
        console.print(f"warehouse  {settings.warehouse_uri}")
    namespaces = open_catalog(settings).list_namespaces()
    console.print(f"catalog    {settings.catalog}, {len(namespaces)} namespaces")
    with open_instance(settings) as instance:
        instance.upgrade()
        records = "Postgres" if settings.dagster_uri else "SQLite"
        console.print(f"Dagster    {records}, {instance.get_runs_count()} runs, {settings.files.dagster}")
