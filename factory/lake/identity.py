"""The hashes that name a document, `doc_id` by where it came from and `content_hash` by what it says, and
`tokenizer_id`, which names what a tokenizer makes of texts.

All are 128 bits of BLAKE2b, written as 32 hex digits, and never change once published: they are
stored in every table and in every trace.

    doc_id        BLAKE2b-128( len(source) | source | len(key) | key )
    content_hash  BLAKE2b-128( bytes )
    tokenizer_id  BLAKE2b-128( canonical JSON of a tokenizer.json )

`source` and `key` are UTF-8, each length is 8 bytes, little-endian. The lengths keep ("ab", "c") apart
from ("a", "bc"). A content hash has no frame, so that `b2sum -l 128 FILE` prints the same digits.
"""

from __future__ import annotations

import json
from hashlib import blake2b
from typing import Any

DIGEST_BYTES = 16
_LENGTH_BYTES = 8


def doc_id(source: str, key: str) -> str:
    """32 hex digits for the document `key` of `source`; the same on every machine, in every run."""
    digest = blake2b(digest_size=DIGEST_BYTES)
    for part in (source.encode(), key.encode()):
        digest.update(len(part).to_bytes(_LENGTH_BYTES, "little"))
        digest.update(part)
    return digest.hexdigest()


def content_hash(content: str | bytes) -> str:
    """32 hex digits for a text (its UTF-8 bytes) or for bytes; equal exactly for equal content."""
    data = content.encode() if isinstance(content, str) else content
    return blake2b(data, digest_size=DIGEST_BYTES).hexdigest()


def tokenizer_id(tokenizer: str) -> str:
    """32 hex digits for the content of a `tokenizer.json`: tokens of one id mean the same.

    Layout and order of keys do not count, nor do truncation and padding, which the pipeline turns off, nor
    whether merges are written as pairs or as two words. Which tokens stand around documents does not
    either: they are tokens of the vocabulary themselves.
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
