"""The tokens of documents, encoded in Spark's Python workers.

A tokenizer encodes in the worker's one thread: Spark runs as many workers as there are cores. A document's
text never yields a special token, by any kind of tokenizer: if it spells one, as a page on language models
does, the spelling is encoded as ordinary text. So decoding gives it back, as far as the vocabulary has its
characters, and nobody can end a document early or add a picture to it. A placeholder of a picture becomes one
token, and the texts around it are encoded apart.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from tokenizers import Tokenizer

from factory.lake.schemas.images import PLACEHOLDER
from factory.lake.schemas.packing import TOKENIZED
from spark_udfs.models.text_encoder import text_encoder
from spark_udfs.models.tokenizer import load, n_tokens, token_bytes

ENCODED_AT_ONCE_BYTES = 1 << 20  # an encoding takes about 100 bytes per token until its ids are copied


def token_type(width: int) -> np.dtype:
    """Return the little-endian numpy type of a token of `width` bytes."""
    return np.dtype(f"<u{width}")


def encode(
    texts: list[str], tokenizer: str, begin: int | None, end: int | None, image: int | None = None
) -> list[np.ndarray]:
    """Return the tokens of each text between `begin` and `end`, in the width of the vocabulary.

    With `image`, the token of a picture, each placeholder in a text becomes this token.
    """
    kind = token_type(token_bytes(n_tokens(tokenizer)))
    head = [] if begin is None else [begin]
    tail = [] if end is None else [end]
    picture = [] if image is None else [image]
    encoder = text_encoder(tokenizer, control_tokens(begin, end, image))
    parts = [[text] if image is None else text.split(PLACEHOLDER) for text in texts]
    encodings = _ids([part for of_text in parts for part in of_text], encoder)
    tokens = []
    for of_text in parts:
        ids = [*head, *next(encodings)]
        for _ in of_text[1:]:
            ids += [*picture, *next(encodings)]
        tokens.append(np.array([*ids, *tail], dtype=kind))
    return tokens


def control_tokens(begin: int | None, end: int | None, image: int | None = None) -> tuple[int, ...]:
    """Return the tokens of `encode` that no text may yield."""
    return tuple(number for number in (begin, end, image) if number is not None)


def _ids(texts: list[str], encoder: Tokenizer) -> Iterator[list[int]]:
    for portion in _portions(texts):
        for encoding in encoder.encode_batch_fast(portion, add_special_tokens=False):
            yield encoding.ids


def decode(tokens: bytes, tokenizer: str, begin: int | None, end: int | None) -> str:
    """Return the text of a document's tokens as `encode` made them."""
    ids = np.frombuffer(tokens, dtype=token_type(token_bytes(n_tokens(tokenizer))))
    inner = ids[begin is not None : len(ids) - (end is not None)]
    return load(tokenizer).decode(inner.tolist(), skip_special_tokens=False)


def tokenize_batches(
    batches: Iterator[pa.RecordBatch],
    tokenizer: str,
    begin: int | None,
    end: int | None,
    image: int | None = None,
) -> Iterator[pa.RecordBatch]:
    """Yield rows of `TOKENIZED` for rows of (doc_id, repository, revision, position, text, partition).

    A document with a null text has no tokens; one with an empty text has `begin` and `end`. `image` as
    `encode` has it.
    """
    for batch in batches:
        texts = batch.column("text")
        present = [text for text in texts.to_pylist() if text is not None]
        encoded = iter(encode(present, tokenizer, begin, end, image))
        kind = token_type(token_bytes(n_tokens(tokenizer)))
        no_tokens = np.zeros(0, dtype=kind)
        rows = [next(encoded) if valid else no_tokens for valid in texts.is_valid().to_pylist()]
        counts = np.array([len(row) for row in rows], dtype=np.int64)
        yield pa.RecordBatch.from_arrays(
            [
                batch.column("doc_id"),
                batch.column("repository"),
                batch.column("position"),
                _binary(rows, counts * kind.itemsize),
                pa.array(counts),
                batch.column("revision"),
                pc.binary_length(texts).cast(pa.int64()),
                batch.column("partition"),
            ],
            names=TOKENIZED.names,
        )


def _binary(rows: list[np.ndarray], n_bytes: np.ndarray) -> pa.Array:
    offsets = np.zeros(len(rows) + 1, dtype=np.int64)
    np.cumsum(n_bytes, out=offsets[1:])
    if offsets[-1] >= 1 << 31:  # beyond 32-bit offsets, the only ones Spark's binary type accepts
        return pa.array([row.tobytes() for row in rows], pa.binary())
    buffer = pa.py_buffer(np.concatenate(rows).tobytes() if rows else b"")
    return pa.BinaryArray.from_buffers(
        pa.binary(), len(rows), [None, pa.py_buffer(offsets.astype(np.int32).tobytes()), buffer]
    )


def _portions(texts: list[str]) -> Iterator[list[str]]:
    portion: list[str] = []
    n_characters = 0
    for text in texts:
        portion.append(text)
        n_characters += len(text)
        if n_characters >= ENCODED_AT_ONCE_BYTES:
            yield portion
            portion, n_characters = [], 0
    if portion:
        yield portion
