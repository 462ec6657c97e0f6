"""The blend of a corpus in the Dagster graph: an external asset, downstream of the packed tables it serves.

No run makes this asset. `factory demo` creates the blend and records its id.
"""

from __future__ import annotations

import dagster as dg

from factory.lake import names
from factory.orchestration.datasets.corpus import Corpus
from factory.orchestration.groups import BLENDS
from factory.orchestration.keys import key_of

BLEND = dg.AssetKey("blend")


def blend_asset(corpus: Corpus) -> dg.AssetSpec:
    """Return the external asset of the blend that `corpus` declares."""
    rows = {str(names.packed(dataset)): weight for dataset, weight in corpus.weights.items()}
    shown = ", ".join(f"{weight} of `{table}`" for table, weight in rows.items())
    return dg.AssetSpec(
        key=BLEND,
        deps=[key_of(names.packed(dataset)) for dataset in corpus.weights],
        group_name=BLENDS,
        kinds={"blender"},
        description=f"The blend that `factory demo` creates and serves. Rows per step: {shown}. "
        "`factory blend list` lists every blend of the lake.",
        metadata={"weights": dg.MetadataValue.json(rows), "seed": corpus.seed},
    )


def created(blend_id: str, fetched: dict[str, int]) -> dg.AssetMaterialization:
    """Return the event that the blend was created under an id; `fetched` are figures of a first reading."""
    return dg.AssetMaterialization(BLEND, metadata={"blend": blend_id, **fetched})
