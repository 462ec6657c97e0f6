"""Markers of translated prose in docstrings and pages: their numbers may only fall.

A marker is a place to look, not a fault by itself: "those" before a noun is fine, and so is "what" in a
question. Well-kept projects have .2 to .8 of them in a thousand words.
"""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterable, Iterator

from tests.test_names import PRODUCT, ROOT, sources

MARKERS = {
    "that of": r"\b(?:that|those) (?:of|that|which|who)\b",
    "what": r"\bwhat (?:is|are|was|were|ha[sd]|have|do|does|did|it|they|an?|the|no|one|that|follows|comes)\b",
    "whose": r"\bwhose\b",
    "beside": r"\bbesides?\b",
    "whoever": r"\b(?:whoever|whatever|however|wherever)\b",
    "lies": r"\b(?:lies|stands|goes on)\b",
    "of which": r"\b(?:of|by|from) which\b",
}
MOST = {"docstrings": 10, "pages": 8}


def docstrings() -> Iterator[str]:
    """Yield every docstring of the product."""
    for path in sources(*PRODUCT):
        for node in ast.walk(ast.parse(path.read_bytes())):
            if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
                yield ast.get_docstring(node) or ""


def pages() -> Iterator[str]:
    """Yield the prose of every page, without its code."""
    for page in [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]:
        yield re.sub(r"```.*?```|`[^`\n]*`", " ", page.read_text(), flags=re.DOTALL)


def n_by_marker(texts: Iterable[str]) -> Counter[str]:
    """Count the markers in texts."""
    plain = [" ".join(text.lower().split()) for text in texts]
    return Counter(
        {name: sum(len(re.findall(marker, text)) for text in plain) for name, marker in MARKERS.items()}
    )


def test_fewer_sentences_read_like_a_translation() -> None:
    counts = {"docstrings": n_by_marker(docstrings()), "pages": n_by_marker(pages())}
    totals = {name: markers.total() for name, markers in counts.items()}
    assert totals == MOST, (
        f"{counts}: say who does what, and name the thing. If a sum fell, lower it in MOST."
    )
