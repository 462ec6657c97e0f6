"""The names that a dataset declared in Python needs.

    from factory.api import Ingested, Ingests, Round, dedup_group, refine, source, tokenizer

    @source()
    def notes(ingests: Ingests) -> Ingested:
        return ingests.files("/path/to/notes", include="**/*.md")

    GROUP = dedup_group("notes", ["notes"], kind="prose")
    ROUNDS = [Round(rules=["gopher_quality"])]
    NOTES = refine("notes", dedup_group=GROUP, rounds=ROUNDS, tokenizer="tokenizer")
    ASSETS = [notes, *GROUP.assets, *NOTES, tokenizer("tokenizer", ["notes"])]

`definitions(ASSETS, settings())` makes them a Dagster code location of their own. `TextRule`, `Text` and the
limits `AtLeast`, `AtMost` and `Between` declare a filter rule of your own (`docs/filters.md`).
"""

from factory.filters.rounds import Round
from factory.filters.rule import AtLeast, AtMost, Between, TextRule
from factory.filters.text import Text
from factory.ingest.readers import Ingested, Ingests
from factory.orchestration.chain.dedup import dedup_group
from factory.orchestration.chain.ingest import source
from factory.orchestration.chain.models import tokenizer, tokenizer_from
from factory.orchestration.chain.refine import refine, variant
from factory.orchestration.host.definitions import definitions
from factory.settings import settings

__all__ = [
    "AtLeast",
    "AtMost",
    "Between",
    "Ingested",
    "Ingests",
    "Round",
    "Text",
    "TextRule",
    "dedup_group",
    "definitions",
    "refine",
    "settings",
    "source",
    "tokenizer",
    "tokenizer_from",
    "variant",
]
