"""Rules that find their numbers in tables: a verdict of another stage, a rate by category.

    class Crowded(JoinedRule):
        \"\"\"Documents of the host.\"\"\"

        name, unit, limit = "crowded", "documents", AtMost(1_000)
        reads = {"hosts": TableName("facts", "web_hosts")}

        def values(self, documents: DataFrame, tables: Mapping[str, DataFrame]) -> DataFrame:
            hosts = documents.select("doc_id", F.col("metadata")["host"].alias("host"))
            return hosts.join(tables["hosts"], "host").select("doc_id", "crowded")

No text is read. A rule with a `ceiling` has a limit for each document, in the signal of that name.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping

from pyspark.sql import DataFrame

from factory.filters.rule import Rule


class JoinedRule(Rule):
    """A number of a document that tables hold."""

    @abstractmethod
    def values(self, documents: DataFrame, tables: Mapping[str, DataFrame]) -> DataFrame:
        """Return `doc_id` and the rule's `signals`, at most one row for a document.

        `documents` are rows of the documents' table, `tables` the rule's tables by role. Rules with the same
        signals are asked once.
        """
