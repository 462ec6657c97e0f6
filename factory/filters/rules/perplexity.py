"""The rule of n-gram models, `models.<name>`: in how many bits per byte would they write a text?

Few bits mean a template or a text that repeats itself, many another language, a table or encoded data, so a
limit has two sides. A text in a language without a model is rejected unless `missing` says otherwise: noise
is often taken for some rare language, and no model vouches for it there.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from pyspark.sql import DataFrame

from factory.filters.limits import Between, Limit, Missing
from factory.filters.table_rule import Measurer, TableRule
from factory.lake import names
from factory.models.arrow_stream import arrow_stream
from spark_udfs.filters import perplexity as udf


class BitsPerByte(TableRule):
    """Bits per byte by the n-gram model of the text's language; none without a model of that language."""

    unit = "bits per byte"

    def __init__(self, name: str, limit: Limit | None = None) -> None:
        self.name, self.limit = name, limit or Between(0.5, 4)
        self.reads = {"models": names.model(name)}

    @property
    def missing_by_default(self) -> Missing:
        return "reject"

    def measurer(self, tables: Mapping[str, DataFrame]) -> Measurer:
        return partial(udf.bits_per_byte, models=arrow_stream(tables["models"]), name=self.name)
