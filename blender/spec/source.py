"""The checks of a blend's source, and its hashed fields.

`blender.records.Source` declares the fields; this module alone knows which values fit together.
"""

from __future__ import annotations

from dataclasses import fields
from typing import Annotated, Any

from pydantic import AfterValidator, TypeAdapter

from blender.records import Source
from blender.spec.shuffle import Shuffle
from blender.spec.validated import validated

PROVENANCE = ("offset", "source", "ordinal", "epoch")  # columns of every batch
SEGMENT_LENGTHS = "segment_lengths"  # column that comes with `tokens`: lengths of the documents in a row

REFERENCE = ("snapshot", "branch", "tag")
_SIZES = (
    ("page_rows", ("page", "page_window")),
    ("window_pages", ("page_window",)),
    ("window_rows", ("window",)),
)


def wellformed(source: Source) -> Source:
    """The source with its values converted to the declared types.

    Raises InvalidBlend with a sentence for each wrong field.
    """
    return validated(_SOURCE.validate_python, vars(source))


def shuffle_of(source: Source) -> Shuffle:
    """The order of an epoch."""
    return Shuffle(source.shuffle, source.page_rows, source.window_pages, source.window_rows)


def canonical(source: Source) -> dict[str, Any]:
    """The hashed fields: all that differ from their defaults, without the reference to a snapshot."""
    left_out = (*REFERENCE, "name") if source.name == source.table else REFERENCE
    return {
        field.name: value
        for field in fields(source)
        if field.name not in left_out and (value := getattr(source, field.name)) != field.default
    }


def _check(source: Source) -> Source:
    for name, value in vars(source).items():
        if isinstance(value, int) and value < 0 and name not in REFERENCE:
            raise ValueError(f"`{name}` is {value}. Use 0 or more.")
    if not source.columns or len(set(source.columns)) != len(source.columns):
        raise ValueError(f"Columns {list(source.columns)} are empty or repeat one. Name each column once.")
    for column in source.columns:
        if column in (*PROVENANCE, SEGMENT_LENGTHS):
            raise ValueError(f"Blender adds column `{column}` itself. Leave it out of `columns`.")
    given = [name for name in REFERENCE if getattr(source, name) is not None]
    if len(given) > 1:
        raise ValueError(f"Source `{source.name}` names {' and '.join(given)}. Name one of them.")
    for size, kinds in _SIZES:
        if source.shuffle in kinds and not getattr(source, size):
            raise ValueError(f"Shuffle `{source.shuffle}` needs `{size}`, at least 1. Give it.")
        if source.shuffle not in kinds and getattr(source, size):
            raise ValueError(f"Shuffle `{source.shuffle}` takes no `{size}`. Leave it out.")
    if source.live:
        _check_live(source, given)
    return source


def _check_live(source: Source, given: list[str]) -> None:
    if source.oversample:
        raise ValueError(f"Source `{source.name}` is live and has no end. Leave out `oversample`.")
    if source.shuffle not in ("none", "window"):
        raise ValueError(
            f"Source `{source.name}` is live, and shuffle `{source.shuffle}` needs all rows. "
            "Use `none`, or `window` with `window_rows`."
        )
    if given:
        raise ValueError(f"Source `{source.name}` is live and follows the published main. Name no other.")


WellformedSource = Annotated[Source, AfterValidator(_check)]

_SOURCE: TypeAdapter[Source] = TypeAdapter(WellformedSource)
