"""The code of the Python installation this runs on: the standard library and the installed distributions."""

from __future__ import annotations

from factory.api import Ingested, Ingests, Round, dedup_group, installation_bytes, refine, settings, source


@source(
    config={"share": settings().installation_share},
    input_bytes=lambda: installation_bytes("code", settings().installation_share),
)
def python_code(ingests: Ingests) -> Ingested:
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
        tokenizer="tokenizer",
    ),
]
