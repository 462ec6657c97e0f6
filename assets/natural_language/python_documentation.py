"""The prose of the Python installation: descriptions, licenses, help topics and documentation."""

from __future__ import annotations

from factory.ingest.readers import Ingested
from factory.lake.schemas import RAW, REJECTED
from factory.orchestration.asset.table_asset import table_asset
from factory.orchestration.chain.refine import Round, dedup_group, refine
from factory.settings import settings

GROUP = "natural_language"


@table_asset(
    namespace="raw",
    asset_group=GROUP,
    schema=RAW,
    beside={"rejected": REJECTED},
    config={"share": settings().installation_share},
)
def python_prose(context, ingests) -> Ingested:  # type: ignore[no-untyped-def]
    """Every long description, license, help topic and documentation file of the installation."""
    return ingests.installation_prose(settings().installation_share)


DUPLICATES = dedup_group("prose", ["python_prose"], kind="prose", asset_group=GROUP)

ASSETS = [
    python_prose,
    *DUPLICATES.assets,
    *refine(
        "python_prose",
        dedup_group=DUPLICATES,
        rounds=[Round(rules=["gopher_quality", "gopher_repetition"])],
        asset_group=GROUP,
        tokenizer="tokenizer",
    ),
]
