"""Limits that are shares of the documents, resolved to bounds: `signals.<dataset>_limits`.

The best tenth of a dataset is a statement on all of its documents, so its bound is found once, over all, and
recorded with the table. It is valid until the share changes or somebody recomputes it: no later delivery or
partition changes an earlier decision.

The bound is exact, and needs no sort: the values become integers of 64 bits in the same order, and each pass
over the signals counts their next 16 bits, until only the bound is left.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from sys import float_info

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame

from factory.filters.limits import Bottom, Missing, Requirement, Share, Top
from factory.filters.rule import Rule
from factory.filters.stage import value_of
from factory.lake.schemas.filters import LIMITS
from spark_udfs.filters import ranks

_LEVELS = 4  # of 16 bits
_LARGEST = float_info.max  # the bound of a share of no values, because JSON has no infinity


def by_share(rules: Sequence[Rule]) -> list[tuple[Rule, Share]]:
    """Return the rules with shares of the documents as limits, and the shares."""
    return [(rule, rule.limit) for rule in rules if isinstance(rule.limit, Top | Bottom)]


def limits_table(signals: DataFrame, rules: Sequence[Rule]) -> DataFrame:
    """The bound of each of `rules` with a share as its limit: LIMITS.

    Runs up to four jobs a rule, which read its column of `signals`. A rule without a value in any document
    has no row.
    """
    rows = []
    for rule, share in by_share(rules):
        values = signals.select(value_of(rule).alias("value")).where("value IS NOT NULL AND NOT isnan(value)")
        n_documents, bound = _bound(values, share)
        if bound is not None:
            limit = {"rule": rule.name, "side": _SIDES[type(share)], "share": share.share, "limit": bound}
            rows.append(limit | {"n_documents": n_documents})
    return signals.sparkSession.createDataFrame(pa.Table.from_pylist(rows, schema=LIMITS.columns))


def with_bounds(rules: Sequence[Rule], limits: Mapping[str, float]) -> list[Rule]:
    """Return the rules with the bounds of `limits`, by rule, in place of shares.

    A rule without a bound, because no document had a value, allows every value. It treats documents without a
    value as the share does.
    """
    shares = dict(by_share(rules))

    def with_bound(rule: Rule, share: Share) -> Rule:
        bound = limits.get(rule.name, -_LARGEST if isinstance(share, Top) else _LARGEST)
        missing: Missing = "reject" if rule.rejects_missing else "keep"
        return rule.with_limit(Requirement(share.at_bound(bound), missing))

    return [with_bound(rule, shares[rule]) if rule in shares else rule for rule in rules]


_SIDES = {Top: "top", Bottom: "bottom"}


def _bound(values: DataFrame, share: Share) -> tuple[int, float | None]:
    """Return the number of values, and the last of them inside the share."""
    prefix = 0
    n_values = n_before = 0
    for level in range(_LEVELS):
        counts = _counts(values, prefix, level)
        if level == 0:
            n_values = int(counts.sum())
            if n_values == 0:
                return 0, None
            inside = max(1, round(share.share * n_values))
            rank = inside - 1 if isinstance(share, Bottom) else n_values - inside
            n_before = rank
        position = int(np.searchsorted(np.cumsum(counts), n_before, side="right"))
        n_before -= int(counts[:position].sum())
        prefix = prefix << 16 | position
    return n_values, ranks.number_at(prefix)


def _counts(values: DataFrame, prefix: int, level: int) -> np.ndarray:
    """Return how many values that begin with the `16 * level` bits of `prefix` go on with each 16 bits."""
    count = partial(ranks.count, prefix=prefix, level=level)
    counts = values.mapInArrow(count, "bits int, n long").groupBy("bits").sum("n").toArrow()
    every = np.zeros(1 << 16, dtype=np.int64)
    every[counts["bits"].to_numpy()] = counts["sum(n)"].to_numpy()
    return every
