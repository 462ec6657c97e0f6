"""The fields that every batch of a blend has."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from blender.errors import InvalidBlend
from blender.opened.source import OpenedSource
from blender.rows.sources import TOKENS
from blender.spec.source import PROVENANCE
from factory.lake.schemas import SEQUENCE_LENGTH, TOKEN_BYTES


def batch_schema(sources: Sequence[OpenedSource]) -> pa.Schema:
    """Provenance, then the columns of all sources in order of first mention.

    Raises InvalidBlend for a column of two types and for tokens of two widths.
    """
    fields = {
        name: pa.field(name, pa.int32() if name == "source" else pa.int64(), nullable=False)
        for name in PROVENANCE
    }
    first: dict[str, str] = {}
    for source in sources:
        for one in source.reader.fields(source.config.columns):
            known = fields.setdefault(one.name, one)
            named = first.setdefault(one.name, source.config.name)
            if known.type != one.type:
                raise InvalidBlend(
                    f"Column `{one.name}` is {known.type} in source `{named}` and {one.type} in "
                    f"`{source.config.name}`. Leave it out of one of them."
                )
    if TOKENS in fields:
        fields[TOKENS] = fields[TOKENS].with_metadata(_token_metadata(sources))
    return pa.schema(list(fields.values()))


def _token_metadata(sources: Sequence[OpenedSource]) -> dict[str, str] | None:
    packed = [source for source in sources if TOKENS in source.config.columns]
    widths = {source.config.name: source.reader.token_bytes for source in packed}
    if len(set(widths.values())) > 1:
        described = ", ".join(f"`{name}` {width or 'no'}" for name, width in widths.items())
        raise InvalidBlend(
            f"The sources keep tokens of different widths (bytes a token: {described}). "
            "Blend tables packed with one tokenizer."
        )
    lengths = [int(source.reader.sequence_length) for source in packed if source.reader.sequence_length]
    width = packed[0].reader.token_bytes
    return {TOKEN_BYTES: width, SEQUENCE_LENGTH: str(max(lengths))} if width and lengths else None
