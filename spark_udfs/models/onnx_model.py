"""ONNX models that judge or embed texts, in Spark's Python workers.

A model takes a batch of texts, a tensor of strings (n) or (n, 1), or a batch of our hashed features, float32
(n, 2^bits) with the values of `factory.models.hashing`. The last number in each row of its first output is
the value: a probability, a score, a regression; all numbers of a row are its vector, if the model is an
embedder. It runs in the worker's one thread.
"""

from __future__ import annotations

import importlib.util
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from factory import _native
from factory.errors import ConfigurationError

if TYPE_CHECKING:
    from onnxruntime import InferenceSession

MOST_BITS = 16  # of features that a model takes: a row has 2^bits numbers
_ROWS = 256  # of a batch


class ModelRefused(ValueError):
    """A file that is not an ONNX model of texts or features."""


@dataclass(frozen=True)
class OnnxModel:
    """A loaded model: whether it takes texts or features, the rank of texts, and the bits of features."""

    session: InferenceSession
    takes: Literal["texts", "features"]
    rank: int
    bits: int

    def values(self, texts: pa.Array) -> npt.NDArray[np.float64]:
        """Return the value of each text (strings without nulls)."""
        batches = [texts.slice(first, _ROWS) for first in range(0, len(texts), _ROWS)]
        parts = [self.outputs(batch).reshape(len(batch), -1)[:, -1] for batch in batches]
        return np.concatenate(parts) if parts else np.zeros(0)

    def outputs(self, texts: pa.Array) -> npt.NDArray[np.float64]:
        """Return the first output for a batch of texts (strings without nulls), as the model shapes it."""
        rows: Any = self._features(texts) if self.takes == "features" else self._strings(texts)
        first = self.session.get_outputs()[0].name
        output = self.session.run([first], {self.session.get_inputs()[0].name: rows})[0]
        return np.asarray(output, dtype=np.float64)

    def _strings(self, texts: pa.Array) -> npt.NDArray[np.object_]:
        rows = np.array(texts.to_pylist(), dtype=object)
        return rows if self.rank == 1 else rows[:, None]

    def _features(self, texts: pa.Array) -> npt.NDArray[np.float32]:
        rows = np.zeros((len(texts), 1 << self.bits), dtype=np.float32)
        for row, buckets in zip(rows, _native.hashed_features(texts, self.bits), strict=True):
            row[buckets.values.to_numpy()] = 1 / np.sqrt(max(1, len(buckets)))
        return rows


def score(_doc_ids: pa.Array, texts: pa.Array, *, content: bytes, name: str) -> dict[str, pa.Array]:
    """Return the column `name`; null for a null text, and where the model gives no finite number."""
    column = np.full(len(texts), np.nan)
    [present] = np.nonzero(texts.is_valid().to_numpy(zero_copy_only=False))
    column[present] = open_model(content).values(texts.take(pa.array(present)))
    return {name: pa.array(column, mask=~np.isfinite(column))}


def require_onnx_runtime() -> None:
    """Raise ConfigurationError if the extra that runs models is not installed."""
    if importlib.util.find_spec("onnxruntime") is None:
        raise ConfigurationError(
            "An ONNX model needs onnxruntime. Install it: pip install 'corpus-factory[onnx]'."
        )


@lru_cache(maxsize=2)
def open_model(content: bytes) -> OnnxModel:
    """Return the model in the bytes of an ONNX file; raises ModelRefused for another file."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    try:
        session = onnxruntime.InferenceSession(content, options, providers=["CPUExecutionProvider"])
    except Exception as error:  # the runtime has a class of its own for each kind of damage
        raise ModelRefused(f"onnxruntime refuses it ({str(error).splitlines()[0]}).") from error
    inputs = session.get_inputs()
    if len(inputs) != 1:
        raise ModelRefused(f"it takes {len(inputs)} inputs. A model takes one, texts or features.")
    shape = inputs[0].shape
    if inputs[0].type == "tensor(string)" and len(shape) in (1, 2):
        return OnnxModel(session, "texts", len(shape), 0)
    width = shape[-1] if len(shape) == 2 else None
    if inputs[0].type == "tensor(float)" and isinstance(width, int) and width.bit_count() == 1:
        bits = width.bit_length() - 1
        if 1 <= bits <= MOST_BITS:
            return OnnxModel(session, "features", 2, bits)
    raise ModelRefused(
        f"it takes {inputs[0].type} of shape {shape}. A model takes strings (n) or (n, 1), or float32 "
        f"(n, 2^bits) with up to {MOST_BITS} bits."
    )
