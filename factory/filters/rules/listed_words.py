"""Rules by a list of words, `models.<name>`: how many of its words does a text hold?

Lists ban words of medicine and of minorities together with slurs, so a list has two tiers: `profane` words
decide, `flagged` words are only shown, in a column of their own.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from pyspark.sql import DataFrame

from factory.filters.limits import AtMost, Limit
from factory.filters.rule import Kind
from factory.filters.table_rule import Measurer, TableRule
from factory.lake import names
from factory.models.arrow_stream import arrow_stream
from spark_udfs.filters import word_list as udf


class ListedWords(TableRule):
    """Profane words and phrases of the list of the text's language; none without a list of that language."""

    unit = "per 1,000 words"

    def __init__(self, name: str, limit: Limit | None = None) -> None:
        self.name, self.limit = name, limit or AtMost(2)
        self.reads = {"words": names.model(name)}

    @property
    def signals(self) -> Mapping[str, Kind]:
        return {self.name: "number", f"{self.name}_flagged": "number"}

    def measurer(self, tables: Mapping[str, DataFrame]) -> Measurer:
        deciding, shown_only = self.signals
        words = arrow_stream(tables["words"])
        return partial(udf.rates, word_list=words, profane=deciding, shown_only=shown_only)
