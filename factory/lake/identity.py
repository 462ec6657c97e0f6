"""The ids of documents and tokenizers: `doc_id` by origin, `content_hash` by text, `tokenizer_id` by content.

The ids are 128 bits of BLAKE2b, written as 32 hex digits. They, and the draws of documents, never change once
published: tables, blends and traces store them.

    doc_id        BLAKE2b-128( len(source) | source | len(key) | key )
    content_hash  BLAKE2b-128( bytes )
    tokenizer_id  BLAKE2b-128( canonical JSON of a tokenizer.json )
    draw          the first 52 bits of SHA-256( "validation\\0" | repository or key ), as a fraction

`source` and `key` are UTF-8, each length is 8 bytes, little-endian. The lengths keep ("ab", "c") apart
from ("a", "bc"). A content hash has no frame, so that `b2sum -l 128 FILE` prints the same digits.
"""

from __future__ import annotations

import json
from hashlib import blake2b, sha256
from typing import Any

DIGEST_BYTES = 16
DRAW_SALT, DRAW_DIGITS = "validation\0", 13  # hex digits: 52 bits, which a float holds exactly
DERIVED_FROM_KEY = "derived_from_key"  # the fact that replaces a document's own key in its draw
_LENGTH_BYTES = 8


def doc_id(source: str, key: str) -> str:
    """Return 32 hex digits for document `key` of `source`, equal on every machine and in every run."""
    digest = blake2b(digest_size=DIGEST_BYTES)
    for part in (source.encode(), key.encode()):
        digest.update(len(part).to_bytes(_LENGTH_BYTES, "little"))
        digest.update(part)
    return digest.hexdigest()


def content_hash(content: str | bytes) -> str:
    """Return 32 hex digits for a text (its UTF-8 bytes) or for bytes."""
    encoded = content.encode() if isinstance(content, str) else content
    return blake2b(encoded, digest_size=DIGEST_BYTES).hexdigest()


def draw(repository: str | None, key: str) -> float:
    """Return a number in [0, 1) for a document: a hash of its repository, or of its key without one.

    The documents below a share are the validation part of their dataset (`factory.packing.validation`).
    """
    digest = sha256((DRAW_SALT + (repository or key)).encode()).hexdigest()
    return int(digest[:DRAW_DIGITS], 16) / float(1 << 4 * DRAW_DIGITS)


def tokenizer_id(tokenizer: str) -> str:
    """Return 32 hex digits for the content of a `tokenizer.json`: equal ids mean equal tokens.

    The id ignores layout and order of keys, truncation and padding (which the pipeline turns off), and
    whether merges are written as pairs or as two words. It also ignores the tokens around documents, which
    are ordinary tokens of the vocabulary.
    """
    fields: dict[str, Any] = {
        name: of for name, of in json.loads(tokenizer).items() if name not in ("truncation", "padding")
    }
    model = fields.get("model")
    if isinstance(model, dict) and isinstance(model.get("merges"), list):
        fields["model"] = {**model, "merges": [_pair(merge) for merge in model["merges"]]}
    canonical = json.dumps(fields, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return content_hash(canonical.encode("utf-8", "surrogatepass"))


def _pair(merge: Any) -> Any:
    return merge.split(" ") if isinstance(merge, str) else merge
