"""Weights of dependencies that matter only after a file is loaded, all below the weights of loading.

Where files find names without an import, the place of a use says when it matters. Loading a file needs its
requires, the bases of its classes, and the names in its code outside functions; a name that only functions
use may be defined later. If every file opens a module and asks it for a logger, the number of these uses
would outweigh each `require` in the module's own file, which would then precede the files that it loads.

The weight of an edge that loading does not need therefore grows with the uses and stays below 1, the weight
of an import that runs. Satisfying the edges of loading before all others costs more other edges than it is
worth: in Python .8 % of the true ones.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence

from spark_udfs.depsort.references import Symbol


def late_weight(imported: float, use_weight: float) -> float:
    """The weight of an edge of late imports of weight `imported` (below 1) and uses of `use_weight`."""
    return 1.0 - (1.0 - imported) / (1.0 + use_weight)


def bound_late_uses(imports: Sequence[Symbol], uses: Sequence[Symbol], loaded: Collection[int]) -> None:
    """Scale the weights of one file's uses of files that loading it does not need.

    Loading needs the files `loaded` by its imports, and the files of the uses that are not `late`.
    """
    needed = {*loaded, *(file for symbol in uses if not symbol.late for file in symbol.weights)}
    imported: dict[int, float] = {}
    for symbol in imports:
        for file, weight in symbol.weights.items():
            imported[file] = max(weight, imported.get(file, 0.0))
    use_weights: dict[int, list[float]] = {}
    for symbol in uses:
        for file, weight in symbol.weights.items():
            if file not in needed:
                use_weights.setdefault(file, []).append(weight)
    factors: dict[int, float] = {}
    for file, weights in use_weights.items():
        alone, total = imported.get(file, 0.0), math.fsum(weights)
        factors[file] = (late_weight(alone, total) - alone) / total
    for symbol in uses if factors else ():
        symbol.weights = {file: weight * factors.get(file, 1.0) for file, weight in symbol.weights.items()}
