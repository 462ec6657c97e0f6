"""Vectors of documents, in Spark's Python workers.

An embedder turns the text of each document into a vector of length one. The vector depends on that text
alone, so any partitioning gives the same rows: a model takes one text a call, because the padding and the
kernels of a larger batch would change the last bits.
"""

from __future__ import annotations

import importlib.util
import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from factory import _native
from factory.errors import ConfigurationError
from factory.lake.schemas.clusters import VECTORS
from spark_udfs.models.onnx_model import OnnxModel, open_model

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer

Floats = npt.NDArray[np.float32]

PROBE = "A text that shows how many numbers a vector has."


class Embedder(Protocol):
    """A function from texts to vectors."""

    @property
    def dimensions(self) -> int:
        """Numbers of a vector."""

    def embed(self, texts: pa.Array) -> Floats:
        """Return (n, d): rows of length one, and zeros for a null text and one without a known token.

        Raises VectorRefused for a row of another length or with a number that is not finite.
        """


class VectorRefused(ValueError):
    """The text at position `row` has no usable vector, for the reason of the message."""

    def __init__(self, row: int, reason: str) -> None:
        super().__init__(reason)
        self.row = row


def embed(
    batches: Iterator[pa.RecordBatch], open_embedder: Callable[[], Embedder]
) -> Iterator[pa.RecordBatch]:
    """Yield VECTORS of batches (doc_id, text, partition).

    Raises ConfigurationError, which names the document, for a text without a usable vector.
    """
    for batch in batches:
        doc_ids, texts, partitions = batch.columns
        try:
            vectors = open_embedder().embed(texts)
        except VectorRefused as error:
            raise ConfigurationError(f"Document {doc_ids[error.row]} has no vector: {error}") from error
        yield pa.RecordBatch.from_arrays([doc_ids, _as_bytes(vectors), partitions], schema=VECTORS.columns)


@lru_cache(maxsize=2)
def load(embedder: bytes) -> Embedder:
    """Return the embedder of a table EMBEDDER, given as an Arrow stream, of a kind that the table holds."""
    rows: Sequence[dict[str, Any]] = pa.ipc.open_stream(embedder).read_all().to_pylist()
    [row] = rows
    match row["kind"]:
        case "lsa":
            bits = json.loads(row["parameters"])["bits"]
            return LsaEmbedder(_native.LsaModel(bits, row["content"]))
        case "onnx":
            return OnnxEmbedder(open_model(row["content"]), row["dimensions"])
        case "column":
            return ColumnEmbedder(row["dimensions"])
    raise ConfigurationError(f"The table of an embedder of the kind `{row['kind']}` does not hold its model.")


@dataclass(frozen=True)
class LsaEmbedder:
    """Latent semantic analysis, as `factory.models.lsa` fits it."""

    model: _native.LsaModel

    @property
    def dimensions(self) -> int:
        return self.model.dimensions

    def embed(self, texts: pa.Array) -> Floats:
        vectors: Floats = self.model.embed(texts).to_numpy()
        return vectors.reshape(len(texts), self.dimensions)


@dataclass(frozen=True)
class ColumnEmbedder:
    """Vectors that came with the documents; its texts are JSON lists of numbers."""

    dimensions: int

    def embed(self, texts: pa.Array) -> Floats:
        return _unit_rows(texts, self.dimensions, numbers)


@dataclass(frozen=True)
class OnnxEmbedder:
    """A model in an ONNX file, which takes texts or hashed features; its first output is the vector."""

    model: OnnxModel
    dimensions: int

    def embed(self, texts: pa.Array) -> Floats:
        return _unit_rows(texts, self.dimensions, self._row)

    def _row(self, text: str) -> Any:
        return self.model.outputs(pa.array([text]))[0]


@dataclass(frozen=True)
class SentenceEmbedder:
    """A model of sentence-transformers."""

    model: SentenceTransformer
    dimensions: int

    def embed(self, texts: pa.Array) -> Floats:
        return _unit_rows(texts, self.dimensions, self._row)

    def _row(self, text: str) -> Any:
        return self.model.encode([text], show_progress_bar=False)[0]


