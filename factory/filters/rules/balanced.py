"""The rule that balances a dataset: each document has a draw, and its category keeps draws up to a rate."""

from __future__ import annotations

from collections.abc import Mapping
from math import inf

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from factory.filters.joined_rule import JoinedRule
from factory.filters.limits import AtMost
from factory.filters.rule import Kind
from factory.lake import names
from factory.models.sampling import unit_interval

BALANCE = "balance"
RATE = "balance_rate"


class BalanceRate(JoinedRule):
    """The document's draw between 0 and 1, where its category keeps the draws up to a rate."""

    name, unit, ceiling = BALANCE, "draw", RATE
    limit = AtMost(inf)

    def __init__(self, dataset: str) -> None:
        self.reads = {
            "categories": names.clusters(dataset, "categories"),
            "rates": names.clusters(dataset, "balance"),
        }

    @property
    def part(self) -> str:
        return BALANCE

    @property
    def signals(self) -> Mapping[str, Kind]:
        return {BALANCE: "number", RATE: "number"}

    def values(self, documents: DataFrame, tables: Mapping[str, DataFrame]) -> DataFrame:  # noqa: ARG002
        """Return the draw of each document, and the rate of its category.

        A category that is newer than the rates has none, so all of its documents stay.
        """
        categories = tables["categories"].select("doc_id", "category", unit_interval(BALANCE).alias(BALANCE))
        rates = tables["rates"].select("category", F.col("rate").alias(RATE))
        return categories.join(rates, "category", "left")
