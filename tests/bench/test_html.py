"""The bench of pages: templates hold their blocks, and a text is judged by its words and their order."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench.html.generated import KNOWN, UNSEEN, generated_pages, without_main_text
from bench.html.measure import _kept, ours
from bench.html.quality import Overlap, longest_increasing, order
from tests.ingest.web.archives import SENTENCE

LANGUAGES = {"en": [f"Year {number} of rivers: {SENTENCE}" for number in range(400)]}


@pytest.mark.parametrize("template", [*KNOWN, *UNSEEN])
def test_a_page_has_its_blocks_and_ours_tells_them_apart(template: str) -> None:
    pages = list(generated_pages(LANGUAGES, [template], 2))
    for page in pages:
        assert all(block in page.html for block in page.main)
        assert len(page.boilerplate) > 10
    main, boilerplate, code = _kept(pages, [ours(page.html) for page in pages])
    assert main > 0.9
    assert boilerplate < 0.3
    assert code == 1


def test_known_and_unseen_templates_differ() -> None:
    assert not set(KNOWN) & set(UNSEEN)


def test_pages_without_a_main_text_are_of_three_kinds() -> None:
    index, form, script = without_main_text(LANGUAGES, 3)
    assert index.count("<a ") > 20
    assert "type=password" in form
    assert "<script>" in script


def test_a_text_is_judged_by_shingles_of_four_words() -> None:
    overlap = Overlap()
    assert overlap.add("a b c d e", "a b c d x") == 0.5
    assert (overlap.precision, overlap.recall) == (0.5, 0.5)
    assert overlap.add("", "") == 1


def test_order_counts_shingles_that_rise() -> None:
    assert order("a b c d e f g h", "a b c d e f g h") == (5, 5)
    assert order("e f g h a b c d", "a b c d e f g h") == (1, 2)


@given(st.lists(st.integers(0, 30), max_size=12))
def test_the_longest_increasing_run_is_that_of_a_search(numbers: list[int]) -> None:
    lengths: list[int] = []
    for place, number in enumerate(numbers):
        before = [length for length, other in zip(lengths, numbers[:place], strict=True) if other < number]
        lengths.append(1 + max(before, default=0))
    assert longest_increasing(numbers) == max(lengths, default=0)
