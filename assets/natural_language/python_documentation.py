"""The prose of the Python installation: descriptions, licenses, help topics and documentation."""

from __future__ import annotations

from factory.api import Ingested, Ingests, Round, dedup_group, installation_bytes, refine, settings, source


@source(
    config={"share": settings().installation_share},
    input_bytes=lambda: installation_bytes("prose", settings().installation_share),
)
def python_prose(ingests: Ingests) -> Ingested:
    """Every long description, license, help topic and documentation file of the installation."""
    return ingests.installation_prose(settings().installation_share)


DUPLICATES = dedup_group("prose", ["python_prose"], kind="prose")

ASSETS = [
    python_prose,
    *DUPLICATES.assets,
    *refine(
        "python_prose",
        dedup_group=DUPLICATES,
        rounds=[Round(rules=["gopher_quality", "gopher_repetition"])],
        tokenizer="tokenizer",
    ),
]
