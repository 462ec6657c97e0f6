"""The fields of every batch of a blend."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from blender.errors import InvalidBlend
from blender.records import Source
from blender.rows.snapshot_reader import TOKENS, SnapshotReader
from blender.spec.source import PROVENANCE
from factory.lake.schemas.images import IMAGE_TOKEN
from factory.lake.schemas.packing import SEQUENCE_LENGTH, TOKEN_BYTES


def batch_schema(sources: Sequence[Source], readers: Sequence[SnapshotReader]) -> pa.Schema:
    """Provenance, then the columns of all sources in order of first mention.

    Raises InvalidBlend for a column of two types and for tokens of two widths.
    """
    fields = {
        name: pa.field(name, pa.int32() if name == "source" else pa.int64(), nullable=False)
        for name in PROVENANCE
    }
    first: dict[str, str] = {}
    for source, reader in zip(sources, readers, strict=True):
        for field in reader.fields(source.columns):
            known = fields.setdefault(field.name, field)
            named = first.setdefault(field.name, source.name)
            if known.type != field.type:
                raise InvalidBlend(
                    f"Column `{field.name}` is {known.type} in source `{named}` and {field.type} in "
                    f"`{source.name}`. Leave it out of one of them."
                )
    if TOKENS in fields:
        fields[TOKENS] = fields[TOKENS].with_metadata(_token_metadata(sources, readers))
    return pa.schema(list(fields.values()))


def _token_metadata(sources: Sequence[Source], readers: Sequence[SnapshotReader]) -> dict[str, str] | None:
    packed = [pair for pair in zip(sources, readers, strict=True) if TOKENS in pair[0].columns]
    widths = {source.name: reader.token_bytes for source, reader in packed}
    if len(set(widths.values())) > 1:
        described = ", ".join(f"`{name}` {width or 'no'}" for name, width in widths.items())
        raise InvalidBlend(
            f"The sources keep tokens of different widths (bytes a token: {described}). "
            "Blend tables packed with one tokenizer."
        )
    lengths = [int(reader.sequence_length) for _, reader in packed if reader.sequence_length]
    width = packed[0][1].token_bytes
    if not width or not lengths:
        return None
    metadata = {TOKEN_BYTES: width, SEQUENCE_LENGTH: str(max(lengths))}
    image_token = _image_token(packed)
    return metadata if image_token is None else metadata | {IMAGE_TOKEN: str(image_token)}


def _image_token(pairs: Sequence[tuple[Source, SnapshotReader]]) -> int | None:
    """The token of a picture in all sources that have one; raises InvalidBlend for two."""
    tokens = {
        source.name: reader.facts.image_token
        for source, reader in pairs
        if reader.facts.image_token is not None
    }
    if len(set(tokens.values())) > 1:
        listing = ", ".join(f"{token} in `{name}`" for name, token in tokens.items())
        raise InvalidBlend(
            f"The sources have different tokens for a picture: {listing}. Pack them with one image token."
        )
    return next(iter(tokens.values()), None)
