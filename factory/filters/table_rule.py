"""Rules that read documents and tables: a model, a list of words, verdicts of another stage.

    # my_rules.py
    class Blocked(TableRule):
        \"\"\"Blocked words in the text.\"\"\"

        name, unit, limit = "blocked", "words", AtMost(3)
        reads = {"words": TableName("models", "blocked_words")}

        def measurer(self, tables: Mapping[str, DataFrame]) -> Measurer: ...

The values of such a rule have a table of signals of their own, `signals.<dataset>_by_<rule>`. The rule's
tables are its upstream tables: when they change, it alone is measured again.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping

import pyarrow as pa
from pyspark.sql import DataFrame

from factory.filters.rule import Rule

Measurer = Callable[[pa.Array, pa.Array], Mapping[str, pa.Array]]
"""Takes the ids and texts of a batch of documents, returns the rule's columns; it runs in Spark's workers."""


class TableRule(Rule):
    """A number of a text and of tables."""

    @abstractmethod
    def measurer(self, tables: Mapping[str, DataFrame]) -> Measurer:
        """Return the function that measures texts; `tables` are the rule's tables, by role.

        A null text has a null value. The function and its attributes travel to every worker.
        """
