"""The tables of measured values, and of verdicts on documents."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from factory.lake.schemas.base import DOC_ID, TableSchema, column, list_of, required, table


def signals_table(numbers: Sequence[str], words: Sequence[str] = ()) -> TableSchema:
    """The schema of `signals.<dataset>`: a nullable double for each number, then a string for each word."""
    return table(
        DOC_ID,
        *(column(name, pa.float64(), "a number that rules judge") for name in numbers),
        *(column(name, pa.string(), "a word that rules judge") for name in words),
        may_shrink=True,  # rules come and go
    )


_REJECTION = [("rule", pa.string()), ("value", pa.float64()), ("threshold", pa.float64())]

WITHOUT_VALUE = "without_value"

FILTERED = table(
    DOC_ID,
    required("kept", pa.bool_(), "whether the document passes every rule"),
    column("rejections", list_of(pa.struct(_REJECTION)), "every failed rule, with value and limit"),
    column(WITHOUT_VALUE, list_of(pa.string()), "every rule that the document passes without a value"),
    partition_by=("kept",),
    chart="filters.rejections",
    figures="filters.verdicts",
)

LIMITS = table(
    required("rule", pa.string(), "name of the rule"),
    required("side", pa.string(), "the end of the values that passes, `top` or `bottom`"),
    required("share", pa.float64(), "the share of the documents that passes"),
    required("limit", pa.float64(), "the last value inside the share"),
    required("n_documents", pa.int64(), "documents that had a value when the limit was found"),
    key=("rule",),
    chart="filters.limits",
)