@dataclass(frozen=True)
class PythonEmbedder:
    """An object of a user's class: `embed(texts)` returns an array of texts by `dimensions`."""

    name: str
    own: Any

    @property
    def dimensions(self) -> int:
        return int(self.own.dimensions)

    def embed(self, texts: pa.Array) -> Floats:
        [present] = np.nonzero(texts.is_valid().to_numpy(zero_copy_only=False))
        vectors = iter(self._vectors(texts.take(pa.array(present)).to_pylist()))
        return _unit_rows(texts, self.dimensions, lambda _: next(vectors))

    def _vectors(self, texts: list[str]) -> Sequence[Any]:
        try:
            vectors: Sequence[Any] = self.own.embed(texts) if texts else []
            n_vectors = len(vectors)
        except Exception as error:
            raise ConfigurationError(
                f"The embedder `{self.name}` fails with {type(error).__name__}: {error}. Correct its `embed`."
            ) from error
        if n_vectors != len(texts):
            raise ConfigurationError(
                f"The embedder `{self.name}` gives {n_vectors} vectors of {len(texts)} texts. Return one for "
                "each text."
            )
        return vectors


@lru_cache(maxsize=1)
def open_sentence_transformer(folder: str, source: str) -> SentenceEmbedder:
    """Return the model in a folder; `source` is the hash of its files, since a worker may outlive them.

    Raises ConfigurationError without the library and for another folder.
    """
    del source
    if importlib.util.find_spec("sentence_transformers") is None:
        raise ConfigurationError(
            "The embedder `sentence_transformers` needs the library of that name. Install it: "
            "pip install 'corpus-factory[sentence-transformers]'."
        )
    import torch
    from sentence_transformers import SentenceTransformer

    torch.set_num_threads(1)
    try:
        model = SentenceTransformer(folder, device="cpu", local_files_only=True)
        [vector] = model.encode([PROBE], show_progress_bar=False)
    except Exception as error:  # the library has no exception of its own
        raise ConfigurationError(
            f"{folder} is not a model of sentence-transformers ({error}). Save one with `model.save`."
        ) from error
    return SentenceEmbedder(model, len(vector))


def numbers(text: str) -> list[float]:
    """Return the numbers of a JSON list; raises ValueError for anything else."""
    entries = json.loads(text, parse_int=float)  # an integer of 400 digits is infinite, like 1e400
    if not isinstance(entries, list) or not all(type(entry) is float for entry in entries):
        raise ValueError("Not a list of numbers")
    return entries


def _unit_rows(texts: pa.Array, dimensions: int, vector_of: Callable[[str], Any]) -> Floats:
    """Return the vectors of the texts that are not null, each divided by its length, in a row each."""
    rows = np.zeros((len(texts), dimensions), np.float32)
    for number, text in enumerate(texts.to_pylist()):
        if text is not None:
            rows[number] = _unit_vector(number, text, dimensions, vector_of)
    return rows


def _unit_vector(number: int, text: str, dimensions: int, vector_of: Callable[[str], Any]) -> Floats:
    try:
        with np.errstate(over="ignore"):
            vector = np.asarray(vector_of(text), dtype=np.float32)
    except (ValueError, TypeError, OverflowError) as error:
        raise VectorRefused(number, f"{error}. The embedder's vectors have {dimensions} numbers.") from error
    if vector.shape != (dimensions,):
        shape = " x ".join(map(str, vector.shape)) or "1"
        raise VectorRefused(number, f"it would have {shape} numbers, and the embedder's have {dimensions}.")
    if not np.isfinite(vector).all():
        raise VectorRefused(number, "a number is not finite. Correct the embedder, or remove the document.")
    length = np.linalg.norm(vector.astype(np.float64))
    return (vector / length).astype(np.float32) if length else vector


def _as_bytes(vectors: Floats) -> pa.BinaryArray:
    """Return the rows of (n, d) as little-endian bytes; null for a row of zeros."""
    n_rows, dimensions = vectors.shape
    numbers = pa.py_buffer(np.ascontiguousarray(vectors, "<f4"))
    rows = pa.Array.from_buffers(pa.binary(4 * dimensions), n_rows, [None, numbers])
    return pc.if_else(pa.array(vectors.any(axis=1)), rows.cast(pa.binary()), pa.scalar(None, pa.binary()))
