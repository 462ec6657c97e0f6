"""The rule of an ONNX model, `models.<name>`: the number that a model of somebody's own gives a text."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from pyspark.sql import DataFrame

from factory.filters.limits import AtLeast, Limit, Missing, asks_for_value
from factory.filters.table_rule import Measurer, TableRule
from factory.lake import names
from spark_udfs.models import onnx_model as udf


class OnnxScore(TableRule):
    """The last number of the first output of an ONNX model, for a text."""

    unit = "score"

    def __init__(self, name: str, limit: Limit | None = None) -> None:
        self.name, self.limit = name, limit or AtLeast(0.5)
        self.reads = {"model": names.model(name)}

    @property
    def missing_by_default(self) -> Missing:
        return "reject" if asks_for_value(self.limit) else "keep"

    def measurer(self, tables: Mapping[str, DataFrame]) -> Measurer:
        [row] = tables["model"].select("content").toArrow().to_pylist()
        return partial(udf.score, content=row["content"], name=self.name)
