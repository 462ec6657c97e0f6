"""How many cells and clusters documents have unless a number is given."""

from __future__ import annotations

from math import sqrt

import numpy as np
import numpy.typing as npt

from factory.errors import ConfigurationError

MOST_CELLS = 15_000
MOST_CLUSTERS = 4_096  # of a cell
CLUSTER_DOCUMENTS = 300

Sizes = npt.NDArray[np.int64]


def n_cells(n_documents: int, cells: int | None = None) -> int:
    """Return `cells`, or half the root of the number of documents, from 1 to MOST_CELLS.

    `n_documents` have a vector. Raises ConfigurationError for more cells than documents, and for none.
    """
    if not n_documents:
        raise ConfigurationError(
            "No document has a vector, so there is nothing to cluster. Name a dataset with texts, or another "
            "embedder."
        )
    _require("cells", 1 if cells is None else cells, n_documents)
    return cells if cells is not None else min(max(round(sqrt(n_documents) / 2), 1), MOST_CELLS)


def clusters_by_cell(n_documents: Sizes, clusters: int | None = None) -> Sizes:
    """Return the clusters of each cell by its documents: one for CLUSTER_DOCUMENTS, from 1 to MOST_CLUSTERS.

    With `clusters` these shares are scaled to this sum: each cell has at least one and at most a cluster for
    each document, and the largest remainders are rounded up, of equal ones the first.
    Raises ConfigurationError for fewer clusters than cells, or more than documents.
    """
    usual = np.clip(np.rint(n_documents / CLUSTER_DOCUMENTS), 1, MOST_CLUSTERS).astype(np.int64)
    if clusters is None:
        return usual
    _require("clusters", clusters, int(n_documents.sum()))
    if clusters < len(usual):
        raise ConfigurationError(
            f"{clusters:,} clusters are too few for {len(usual):,} cells, which have at least one each. Give "
            f"at least {len(usual):,} clusters, or fewer cells."
        )
    return _apportioned(np.clip(n_documents, 1, None), clusters)


def _apportioned(most: Sizes, total: int) -> Sizes:
    """Shares of `total` in proportion to `most`, from 1 to `most` each."""
    shares = np.ones_like(most)
    while (remainder := total - int(shares.sum())) > 0:
        room = most - shares
        quotas = remainder * room / room.sum()
        additions = np.floor(quotas).astype(np.int64)
        first = np.argsort(additions - quotas, kind="stable")[: remainder - int(additions.sum())]
        additions[first] += 1
        shares += np.minimum(additions, room)
    return shares


def _require(name: str, number: int, n_documents: int) -> None:
    if not 1 <= number <= n_documents:
        raise ConfigurationError(
            f"{n_documents:,} documents cannot have {number:,} {name}. Give 1 to {n_documents:,} {name}."
        )
