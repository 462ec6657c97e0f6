"""Checks that all sources of a blend have one tokenizer and one length of rows, and that validation is meant.

The same number is another token under another tokenizer. Rows of different lengths are padded to the longest,
so that equal weights mean different numbers of tokens. The checks read the pinned snapshots, not the current
tables, and only sources that deliver `tokens`. A source with an unknown tokenizer agrees only with other such
sources.
"""

from __future__ import annotations

from collections.abc import Sequence

from blender.errors import InvalidBlend
from blender.records import Source
from blender.rows.live.live_reader import LiveReader
from blender.rows.snapshot_facts import SnapshotFacts
from blender.rows.snapshot_reader import TOKENS, SnapshotReader
from factory.lake.names import TableName, is_validation

_SHOWN = 12  # digits of a tokenizer's identity in messages

Packed = tuple[Source, SnapshotFacts]


def require_agreement(
    sources: Sequence[Source], readers: Sequence[SnapshotReader | LiveReader], *, pad: bool
) -> None:
    """Raise InvalidBlend for two tokenizers, and for two lengths of rows without `pad`."""
    packed = [
        (source, (reader.now if isinstance(reader, LiveReader) else reader).facts)
        for source, reader in zip(sources, readers, strict=True)
        if TOKENS in source.columns
    ]
    for one in packed[1:]:
        if one[1].tokenizer != packed[0][1].tokenizer:
            raise InvalidBlend(_two_tokenizers(packed[0], one))
    for one in packed[1:]:
        if one[1].sequence_length != packed[0][1].sequence_length:
            _check_lengths(packed[0], one, pad=pad)


def require_no_validation_by_accident(sources: Sequence[Source]) -> None:
    """Raise InvalidBlend for a validation table among training tables, unless its source says `validation`.

    A blend of validation tables alone needs no such word.
    """
    of_validation = [source for source in sources if is_validation(TableName.parse(source.table))]
    for source in sources:
        if source.validation and source not in of_validation:
            raise InvalidBlend(
                f"Source `{source.name}` says `validation`, and {source.table} holds no validation part. "
                "Leave the word out."
            )
    training = [source for source in sources if source not in of_validation]
    for source in of_validation:
        if training and not source.validation:
            raise InvalidBlend(
                f"{source.table} is the validation part of a dataset, and {training[0].table} is not. Leave "
                "it out, make a blend of its own, or say `validation: true` of its source."
            )


def shown(tokenizer: str, table: str | None) -> str:
    """A tokenizer as messages show it."""
    return f"{tokenizer[:_SHOWN]} ({table})" if table else tokenizer[:_SHOWN]


def _two_tokenizers(first: Packed, other: Packed) -> str:
    for unknown, known in ((first, other), (other, first)):
        if unknown[1].tokenizer is None:
            return (
                f"Source {_named(unknown)} does not say which tokenizer made its tokens, and {_named(known)} "
                f"has tokenizer {_tokenizer(known)}. Pack {unknown[0].table} again, or leave one of them out."
            )
    return (
        f"Source {_named(first)} has tokenizer {_tokenizer(first)}, and {_named(other)} has "
        f"{_tokenizer(other)}: the same number is another token in each. Pack both with one tokenizer, or "
        "leave one of them out."
    )


def _check_lengths(first: Packed, other: Packed, *, pad: bool) -> None:
    for unknown, known in ((first, other), (other, first)):
        if unknown[1].sequence_length is None:
            raise InvalidBlend(
                f"Source {_named(unknown)} does not say how many tokens its rows hold, and rows of "
                f"{_named(known)} hold {known[1].sequence_length}. Pack {unknown[0].table} again, or leave "
                "one of them out."
            )
    if not pad:
        shorter, longer = sorted((first, other), key=_length)
        share = 1 - _length(shorter) / _length(longer)
        raise InvalidBlend(
            f"Rows of source {_named(shorter)} hold {_length(shorter):,} tokens and rows of "
            f"{_named(longer)} {_length(longer):,}: {share:.0%} of each shorter row would be padding,"
            " and a weight would not mean tokens. Pack both with one `sequence_length`, or say `pad: true`."
        )


def _length(packed: Packed) -> int:
    return int(packed[1].sequence_length or 0)


def _tokenizer(packed: Packed) -> str:
    return shown(packed[1].tokenizer or "", packed[1].tokenizer_table)


def _named(packed: Packed) -> str:
    source, facts = packed
    table = "" if source.name == source.table else f"{source.table} "
    return f"`{source.name}` ({table}at snapshot {facts.snapshot_id})"
