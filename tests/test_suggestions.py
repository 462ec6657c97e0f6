"""An unknown name is answered with the nearest known ones."""

from __future__ import annotations

from factory.suggestions import unknown_name
from spark_udfs.filters.language_id import languages


def test_the_nearest_name_is_suggested() -> None:
    assert unknown_name("rule", "word_cuont", ["word_count", "lines"]) == (
        "Unknown rule `word_cuont`. Did you mean `word_count`?"
    )


def test_a_name_of_the_same_words_precedes_one_of_nearer_letters() -> None:
    rules = ["stop_words", "alphabetic_words", "mean_word_length", "word_count"]
    assert unknown_name("rule", "words", rules).endswith("Did you mean `word_count`?")
    assert unknown_name("rule", "stop-word", rules).endswith("Did you mean `stop_words`?")
    assert unknown_name("rule", "length", rules).endswith("Did you mean `mean_word_length`?")
    assert unknown_name("rule", "stop_wards", rules).endswith("Did you mean `stop_words`?")


def test_of_few_names_all_are_listed_and_of_many_the_nearest() -> None:
    assert unknown_name("kind", "xyz", ["prose", "code"]) == "Unknown kind `xyz`. Use one of `prose`, `code`."
    answer = unknown_name("language", "chinese", sorted(languages()))
    assert answer.startswith("Unknown language `chinese`. There are 176, such as `")
    assert answer.count("`") == 2 * (1 + 12)
