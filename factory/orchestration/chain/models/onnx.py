"""The assets of ONNX models, and the rules that read them."""

from __future__ import annotations

from pathlib import Path

from pyspark.sql import DataFrame

from factory.filters.limits import Limit
from factory.filters.rules.onnx_score import OnnxScore
from factory.lake.schemas.models import ONNX_MODEL
from factory.models.onnx_model import onnx_table
from factory.orchestration.chain.models.rule import RuleModel
from factory.orchestration.groups import MODELS
from factory.orchestration.table.table_asset import table_asset


def onnx_model(name: str, path: Path, *, limit: Limit | None = None) -> RuleModel:
    """Declare the model of an ONNX file, of texts or of hashed features (`spark_udfs.models.onnx_model`)."""

    @table_asset(
        namespace="models",
        name=name,
        asset_group=MODELS,
        schema=ONNX_MODEL,
        description=f"The model of the file `{path.name}`.",
        config={"file": str(path)},
        files=lambda _: [path],
    )
    def model(pyspark) -> DataFrame:  # type: ignore[no-untyped-def]
        return pyspark.spark_session.createDataFrame(onnx_table(path))

    return RuleModel(model, OnnxScore(name, limit))
