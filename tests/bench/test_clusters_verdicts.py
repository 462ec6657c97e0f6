"""Planted clusters of the bench: noise has no two documents alike, templates share their words."""

from __future__ import annotations

import random

import pyarrow as pa
import pytest

from bench.clusters.noise import FIRST_NOISE, LATER_NOISE, N_BYTES
from bench.clusters.templates import FIRST_TEMPLATES, LATER_TEMPLATES
from bench.clusters.verdicts import _proxy_table, _rebuilt, _templates
from factory import _native
from tests.clusters.planted_texts import texts

PROSE = [text[:N_BYTES] for text in texts("english", 5, 50)]


@pytest.mark.parametrize("kind", [*FIRST_NOISE, *LATER_NOISE])
def test_noise_differs_from_document_to_document(kind: str) -> None:
    chance = random.Random(kind)
    draw = (FIRST_NOISE | LATER_NOISE)[kind]
    documents = {draw(chance.choice(PROSE), chance) for _ in range(20)}
    assert len(documents) > 15
    assert all(N_BYTES / 6 < len(document.encode()) < 2 * N_BYTES for document in documents)


@pytest.mark.parametrize("kind", [*FIRST_TEMPLATES, *LATER_TEMPLATES])
def test_documents_of_a_template_share_most_words(kind: str) -> None:
    chance = random.Random(kind)
    draw = (FIRST_TEMPLATES | LATER_TEMPLATES)[kind](PROSE, chance)
    documents = [draw(chance) for _ in range(20)]
    assert len(set(documents)) > 15
    vocabulary = set(" ".join(documents[:10]).split())
    words = " ".join(documents[10:]).split()
    assert sum(word in vocabulary for word in words) > 0.7 * len(words)


def test_the_model_rebuilt_has_the_bits_of_the_overlay() -> None:
    clusters = list(_templates({"menus": FIRST_TEMPLATES["menus"]}, PROSE))
    merges, ngrams = _proxy_table(clusters)
    side_a, side_b = pa.array(clusters[0].texts[:9]), pa.array(clusters[0].texts[9:12])
    after = _native.NgramProxy(merges, *ngrams).losses(side_a, side_b, 1.0)["after"]
    assert _rebuilt(merges, ngrams, side_a).bits(side_b).to_pylist() == pytest.approx(after.to_pylist(), 1e-5)
