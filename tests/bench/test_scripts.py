"""In twelve scripts, unrelated texts resemble each other little and edited copies much."""

from __future__ import annotations

import pytest

from bench.dedup.scripts.corpus import SCRIPTS, Texts, texts_of_names, texts_of_syllables
from bench.dedup.scripts.measure import KINDS, LIMIT, similarities


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", SCRIPTS)
def test_unrelated_texts_differ_in_every_script(name: str, kind: str) -> None:
    script = SCRIPTS[name]
    for texts in (texts_of_names(script, 8, 50), texts_of_syllables(script, 8, 1_500)):
        pairs, copies, _ = similarities(texts, kind)
        assert pairs.mean() <= (0.3 if (name, kind) == ("Latin", "cl100k_base") else LIMIT)
        assert pairs.max() < 0.4
        assert copies.min() >= 0.6


def test_a_text_and_itself_have_similarity_1() -> None:
    texts = Texts(["ภาษาไทย a", "b c"], ["ภาษาไทย a", "b d"])
    pairs, copies, _ = similarities(texts, "prose")
    assert pairs.tolist() == [0]
    assert copies[0] == 1 > copies[1]
