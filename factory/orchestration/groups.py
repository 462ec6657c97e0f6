"""The groups of the Dagster graph, from left to right.

    web                      raw.web, facts.web, signals.web, filtered.web
    web/strict               the same tables of the variant web__strict
    models                   classifiers, word lists and other models that filters read
    dedup/prose              dedup.prose_bags ... dedup.prose_decisions, and the deduplicated documents
    tokenizers               models.tokenizer
    packed/web               depsort.web_symbols, sorted.web, tokenized.web, packed.web
    blends                   the blend
    diagnostics/web          raw.web_rejected, packed.web_placements
    diagnostics/dedup/prose  dedup.prose_recall, dedup.prose_sweep

Dagster draws `a/b` as a group inside group `a`. A dataset has a group before its dedup group and one behind
it, because a group on both sides would have arrows both ways. The deduplicated documents belong to the dedup
group, because a tokenizer learns from them before they are packed. `factory.orchestration.host.graph` splits
a group that has arrows both ways all the same.
"""

from __future__ import annotations

from factory.lake.names import VARIANT

MODELS = "models"
TOKENIZERS = "tokenizers"
BLENDS = "blends"
DIAGNOSTICS = "diagnostics"


def dataset_group(dataset: str) -> str:
    """Return the group of a dataset's tables before deduplication; a variant's is inside its dataset's."""
    return dataset.replace(VARIANT, "/")


def comparison_group(dedup_group: str) -> str:
    """Return the group of the tables of a dedup group, and of the documents that it keeps."""
    return f"dedup/{dataset_group(dedup_group)}"


def packed_group(dataset: str) -> str:
    """Return the group of a dataset's tables behind deduplication."""
    return f"packed/{dataset_group(dataset)}"


def diagnostics(asset_group: str) -> str:
    """Return the group of the tables of a dataset, dedup group or the models that no later table reads."""
    return f"{DIAGNOSTICS}/{asset_group}"
