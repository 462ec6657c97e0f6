"""A model of somebody's own in an ONNX file, as a table of one row: ONNX_MODEL.

The file is read in every run and its bytes are kept in the table, so every machine has them and a changed
file measures its own column again. ONNX is data for a fixed set of operators; a pickle would be a program.
"""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa

from factory.errors import ConfigurationError
from factory.lake.schemas.models import ONNX_MODEL
from spark_udfs.models.onnx_model import ModelRefused, open_model, require_onnx_runtime


def onnx_table(path: Path) -> pa.Table:
    """Return the row of ONNX_MODEL; raises ConfigurationError for a file that is not a model of texts."""
    require_onnx_runtime()
    try:
        content = path.read_bytes()
    except OSError as error:
        raise ConfigurationError(
            f"The model {path} cannot be read ({error.strerror}). Correct its path."
        ) from error
    try:
        model = open_model(content)
    except ModelRefused as error:
        raise ConfigurationError(f"{path.name} is no model that judges texts: {error}") from error
    row = {"input": model.takes, "content": content, "partition": None}
    return pa.Table.from_pylist([row], schema=ONNX_MODEL.columns)
