"""The test set of deduplications: its texts, their exact similarities, and our decisions.

Every decision is checked against similarities computed again from the texts.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from bench.bags import Bags, joined
from bench.dedup.exact import Alike, alike
from bench.dedup.judge import FAR
from bench.harness import Report


@dataclass(frozen=True)
class Judged:
    """The judged set: its documents, and its texts, numbered."""

    documents: pa.Table
    text_of: np.ndarray
    """The text of each document."""
    first: np.ndarray
    """The first document of each text."""

    @property
    def texts(self) -> int:
        """The number of texts."""
        return len(self.first)

    @property
    def number_of(self) -> dict[str, int]:
        """The text of each doc_id."""
        return dict(zip(self.documents["doc_id"].to_pylist(), self.text_of.tolist(), strict=True))

    @property
    def paths(self) -> list[str]:
        """Release and path of the first document of each text."""
        rows = self.documents.select(["repository", "path"]).take(self.first).to_pylist()
        return [f"{row['repository']}: {row['path']}" for row in rows]


def numbered(documents: pa.Table) -> Judged:
    """The documents with their texts numbered by content."""
    _, first, text_of = np.unique(
        documents["content_hash"].to_numpy(zero_copy_only=False), return_index=True, return_inverse=True
    )
    return Judged(documents, text_of, first)


def exact_pairs(words: Bags, first: np.ndarray) -> Alike:
    """All pairs of texts with a similarity of at least `FAR`; text i is document `first[i]` of `words`."""
    return alike(joined([words.of(int(document)) for document in first]), FAR)


def of_texts(judged: Judged, signed: pa.Table) -> np.ndarray:
    """The bytes of the signature of each text, zeros for one without tokens."""
    signed = signed.filter(pc.is_valid(signed["signature"]))
    values = np.stack([np.frombuffer(signature, np.uint8) for signature in signed["signature"].to_pylist()])
    found = np.zeros((judged.texts, values.shape[1]), np.uint8)
    number_of = judged.number_of
    found[[number_of[doc_id] for doc_id in signed["doc_id"].to_pylist()]] = values
    return found


def kept_ids(decided: pa.Table) -> set[str]:
    """The kept documents."""
    return set(decided.filter(decided["kept"])["doc_id"].to_pylist())


def check_decisions(
    report: Report, judged: Judged, decided: pa.Table, exact: Alike, threshold: float
) -> None:
    """Check every decision against the exact similarities. Raises WrongAnswer."""
    number_of = judged.number_of
    ids = decided["doc_id"].to_pylist()
    report.check(f"each of {len(number_of):,} documents has one decision", sorted(ids) == sorted(number_of))
    kept = kept_ids(decided)
    removed = decided.filter(pc.invert(decided["kept"]))
    partners = removed["duplicate_of"].to_pylist()
    report.check(
        f"each of {len(partners):,} removed documents names a kept one",
        all(name in kept for name in removed["kept_document"].to_pylist()),
    )
    own, other = (
        np.array([number_of[name] for name in names]) for names in (removed["doc_id"].to_pylist(), partners)
    )
    expected, said = exact.of(own, other), removed["similarity"].to_numpy()
    report.check(
        "each similarity is that of the two texts, computed again, and reaches the threshold",
        bool(np.all(np.abs(said - expected) < 1e-9) and np.all(said >= threshold)),
    )
