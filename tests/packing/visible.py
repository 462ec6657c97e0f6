"""Dependencies that a reader of packed sequences sees, by a walk through every sequence."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

Piece = tuple[str, int, int]  # (doc_id, doc_offset, length)


def visible_dependencies(
    sequences: Iterable[Iterable[Piece]], n_tokens: Mapping[str, int], depends_on: Mapping[str, Iterable[str]]
) -> int:
    """Dependencies that stand whole before their dependent in a sequence."""
    seen = set()
    for pieces in sequences:
        whole: set[str] = set()
        for doc_id, _, length in pieces:
            seen |= {(doc_id, other) for other in depends_on[doc_id] if other in whole}
            if length == n_tokens[doc_id]:
                whole.add(doc_id)
    return len(seen)
