"""The code of the Python installation this runs on: the standard library and the installed distributions."""

from __future__ import annotations

from factory.ingest.readers import Ingested
from factory.lake.schemas import RAW, REJECTED
from factory.orchestration.asset.table_asset import table_asset
from factory.orchestration.chain.refine import Round, dedup_group, refine
from factory.settings import settings

GROUP = "code"


@table_asset(
    namespace="raw",
    asset_group=GROUP,
    schema=RAW,
    beside={"rejected": REJECTED},
    config={"share": settings().installation_share},
)
def python_code(context, ingests) -> Ingested:  # type: ignore[no-untyped-def]
    """Every Python file of the installation, each distribution a repository with version and license."""
    return ingests.installation_code(settings().installation_share)


DUPLICATES = dedup_group("code", ["python_code"], kind="code")

ASSETS = [
    python_code,
    *DUPLICATES.assets,
    *refine(
        "python_code",
        dedup_group=DUPLICATES,
        rounds=[Round(rules=["code"])],
        asset_group=GROUP,
        tokenizer="tokenizer",
    ),
]
