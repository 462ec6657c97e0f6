"""The names that a dataset declared in Python needs.

    >>> from factory.api import Ingested, Ingests, Round, dedup_group, refine, source, tokenizer, variant
    >>> @source()
    ... def notes(ingests: Ingests) -> Ingested:
    ...     return ingests.files("/path/to/notes", include="**/*.md")
    >>> GROUP = dedup_group("notes", ["notes"], kind="prose")
    >>> NOTES = refine("notes", dedup_group=GROUP, rounds=[Round(rules=["word_count"])], tokenizer="small")
    >>> [min(asset.keys).to_user_string() for asset in NOTES]
    ['signals.notes', 'filtered.notes', 'deduplicated.notes', 'tokenized.notes', 'packed.notes']
    >>> NEARER = variant(NOTES, "nearer", threshold=0.9)
    >>> [min(asset.keys).to_user_string() for asset in NEARER][:3]
    ['dedup.notes__nearer_components', 'dedup.notes__nearer_decisions', 'deduplicated.notes__nearer']
    >>> ASSETS = [notes, *GROUP.assets, *NOTES, *NEARER, tokenizer("small", ["notes"])]
    >>> len(definitions(ASSETS, settings()).resolve_all_asset_keys())
    25

The last call makes them a Dagster code location of their own; `factory materialize -f FILE` takes a file with
such `ASSETS`. `table_asset` declares a table of any DataFrame (`docs/your-own-assets.md`). `TextRule`, `Text`
and the limits declare a filter rule of your own (`docs/filters.md`), `classifier`, `TableRule` and
`TableName` one that reads a table (`docs/models.md`). `synthesize` makes a dataset of another one by workers
(`docs/synthesis.md`). `Lake` opens the tables for other libraries
(`docs/tables.md`).
"""

from factory.filters.limits import AtLeast, AtMost, Between, Bottom, Top
from factory.filters.rounds import Round
from factory.filters.rule import TextRule
from factory.filters.table_rule import TableRule
from factory.filters.text import Text
from factory.ingest.installation import installation_bytes
from factory.ingest.readers import Ingested, Ingests
from factory.lake.names import TableName
from factory.lake.tables import Lake
from factory.orchestration.chain.dedup.group import dedup_group
from factory.orchestration.chain.ingest import source
from factory.orchestration.chain.models.classifier import classifier
from factory.orchestration.chain.models.tokenizer import tokenizer, tokenizer_from
from factory.orchestration.chain.refine import refine, variant
from factory.orchestration.chain.synthesis import JobDeclaration, synthesize
from factory.orchestration.host.definitions import definitions
from factory.orchestration.table.own_table import own_table as table_asset
from factory.settings import settings

__all__ = [
    "AtLeast",
    "AtMost",
    "Between",
    "Bottom",
    "Ingested",
    "Ingests",
    "JobDeclaration",
    "Lake",
    "Round",
    "TableName",
    "TableRule",
    "Text",
    "TextRule",
    "Top",
    "classifier",
    "dedup_group",
    "definitions",
    "installation_bytes",
    "refine",
    "settings",
    "source",
    "synthesize",
    "table_asset",
    "tokenizer",
    "tokenizer_from",
    "variant",
]
