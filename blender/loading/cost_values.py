"""The costs that a function gives to the items of a graph, checked: whole numbers, exact in their sum."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from blender.errors import InvalidRequest
from blender.loading.costs import MOST_TOTAL, Columns, CostFunction, Costs, total_cost
from factory.errors import FactoryError, first_line


def cost_values(function: CostFunction | None, facts: Columns, n: int, noun: str, step: str) -> Costs:
    """The cost of each of `n` items; errors call them `noun` and name the `step`.

    Raises InvalidRequest for None, for other than whole numbers, for a sum of 2^63 or more, and for a
    function that fails, which is the cause of the error.
    """
    if function is None:
        raise InvalidRequest(
            f"The {noun}s of {step} have no cost function. Give the spec its model, for pictures its "
            "`encoder`."
        )
    values = _returned(function, facts, step)
    if values.shape != (n,) or not np.issubdtype(values.dtype, np.integer):
        raise InvalidRequest(
            f"A cost function returned {values.dtype} of shape {values.shape} for {n:,} {noun}s. Return a "
            f"whole number for each {noun}: sums of floats differ between machines."
        )
    if len(values) and int(values.min()) < 0:
        raise InvalidRequest(f"A cost function returned {values.min()}. Costs are 0 or more.")
    costs = values.astype(np.uint64)
    if total_cost(costs) >= MOST_TOTAL:
        raise InvalidRequest(
            f"The costs of {step} sum to {total_cost(costs):.2g}, and are exact below 2^63 = 9.2e18. Divide "
            "them by a common factor, or give smaller sizes of the model."
        )
    return costs


def _returned(function: CostFunction, facts: Columns, step: str) -> npt.NDArray[Any]:
    try:
        return np.asarray(function(facts))
    except FactoryError:
        raise
    except Exception as error:
        fact = error.args[0] if isinstance(error, KeyError) and error.args else None
        if isinstance(fact, str) and fact not in facts:
            raise InvalidRequest(
                f"The cost function reads the fact `{fact}`, and the graph has "
                f"{', '.join(f'`{name}`' for name in facts)}. Name it in `DGraph.of`."
            ) from error
        raise InvalidRequest(
            f"The cost function failed on {step} ({type(error).__name__}: {first_line(error)}). Correct it."
        ) from error
